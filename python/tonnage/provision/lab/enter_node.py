"""Move a process to a node: into its control groups, then into its network namespace.

Only the network is the node's own; files, users and process ids are this machine's. A command finds
the same files as here, and its exit code and signals are its own.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tonnage.base.system import RunError, UsageError
from tonnage.base.system.netns import NAMESPACES
from tonnage.provision.lab.nodes import Node
from tonnage.provision.lab.throttling import controllers, group_directories


class NotStarted(UsageError):
    """A command could not be started; ``code`` is a shell's exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def exec_on_node(
    node: Node,
    command: Sequence[str],
    environment: dict[str, str],
    refuse_gone: Callable[[], object],
) -> None:
    """Replace this process by the command on the node; does not return.

    ``refuse_gone`` raises if the lab is being removed. It is called inside the groups: earlier
    entrants are killed with the others, later ones find out here.

    Raises:
        NotStarted: There is no such program, or it may not be run.
        RunError: The node is gone.
    """
    check_program(command[0])
    join_groups(group_directories(node, controllers().values()))
    refuse_gone()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Undo Python's own setting.
    os.execvpe("nsenter", nsenter_command(node, command), os.environ | environment)


def nsenter_command(node: Node, command: Sequence[str]) -> list[str]:
    """Build the command that runs another one in a node's network."""
    return ["nsenter", f"--net={NAMESPACES / node.namespace}", "--", *command]


def join_groups(groups: Iterable[Path]) -> None:
    """Move this process into control groups.

    Raises:
        RunError: A group is gone or may not be entered.
    """
    for group in groups:
        try:
            (group / "cgroup.procs").write_text("0")
        except OSError as why:
            raise RunError(
                f"cannot enter {group}: {why.strerror}; check that the lab is still up"
            ) from why


def check_program(name: str) -> None:
    """Refuse a name that is not a program.

    Raises:
        NotStarted: There is no such program, or it may not be run.
    """
    if shutil.which(name) is not None:
        return
    if os.sep not in name:
        path = os.environ.get("PATH", os.defpath)
        raise NotStarted(
            f"{name}: command not found in PATH={path} (sudo sets its own); "
            "use the full path of the command",
            127,
        )
    if not os.path.exists(name):
        raise NotStarted(f"{name}: file not found; use the path of a command", 127)
    raise NotStarted(f"{name} is not executable", 126)
