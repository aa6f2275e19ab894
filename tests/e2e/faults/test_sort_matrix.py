"""Whatever befalls a fleet in either pass of a sort, the output is right, or what is lost is named.

A case is drawn from a seed (`support.cases`): one of seven faults, in pass one or two, on one of
four machines with real disks and links, when a share of the pass's bytes is written, with copies or
without, of input that all have or of each one's own. The output has to pass `tonnage valsort` and
Hadoop's TeraValidate with the input's checksum; where a machine took its own input with it, the
error has to name that, and once the machine is back the same command has to go on to the right
output. No command may hang.

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

from support import hadoop
from support.cases import Case, drawn
from support.command import Tonnage
from support.disk import disk_dir
from support.faulty_lab import NODES, FaultyLab, faulty_lab
from support.labs import needs_lab
from support.processes import RunningCommand
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
NAMED = r"nobody can read bytes \d+ to \d+ of \S+ on (n-\d) any more \(lost: "

pytestmark = [needs_lab, pytest.mark.hadoop, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Arena:
    """Where cases are run."""

    fleet: FaultyLab
    teravalidate: Callable[[Path], hadoop.Validation]
    shared: Path
    """An input that all machines see."""
    tonnage: Tonnage
    given: dict[str, Any]
    """Records, bytes and checksum of the input, which is the same either way."""
    wrong: list[Case] = field(default_factory=list)
    """What has befallen, and is not mended yet."""

    @property
    def own(self) -> str:
        """Each machine's input."""
        return f"{self.fleet.disk}/in"

    def give(self, number: int) -> None:
        """Gives a machine its own input, which is another one for each."""
        place = Path(self.own.format(node=self.fleet.nodes[number].name))
        place.mkdir()
        generate(RECORDS, [place / "f"], start=number * RECORDS)

    def command(self, case: Case, room: Path) -> list[str | Path]:
        """The sort."""
        disk = self.fleet.disk
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
    with disk_dir("faults-") as place, faulty_lab(place) as fleet, hadoop.judge() as teravalidate:
        shared = place / "in"
        shared.mkdir()
        generate(NODES * RECORDS, [shared / f"f{number}" for number in range(3)])
        given = validate([shared], layout=Layout())
        made = Arena(fleet, teravalidate, shared, tonnage, given)
        for number in range(NODES):
            made.give(number)
        yield made


@pytest.mark.parametrize("case", [drawn(seed, NODES) for seed in SEEDS], ids=lambda each: each.seed)
def test_the_output_is_right_or_what_is_lost_is_named(arena: Arena, disk: Path, case: Case) -> None:
    began = time.monotonic()
    try:
        with arena.fleet.start_on_head(arena.command(case, disk)) as run:
            befall(arena, case, run)
            code, said = ended(arena.fleet, run)
        what = "whole"
        if case.fault == "kill driver":
            mend(arena, case)
            code, said = again(arena, case, disk)
        elif code:
            assert case.may_lose, f"ended with {code}: {said}"
            found = re.search(NAMED, said)
            assert code == 1 and found, f"ended with {code}: {said}"
            assert int(found[1].removeprefix("n-")) in (case.node, case.other), said
            what = f"names what is lost ({found[0]}...)"
            mend(arena, case)
            code, said = again(arena, case, disk)
            what += ", then whole"
        judged(arena, disk, case)
        node = arena.fleet.nodes[case.node].name
        assert node in lost(disk) or not case.is_felt, "nobody noticed"
        print(f"{case}: {what}, {time.monotonic() - began:.0f} s")
    except AssertionError as why:
        raise AssertionError(
            f"{case}\n{VARIABLE}={case.seed} pytest {Path(__file__).name}\n{why}\n{told(disk)}"
        ) from why
    finally:
        mend(arena, case)
        for node in arena.fleet.nodes:
            for name in ("out", "scratch"):
                shutil.rmtree(Path(arena.fleet.disk.format(node=node.name)) / name, True)


def befall(arena: Arena, case: Case, run: RunningCommand) -> None:
    """Has it happen when it is to."""
    fleet, node = arena.fleet, case.node
    at = fleet.written_bytes + case.threshold * arena.given["bytes"]
    run.wait_until(lambda: fleet.written_bytes >= at)
    arena.wrong.append(case)
    if case.fault == "kill agent":
        fleet.kill_agent(node)
    elif case.fault == "kill raylet":
        (fleet.kill_all if case.is_whole else fleet.kill_raylet)(node)
    elif case.fault == "cut link":
        fleet.cut(node) if case.is_whole else fleet.cut_pair(node, case.other)
    elif case.fault == "disk full":
        fleet.fill(node)
    elif case.fault == "disk error":
        fleet.break_disk(node, case.left)
    elif case.fault == "hang":
        fleet.freeze_agent(node)
    else:
        run.process.send_signal(signal.SIGKILL)


def mend(arena: Arena, case: Case) -> None:
    """Has all be as it was before; who was gone is back with what its disk has, if that is well."""
    if not arena.wrong:
        return
    fleet = arena.fleet
    if case.fault == "disk full":
        fleet.free(case.node)
    elif case.fault == "disk error":
        fleet.restore_disk(case.node)
    elif case.fault == "cut link":
        fleet.restore_pair(case.node, case.other)
    if case.fault in ("kill raylet", "cut link", "disk error"):
        fleet.restart(case.node)
    arena.wrong.clear()


def again(arena: Arena, case: Case, disk: Path) -> tuple[int, str]:
    """The same command once more, with nothing wrong any more; it has to be right now."""
    with arena.fleet.start_on_head(arena.command(case, disk)) as run:
        code, said = ended(arena.fleet, run)
    assert code == 0, f"once more it ended with {code}: {said}"
    return code, said


def ended(fleet: FaultyLab, run: RunningCommand) -> tuple[int, str]:
    """A command's exit code, and what it said of it; it does not hang."""
    try:
        _, said = run.process.communicate(timeout=WATCHDOG_SECONDS)
    except subprocess.TimeoutExpired:
        where = fleet.thread_stacks()
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
            scratch = Path(arena.fleet.disk.format(node=each["node"])) / "scratch"
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
