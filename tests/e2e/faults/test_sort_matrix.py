"""Faults in either pass of a sort: the output is right, or the error names what is lost.

A case is drawn from a seed (`support.lab.fault_case`): one of seven faults, in pass one or two, on
one of four machines with real disks and links. It starts once a share of the pass's bytes is
written, with copies or without, of shared input or of input on each machine's own disk. The output
has to pass `tonnage valsort` and Hadoop's TeraValidate with the input's checksum. If a machine's
own input is lost with it, the error has to name it. Once the machine is back, the same command has
to resume and produce the right output. No command may hang.

``TONNAGE_FAULT_SEEDS`` says which: ``0:8`` if it is not given, which is one of each fault and both
passes; ``0:100`` is `make test-faults`; ``17`` is one alone. A case that fails tells how to run it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cli.processes import RunningCommand
from support.hadoop import tools as hadoop
from support.lab.checks import needs_lab
from support.lab.fault_case import Case, drawn
from support.lab.faulty_lab import NODES, FaultyLab, faulty_lab
from support.stores.disk import disk_dir
from tonnage.run.sort.gensort import generate, validate
from tonnage.run.sort.local import Layout

VARIABLE = "TONNAGE_FAULT_SEEDS"
FIRST, _, END = os.environ.get(VARIABLE, "0:8").partition(":")
SEEDS = range(int(FIRST), int(END or int(FIRST) + 1))

RECORDS = 250_000
"""Of each machine."""
PATIENCE_SECONDS = 5
WATCHDOG_SECONDS = 150
"""A command that takes so long hangs: a whole one takes a tenth of it."""
NAMED = r"no remaining node can read bytes \d+ to \d+ of \S+ on (n-\d) \(lost: "

pytestmark = [pytest.mark.slow, needs_lab, pytest.mark.hadoop, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Arena:
    """Where cases are run."""

    lab: FaultyLab
    teravalidate: Callable[[Path], hadoop.Validation]
    shared: Path
    """An input that all machines see."""
    tonnage: Tonnage
    given: dict[str, Any]
    """Records, bytes and checksum of the input, which is the same either way."""
    wrong: list[Case] = field(default_factory=list)
    """Faults that were injected and are not repaired yet."""

    @property
    def own(self) -> str:
        """Each machine's input."""
        return f"{self.lab.disk}/in"

    def give(self, number: int) -> None:
        """Gives a machine its own input, which is another one for each."""
        place = Path(self.own.format(node=self.lab.nodes[number].name))
        place.mkdir()
        generate(RECORDS, [place / "f"], start=number * RECORDS)

    def command(self, case: Case, room: Path) -> list[str | Path]:
        """The sort."""
        disk = self.lab.disk
        return [
            *(self.tonnage.path, "run", "sort", self.own if case.has_own_input else self.shared),
            *("--output", f"{disk}/out", "--scratch", f"{disk}/scratch", "--cluster", "auto"),
            *("--job-dir", room / "job", "--memory", "16MiB", "--timeout", f"{PATIENCE_SECONDS}s"),
            *("--durability", case.durability, "--json"),
        ]


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    """One lab for all cases, with the input."""
    tonnage = Tonnage()
    with disk_dir("faults-") as place, faulty_lab(place) as lab, hadoop.judge() as teravalidate:
        shared = place / "in"
        shared.mkdir()
        generate(NODES * RECORDS, [shared / f"f{number}" for number in range(3)])
        given = validate([shared], layout=Layout())
        made = Arena(lab, teravalidate, shared, tonnage, given)
        for number in range(NODES):
            made.give(number)
        yield made


@pytest.mark.parametrize("case", [drawn(seed, NODES) for seed in SEEDS], ids=lambda each: each.seed)
def test_the_output_is_right_or_what_is_lost_is_named(arena: Arena, disk: Path, case: Case) -> None:
    began = time.monotonic()
    try:
        with arena.lab.start_on_head(arena.command(case, disk)) as run:
            inject(arena, case, run)
            code, said = ended(arena.lab, run)
        what = "whole"
        if case.fault == "kill driver":
            repair(arena, case)
            code, said = again(arena, case, disk)
        elif code:
            assert case.may_lose, f"ended with {code}: {said}"
            found = re.search(NAMED, said)
            assert code == 1 and found, f"ended with {code}: {said}"
            assert int(found[1].removeprefix("n-")) in (case.node, case.other), said
            what = f"names what is lost ({found[0]}...)"
            repair(arena, case)
            code, said = again(arena, case, disk)
            what += ", then whole"
        judged(arena, disk, case)
        node = arena.lab.nodes[case.node].name
        assert node in lost(disk) or not case.is_felt, "nobody noticed"
        print(f"{case}: {what}, {time.monotonic() - began:.0f} s")
    except AssertionError as why:
        raise AssertionError(
            f"{case}\n{VARIABLE}={case.seed} pytest {Path(__file__).name}\n{why}\n{told(disk)}"
        ) from why
    finally:
        repair(arena, case)
        for node in arena.lab.nodes:
            for name in ("out", "scratch"):
                shutil.rmtree(Path(arena.lab.disk.format(node=node.name)) / name, True)


