"""How a process becomes one of a node's: in its groups first, in its network then.

Only the network is the node's own: files, users and process numbers are this machine's. So a
command finds everything as it is here, and its exit code and signals are its own.
"""

from __future__ import annotations

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
    """A command that could not be started; ``code`` is what a shell would end with."""

    def __init__(self, said: str, code: int) -> None:
        super().__init__(said)
        self.code = code


def exec_on_node(
    node: Node,
    command: Sequence[str],
    environment: dict[str, str],
    refuse_gone: Callable[[], object],
) -> None:
    """Makes this process the command, on the node; does not return.

    Args:
        node: Where.
        command: The program and its arguments.
        environment: What is added to this process's.
        refuse_gone: Raises if the lab is being undone: who has entered before that is ended with
            the others, and who comes later finds out by this.

    Raises:
        NotStarted: There is no such program, or it may not be run.
        RunError: The node is not there any more.
    """
    check_program(command[0])
    join_groups(group_directories(node, controllers().values()))
    refuse_gone()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python's own is not the command's.
    os.execvpe("nsenter", nsenter_command(node, command), os.environ | environment)


def nsenter_command(node: Node, command: Sequence[str]) -> list[str]:
    """A command that runs another one in a node's network."""
    return ["nsenter", f"--net={NAMESPACES / node.namespace}", "--", *command]


def join_groups(groups: Iterable[Path]) -> None:
    """This process is in these groups from now on.

    Raises:
        RunError: One is not there, or may not be entered.
    """
    for group in groups:
        try:
            (group / "cgroup.procs").write_text("0")
        except OSError as why:
            raise RunError(f"{group}: {why.strerror}: is the lab still up?") from why


def check_program(name: str) -> None:
    """Refuses what is no program.

    Raises:
        NotStarted: There is no such program, or it may not be run.
    """
    if shutil.which(name) is not None:
        return
    if os.sep not in name:
        path = os.environ.get("PATH", os.defpath)
        raise NotStarted(
            f"{name}: there is no such command in PATH, which is {path} here (sudo sets its own): "
            "give the command's path",
            127,
        )
    if not os.path.exists(name):
        raise NotStarted(f"{name}: there is no such file: give a command's path", 127)
    raise NotStarted(f"{name} cannot be run: it is no program that may be executed", 126)
