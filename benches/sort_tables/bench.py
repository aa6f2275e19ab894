"""Sorts of tables side by side: Parquet, CSV and lines, by Tonnage and by others.

    sudo benches/.venv/bin/python benches/sort_tables/bench.py [--cases parquet csv] [--no-cgroup]

Each program reads the same files and writes its own format with the same codec, in turns, each run
from a cold cache into an empty directory. Outputs are checked: their order, their number of rows,
and their rows by sums of hashes. By default programs run in a memory cgroup of 1.5 GiB, which
counts the page cache; who is killed for memory is reported as such. Tonnage is limited to 512 MiB,
peers to 1 GiB: some exceed their limit, and most read and write through the page cache. Times are
to the exit; CPU seconds are of all processes.

The claims, as medians of the turns: `parquet` takes at most half of the time of the best peer, and
0.45 of DataFusion's CPU seconds; no other table of Parquet takes longer than the best peer; lines
take half of GNU sort's time and a third of its CPU seconds; CSV half of DuckDB's time and 0.35 of
its CPU seconds. Needs what `make -C benches/sort_peers` installs, root for the cgroup, 20 GB of
disk, and an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(1, str(HERE.parent / "sort_peers"))

from cases import CASES, Case, make, size  # noqa: E402
from check import Rows, is_sorted, rows_in  # noqa: E402
from processes import adopt_orphans  # noqa: E402

from measure import Sample, measure, start_cold  # noqa: E402

ROOT = HERE.parents[1]
TONNAGE = "tonnage"
GNU = "gnu sort"
PEERS = {"duckdb": "duck.py", "datafusion": "fusion.py", "polars": "polar.py"}


@dataclass(frozen=True)
class Run:
    """One run of a program on a case; `problem` is why it does not count."""

    program: str
    case: str
    turn: int
    sample: Sample
    output_bytes: int
    problem: str | None


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Sorts of tables side by side.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    names = [case.name for case in CASES]
    add("--cases", nargs="+", choices=names, default=names, metavar="CASE", help=", ".join(names))
    add("--programs", nargs="+", default=[TONNAGE, *PEERS, GNU], metavar="NAME")
    add("--turns", type=int, default=3)
    add("--scale", type=float, default=1.0, help="share of the rows, to try it out")
    add("--cgroup-mib", type=int, default=1536, help="memory of the cgroup")
    add("--peer-mib", type=int, default=1024, help="the limit that peers get; some exceed it")
    add("--own-mib", type=int, default=512, help="the limit that tonnage gets")
    add("--no-cgroup", action="store_true")
    add("--threads", type=int, default=2)
    add("--timeout", type=float, default=900)
    add("--directory", type=Path, default=HERE / "tmp")
    add("--results", type=Path, default=HERE / "results")
    add("--tonnage", type=Path, default=ROOT / ".venv/bin/tonnage")
    return parser.parse_args(arguments)


def programs_of(case: Case, wanted: list[str]) -> list[str]:
    """Who can sort a case in its own format."""
    able = {
        "parquet": [TONNAGE, *PEERS],
        "csv": [TONNAGE, *PEERS],
        "lines": [TONNAGE, GNU],
    }[case.format]
    return [name for name in able if name in wanted]


def command_of(
    program: str, case: Case, source: Path, output: Path, scratch: Path, given: argparse.Namespace
) -> list[str]:
    files = sorted(str(path) for path in source.iterdir() if path.name[0] not in "._")
    if program == GNU:
        share = f"{given.peer_mib // 2}M"
        flags = [f"--parallel={given.threads}", "-S", share, "-T", str(scratch)]
        return ["sort", *flags, "-o", str(output / "out.txt"), *files]
    if program == TONNAGE:
        by = ["--by", ",".join(case.keys) or "line"]
        memory = ["--memory", f"{given.own_mib}MiB"]
        places = ["--output", str(output), "--scratch", str(scratch)]
        return [str(given.tonnage), "run", "sort", *files, *by, *places, *memory]
    arguments = [case.format, source, output, given.peer_mib, given.threads, *case.keys]
    return [sys.executable, str(HERE / "peers" / PEERS[program]), *map(str, arguments)]


def run_once(
    program: str, case: Case, turn: int, source: Path, expected: Rows, given: argparse.Namespace
) -> Run:
    output, scratch = given.directory / "output", given.directory / "scratch"
    for directory in (output, scratch):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    for path in source.iterdir():
        start_cold(path)
    environment = os.environ | {"LC_ALL": "C", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as strays:
        sample = measure(
            command_of(program, case, source, output, scratch, given),
            environment | {"TMPDIR": strays},
            given.directory / "log.txt",
            given.timeout,
            None if given.no_cgroup else given.cgroup_mib << 20,
        )
    problem = problem_of(sample) or wrong(output, case, expected)
    written = size(output) if problem is None else 0
    return Run(program, case.name, turn, sample, written, problem)


def problem_of(sample: Sample) -> str | None:
    if sample.oom_kills or sample.exit_code in (-9, 137):
        return "killed for memory"
    if sample.timed_out:
        return "too slow"
    if sample.exit_code:
        return f"failed: {sample.log_tail[-1] if sample.log_tail else sample.exit_code}"
    return None


def wrong(output: Path, case: Case, expected: Rows) -> str | None:
    found = rows_in(output, case.format)
    if found != expected:
        return f"other rows: {found.count} instead of {expected.count}, or changed"
    keys = case.keys or ("line",)
    return None if is_sorted(output, case.format, keys) else "not in order"


def versions(given: argparse.Namespace) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    gnu = subprocess.run(["sort", "--version"], capture_output=True, text=True, check=True)
    own = subprocess.run([given.tonnage, "--version"], capture_output=True, text=True, check=True)
    return found | {GNU: gnu.stdout.split()[3], TONNAGE: own.stdout.strip()}


def table(runs: list[Run]) -> list[str]:
    """A line for each program of each case: medians, ranges, peaks."""
    lines = []
    for case in dict.fromkeys(run.case for run in runs):
        lines.append(f"{case}")
        for program in dict.fromkeys(run.program for run in runs if run.case == case):
            mine = [run for run in runs if (run.case, run.program) == (case, program)]
            fine = [run.sample for run in mine if run.problem is None]
            if not fine:
                lines.append(f"  {program:<12} {mine[0].problem}")
                continue
            walls = [sample.wall_seconds for sample in fine]
            cpus = [sample.cpu_seconds for sample in fine]
            peak = max(sample.peak_rss_bytes for sample in fine) >> 20
            lines.append(
                f"  {program:<12} {statistics.median(walls):6.2f} s [{min(walls):.2f} .. "
                f"{max(walls):.2f}]  {statistics.median(cpus):6.2f} CPU s [{min(cpus):.2f} .. "
                f"{max(cpus):.2f}]  {peak} MiB  {mine[0].output_bytes / 1e6:.0f} MB"
                + (f"  ({len(mine) - len(fine)} runs failed)" if len(fine) < len(mine) else "")
            )
    return lines


def main() -> None:
    given = parse(sys.argv[1:])
    adopt_orphans()
    given.directory.mkdir(parents=True, exist_ok=True)
    given.results.mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    result = given.results / f"{stamp}.json"
    for case in (case for case in CASES if case.name in given.cases):
        source = make(case, int(case.rows * given.scale), given.directory)
        expected = rows_in(source, case.format)
        for turn in range(given.turns):
            for program in programs_of(case, given.programs):
                runs.append(run_once(program, case, turn, source, expected, given))
                record: dict[str, Any] = {
                    "versions": versions(given),
                    "options": {key: str(value) for key, value in vars(given).items()},
                    "runs": [asdict(run) for run in runs],
                }
                result.write_text(json.dumps(record, indent=1))
                print(case.name, table(runs[-1:])[-1], flush=True)
    print(
        "\n".join([*(f"{name} {found}" for name, found in versions(given).items()), *table(runs)])
    )


if __name__ == "__main__":
    main()