def inject(arena: Arena, case: Case, run: RunningCommand) -> None:
    """Inject the case's fault once enough bytes are written."""
    lab, node = arena.lab, case.node
    at = lab.written_bytes + case.threshold * arena.given["bytes"]
    run.wait_until(lambda: lab.written_bytes >= at)
    arena.wrong.append(case)
    if case.fault == "kill agent":
        lab.kill_agent(node)
    elif case.fault == "kill raylet":
        (lab.kill_all if case.is_whole else lab.kill_raylet)(node)
    elif case.fault == "cut link":
        lab.cut(node) if case.is_whole else lab.cut_pair(node, case.other)
    elif case.fault == "disk full":
        lab.fill(node)
    elif case.fault == "disk error":
        lab.break_disk(node, case.left)
    elif case.fault == "hang":
        lab.freeze_agent(node)
    else:
        run.process.send_signal(signal.SIGKILL)


def repair(arena: Arena, case: Case) -> None:
    """Undo the fault; a lost node is back with what its disk has, if that works."""
    if not arena.wrong:
        return
    lab = arena.lab
    if case.fault == "disk full":
        lab.free(case.node)
    elif case.fault == "disk error":
        lab.restore_disk(case.node)
    elif case.fault == "cut link":
        lab.restore_pair(case.node, case.other)
    if case.fault in ("kill raylet", "cut link", "disk error"):
        lab.restart(case.node)
    arena.wrong.clear()


def again(arena: Arena, case: Case, disk: Path) -> tuple[int, str]:
    """The same command once more, with nothing wrong any more; it has to be right now."""
    with arena.lab.start_on_head(arena.command(case, disk)) as run:
        code, said = ended(arena.lab, run)
    assert code == 0, f"once more it ended with {code}: {said}"
    return code, said


def ended(lab: FaultyLab, run: RunningCommand) -> tuple[int, str]:
    """A command's exit code, and what it said of it; it does not hang."""
    try:
        _, said = run.process.communicate(timeout=WATCHDOG_SECONDS)
    except subprocess.TimeoutExpired:
        where = lab.thread_stacks()
        run.process.kill()
        raise AssertionError(f"it hangs:\n{where}") from None
    return run.process.returncode, said


def judged(arena: Arena, disk: Path, case: Case) -> None:
    """The output is the input, sorted; copies are on other machines; scratch is empty."""
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    record = json.loads((disk / "job" / "run.json").read_text())
    places = sorted({Path(each["path"]).parent for each in listed})
    found = json.loads(arena.tonnage.run("valsort", *places, "--json", check=True).stdout)
    for name in ("records", "checksum"):
        assert found[name] == record[name] == arena.given[name]
    with disk_dir("links-") as links:
        for each in listed:
            (links / Path(each["path"]).name).symlink_to(each["path"])
        assert arena.teravalidate(links) == hadoop.Validation(True, arena.given["checksum"], [])
    for each in listed if case.durability == "replicated" else []:
        assert each["copy"]["node"] != each["node"]
        assert Path(each["copy"]["path"]).read_bytes() == Path(each["path"]).read_bytes()
    for each in record["nodes"]:
        if each["lost"] is None:
            scratch = Path(arena.lab.disk.format(node=each["node"])) / "scratch"
            assert list(scratch.iterdir()) == []


def lost(disk: Path) -> set[str]:
    """The machines that were lost at some time, if only for a while."""
    events = json.loads((disk / "job" / "rounds.json").read_text())
    return {event["node"] for event in events if event["event"] == "lost"}


def told(disk: Path) -> str:
    """What is on file of a job."""
    lines = []
    for name in ("rounds.json", "sorted.json", "run.json"):
        with suppress(FileNotFoundError):
            events: list[dict[str, Any]] = json.loads((disk / "job" / name).read_text())
            if name == "rounds.json":
                lines += [str({**each, "told": "..."})[:600] for each in events]
            else:
                lines.append(f"{name} is there")
    return "\n".join(lines)
