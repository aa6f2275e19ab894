"""External sorts side by side on one machine; README.md describes what is measured, and how.

- `python3 bench.py`: everything, inside a memory cgroup of 1.5 GiB
- `python3 bench.py --no-cgroup`: the same work, without a limit on the page cache
- `python3 bench.py --smoke`: whatever is installed, at 20 MB, to check that it still runs
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import host
from cgroup import CgroupError
from processes import adopt_orphans
from roster import FLOOR, HERE, ROSTER, TONNAGE, Peer, environment
from validate import Summary, summarize, validate

from measure import measure, start_cold
from report import Run, claims, render, rows

RECORD_BYTES = 100
STARTED = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
DEFAULT_TONNAGE = HERE.parents[1] / ".venv/bin/tonnage"


class Unready(Exception):
    """Something is missing; the message states what to do."""


@dataclass(frozen=True)
class Options:
    """All options of a benchmark."""

    records: int
    peers: list[Peer]
    own_runs: int
    peer_runs: int
    memory_mib: int
    cgroup: bool
    cpus: int
    timeout_seconds: float
    directory: Path
    results: Path
    tonnage: Path
    smoke: bool

    def runs_of(self, peer: Peer) -> int:
        return self.own_runs if peer.name in (TONNAGE, FLOOR) else self.peer_runs


@dataclass(frozen=True)
class Input:
    path: Path
    summary: Summary


def parse(arguments: Sequence[str]) -> Options:
    names = [peer.name for peer in ROSTER]
    parser = argparse.ArgumentParser(
        description="External sorts side by side.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--smoke", action="store_true", help="one run of whatever is installed, at 20 MB")
    add("--records", type=int, default=20_000_000, help="records of 100 bytes")
    add("--peers", type=lambda text: text.split(","), default=names, help="comma-separated names")
    add("--runs", type=int, default=5, help="runs of tonnage and of the floor")
    add("--peer-runs", type=int, default=3, help="runs of every other peer")
    add(
        "--memory-mib",
        type=int,
        default=1536,
        help="limit of the cgroup, and the memory that peers get",
    )
    add("--no-cgroup", action="store_true", help="without a memory limit and page cache counts")
    add("--cpus", type=int, default=2, help="CPUs for each program")
    add("--timeout", type=float, default=300, help="seconds after which a run is stopped")
    add("--directory", type=Path, default=HERE / "tmp", help="for input, output and scratch files")
    add("--results", type=Path, default=HERE / "results", help="directory of the JSON results")
    add(
        "--tonnage",
        type=Path,
        default=DEFAULT_TONNAGE,
        help="the command, which also makes the input and validates",
    )
    given = parser.parse_args(arguments)
    if unknown := set(given.peers) - set(names):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return Options(
        records=200_000 if given.smoke else given.records,
        peers=[peer for peer in ROSTER if peer.name in given.peers],
        own_runs=1 if given.smoke else given.runs,
        peer_runs=1 if given.smoke else given.peer_runs,
        memory_mib=given.memory_mib,
        cgroup=not given.no_cgroup,
        cpus=given.cpus,
        timeout_seconds=given.timeout,
        directory=given.directory.resolve(),
        results=given.results.resolve(),
        tonnage=given.tonnage.resolve(),
        smoke=given.smoke,
    )


def find_versions(options: Options) -> dict[str, str | None]:
    found = {peer.name: peer.version(environment(options.tonnage)) for peer in options.peers}
    missing = [name for name, version in found.items() if version is None]
    if missing and not options.smoke:
        raise Unready(
            f"not installed: {', '.join(missing)}. Run `make setup` here (and `make` in the"
            " project for tonnage), or select others with --peers"
        )
    return found


def make_input(options: Options, ascii_input: bool) -> Input:
    path = options.directory / f"input-{options.records}.{'txt' if ascii_input else 'bin'}"
    if not path.exists() or path.stat().st_size != options.records * RECORD_BYTES:
        flags = ["--ascii"] if ascii_input else []
        command = [str(options.tonnage), "gensort", *flags, str(options.records), str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Input(path, summarize(options.tonnage, [path]))


def run_once(options: Options, peer: Peer, source: Input) -> Run:
    """Run a peer once, cold, in empty directories, and validate its output."""
    output, scratch = options.directory / "output", options.directory / "scratch"
    for directory in (output, scratch):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
    start_cold(source.path)
    command = [*peer.command, str(source.path), str(output), str(scratch), str(options.memory_mib)]
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as strays:
        sample = measure(
            command,
            environment(options.tonnage) | {"TMPDIR": strays},
            options.directory / "log.txt",
            options.timeout_seconds,
            options.memory_mib << 20 if options.cgroup else None,
        )
    verdict = validate(options.tonnage, output, source.summary)
    for directory in (output, scratch):
        shutil.rmtree(directory)
    return Run(peer.name, [_relative(word) for word in command], load_before, sample, verdict)


def run_rounds(options: Options, present: Sequence[Peer]) -> Iterator[Run]:
    """A B C A B C: a change of the machine's speed affects everyone."""
    inputs = {kind: make_input(options, kind) for kind in {peer.ascii_input for peer in present}}
    for number in range(max(map(options.runs_of, present))):
        for peer in present:
            if number < options.runs_of(peer):
                yield run_once(options, peer, inputs[peer.ascii_input])


def save(
    options: Options,
    versions: dict[str, str | None],
    machine: dict[str, str | int | float],
    runs: list[Run],
) -> Path:
    """Return all results as JSON values, with the raw samples."""
    table = rows(options.peers, versions, runs)
    document = {
        "benchmark": "sort_peers",
        "environment": machine,
        "records": options.records,
        "bytes": options.records * RECORD_BYTES,
        "memory_mib": options.memory_mib,
        "cgroup": options.cgroup,
        "ratio_uses": "median wall seconds until exit, without sync",
        "versions": versions,
        "notes": {peer.name: peer.note for peer in options.peers if peer.note},
        "claims": [asdict(claim) for claim in claims(table, options.cgroup)],
        "runs": [asdict(run) for run in runs],
    }
    options.results.mkdir(parents=True, exist_ok=True)
    where = "cgroup" if options.cgroup else "no-cgroup"
    path = options.results / f"{STARTED}-{options.records}-{where}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def _relative(word: str) -> str:
    """Return a path relative to the project, because results are read elsewhere."""
    root = HERE.parents[1]
    return str(Path(word).relative_to(root)) if Path(word).is_relative_to(root) else word


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    if not options.tonnage.exists():
        raise Unready(f"no {_relative(str(options.tonnage))}: build the project, or give --tonnage")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cpus])
    adopt_orphans()
    options.directory.mkdir(parents=True, exist_ok=True)
    versions = find_versions(options)
    present = [peer for peer in options.peers if versions[peer.name] is not None]
    machine = host.describe(options.directory)
    runs: list[Run] = []
    for run in run_rounds(options, present):
        runs.append(run)
        path = save(options, versions, machine, runs)
        print(f"{run.peer}: {run.sample.wall_seconds:.1f} s", file=sys.stderr, flush=True)
    table = rows(options.peers, versions, runs)
    stated = [] if options.smoke else claims(table, options.cgroup)
    print(render(table, stated))
    print(f"\nsaved as {_relative(str(path))}")
    rotten = options.smoke and not all(row.good for row in table if row.runs)
    missed = any(claim.holds is False for claim in stated)
    return 1 if rotten or missed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that SIGTERM cleans up, too
    try:
        sys.exit(main(sys.argv[1:]))
    except (Unready, CgroupError) as error:
        sys.exit(f"bench.py: {error}")
