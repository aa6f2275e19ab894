"""Accuracy of plans for four machines that are made from measurements and rehearsals on two.

    sudo .venv/bin/python benches/accuracy/bench.py [--seeds 1]

A seed is a lab of four types of machines that differ in disk, network, share of cores and price.
Four machines of one type are up at a time. The bench measures two of them (disks; the network
between two, and between all four; an object store), and rehearses each job on two of them
`--rehearsals` times, with as much input for each machine as later (jobs on the store rehearse with
the whole input, so twice as much). These results form a profile, from which `tonnage plan` makes a
plan for four machines. The plan is stored before the job runs and follows it. A second plan, from
the measurements without the rehearsals, is shown next to it. At the end `tonnage plan` chooses a
type from the profiles of all. The jobs: a sort, and a MapReduce that keeps a part of its input,
each without a replica of the output, with one, and from objects to objects (`objects`)
in a store on a machine without limits; k-means and PCA of rows on the machines' disks, whose
results are too small for several kinds of durability.

A cell is a job on a type, a row is a job on all types of a lab. The claims, over at least 24 cells:
the median error is at most 3 %, the worst 10 %, and without rehearsals 10 and 30 %; 90 % intervals
hold in 85 to 95 % of the cells; the type that `tonnage plan` chooses costs at most 3 % more than
the cheapest one, which is not the same in each row. For a plan that missed, the table names the
phase and its bottleneck. Every plan and record is stored in `--out`. Finished steps are not
repeated, and `--bytes` and `--rehearsals` must stay the same. Once all cells exist, a line is added
to `--history`, which shows drift. Needs root, Ray, what a lab needs, the tests' S3 server, and 19
GB of disk in /var/lib.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import cells
import numpy as np
import stores

from tonnage import __version__
from tonnage.base.records import ReductionRecord, RunRecord, write_atomically
from tonnage.base.records.plan import Plan
from tonnage.model.run_comparison.plan_accuracy import plan_accuracy
from tonnage.provision import lab as labs
from tonnage.provision.lab import STATE_DIR
from tonnage.provision.lab import catalog as offers
from tonnage.provision.lab.config import parse
from tonnage.run.sort.gensort import generate

HERE = Path(__file__).resolve().parent
TONNAGE = str(Path(sys.executable).parent / "tonnage")
LAB = "accuracy"
MACHINES, MEASURED = 4, 2
DISKS, LINKS, CORES = (30, 70), (15, 60), (0.25, 0.45)
"""Ranges from which a type is drawn: MB/s of disks and links, share of a core."""
USD_EACH, USD_OFF = (0.3, 0.4, 0.3), 0.1
"""Dollars an hour for the middle of each range, and how much a price may be off."""
TYPES = ("a", "b", "c", "d")
MB = 1_000_000
COLUMNS = 8
MEMORY = "256MiB"
TIMES_ROOM = 7
"""A machine's disk over its share of the input: both inputs, scratch, output, replicas, trials."""
REDUCTIONS = {
    "kmeans": ("--k", "16", "--iterations", "3", "--tolerance", "0"),
    "pca": ("--components", "8"),
}
OBJECTS = "objects"
KINDS = ("none", "replicated", OBJECTS)
JOBS = (*(f"{job} {each}" for job in ("sort", "mapreduce") for each in KINDS), *REDUCTIONS)
STORE = "store"
STORE_TIMES, STORE_BYTES = 12, 2_000 * MB
"""The store's disk: a multiple of a machine's share, for the input, an output and leftovers, and
bytes for the objects of its measurement."""
UPLOAD = HERE.parent / "cluster_sort" / "upload.py"


@dataclass(frozen=True)
class Type:
    """A type of machine: MB/s of disk and link, share of a core, dollars an hour."""

    name: str
    disk: int
    link: int
    cores: float
    usd: float

    def text(self, share: int) -> str:
        """Return it as a section of a lab's file."""
        return (
            f'[[machine]]\ntype = "{self.name}"\ncount = {MACHINES}\n'
            f"price_usd_per_hour = {self.usd}\ncpus = {self.cores}\n"
            f"link_mb_per_s = {self.link}\ndisks = [{{ size = {TIMES_ROOM * share}, "
            f'read_mb_per_s = {self.disk}, write_mb_per_s = {self.disk}, fs = "xfs" }}]\n'
        )


def drawn(seed: int) -> list[Type]:
    """Draw the types of a lab, priced by what they have, so that no type is best at every job."""
    draw = random.Random(seed)
    found = []
    for name in TYPES:
        disk, link = draw.randint(*DISKS), draw.randint(*LINKS)
        cores = round(draw.uniform(*CORES), 2)
        usd = sum(
            each * 2 * value / sum(within)
            for each, value, within in zip(
                USD_EACH, (disk, link, cores), (DISKS, LINKS, CORES), strict=True
            )
        )
        usd *= draw.uniform(1 - USD_OFF, 1 + USD_OFF)
        found.append(Type(name, disk, link, cores, round(usd, 3)))
    return found


class OnType:
    """Four machines of a type while they are up; results are stored in ``out``."""

    def __init__(self, kind: Type, out: Path, share: int, endpoint: str) -> None:
        self._kind, self._out, self._share = kind, out, share
        self._disk, self._endpoint = f"{STATE_DIR}/{LAB}/{{node}}.disk-0", endpoint

    def _tonnage(self, *command: str) -> str:
        return _on(f"{self._kind.name}-0", TONNAGE, *command)

    def lay_out(self) -> None:
        """Write each machine's records and rows, and all records to the store."""
        records, rows = self._share // 100, self._share // (8 * COLUMNS)
        files = []
        for number in range(MACHINES):
            disk = Path(self._disk.format(node=f"{self._kind.name}-{number}"))
            (disk / "records").mkdir()
            files.append(disk / "records" / "part")
            generate(records, files[-1:], start=number * records)
            (disk / "rows").mkdir()
            points = np.random.default_rng(number).random((rows, COLUMNS))
            points.tofile(disk / "rows" / "part")
        upload = (sys.executable, str(UPLOAD), self._endpoint, stores.BUCKET)
        _on(f"{STORE}-0", *upload, *map(str, files))

    def measure(self) -> None:
        """Measure disks and the store on two machines, and the network of two and of all."""
        cluster = ("--cluster", "auto", "--repetitions", "3")
        disk, net, store = (self._out / each for each in ("disk", "net", "object"))
        if not (disk / "fleet.json").exists():
            self._tonnage(
                *("measure", "disk", *cluster, "--nodes", str(MEASURED), "--dir", self._disk),
                *("--mode", "rw", "ro", "wo", "--seconds", "4", "--size", str(self._share)),
                *("--memory", MEMORY, "--output", str(disk)),
            )
        if not (net / "fleet.json").exists():
            self._tonnage(
                *("measure", "net", *cluster, "--nodes", str(MACHINES)),
                *("--sizes", str(MEASURED), str(MACHINES), "--connections", "1"),
                *("--seconds", "2", "--output", str(net)),
            )
        if not (store / "fleet.json").exists():
            self._tonnage(
                *(
                    "measure",
                    "object",
                    f"s3://{stores.BUCKET}/probe",
                    "--endpoint-url",
                    self._endpoint,
                ),
                *(*cluster, "--nodes", str(MEASURED), "--chunk-size", "8MiB", "--requests", "8"),
                *("--seconds", "2", "--output", str(store)),
            )

    def rehearse(self, job: str, number: int) -> None:
        """Run a job on two machines, unless that is done."""
        out = _rehearsal(self._out, job, number)
        self._run(job, out, "--nodes", str(MEASURED), *_durability(job))

    def follow(self, job: str, plan: Path) -> None:
        """Run a job as planned, unless that is done."""
        self._run(job, _run(self._out, job), "--plan", str(plan))

    def _run(self, job: str, out: Path, *flags: str) -> None:
        if _is_done(out):
            return
        shutil.rmtree(out, ignore_errors=True)  # It was interrupted, on another lab's disks.
        _forget()
        name, _, kind = job.partition(" ")
        rows = (f"{self._disk}/rows", "--dtype", f"{COLUMNS}f8", "--workers", "1")
        records, output = f"{self._disk}/records", f"{self._disk}/out"
        where = ["--scratch", f"{self._disk}/scratch"]
        if kind == OBJECTS:
            records, output = (f"s3://{stores.BUCKET}/{each}" for each in ("in/", "out"))
            where += ["--endpoint-url", self._endpoint]
        where += ["--output", output]
        command = {
            "sort": ("sort", records, *where),
            "mapreduce": (
                *("mapreduce", f"{HERE / 'jobs.py'}:JOB", records, *where),
                *("--input-format", "records:100"),
            ),
        }.get(name) or ("reduce", name, *rows, *REDUCTIONS[name])
        try:
            self._tonnage(
                *("run", *command, "--cluster", "auto", "--memory", MEMORY, "--job-dir", str(out)),
                *flags,
            )
        finally:
            for disk in (STATE_DIR / LAB).glob("*.disk-0"):
                for each in ("out", "scratch", f"{stores.BUCKET}/out"):
                    shutil.rmtree(disk / each, ignore_errors=True)


def _forget() -> None:
    """Write back dirty pages and empty the page cache, so that jobs read from the disks."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


class Planner:
    """Plans jobs on four machines of a lab, from the measurements of its types."""

    def __init__(self, catalog: Path, share: int) -> None:
        self._catalog, self._share = ("--catalog", str(catalog)), share

    def profile(self, of_type: Path, name: str, *, rehearsed: bool) -> Path:
        """Write the profile of a type, with its rehearsals or without."""
        measured = [of_type / each for each in ("disk", "net", "object")]
        measured += of_type.glob("*-rehearsal-*") if rehearsed else []
        file = of_type / name
        _tonnage("profile", *map(str, measured), *self._catalog, "--output", str(file))
        return file

    def plan(self, job: str, file: Path, of_type: Path, *profiles: Path) -> Plan:
        """Read the plan in this file, after making it if it does not exist."""
        if not file.exists():
            what = ["sort", *(_durability(job) or ["--from", "objects"])]
            if not job.startswith("sort"):  # Only a record has the demands of functions.
                what = [str(_record(_rehearsal(of_type, job, 0)))]
            given = [part for each in profiles for part in ("--profile", str(each))]
            made = _tonnage(
                *("plan", *what, "--data", str(MACHINES * self._share), "--nodes", str(MACHINES)),
                *(*self._catalog, *given, "--json"),
            )
            write_atomically(file, made.encode())
        return Plan.read(file)


def _tonnage(*command: str) -> str:
    """Run a command here, without the lab; return its output."""
    return subprocess.run([TONNAGE, *command], stdout=subprocess.PIPE, check=True).stdout.decode()


def _on(node: str, *command: str) -> str:
    """Run a command on a machine of the lab; return its output."""
    line = [TONNAGE, "lab", "exec", "--lab", LAB, node, "--", *command]
    return subprocess.run(line, stdout=subprocess.PIPE, check=True).stdout.decode()


def _durability(job: str) -> tuple[str, ...]:
    """Return the flags of a job's durability; output in a store needs none."""
    kind = job.partition(" ")[2]
    return ("--durability", kind) if kind not in ("", OBJECTS) else ()


def _rehearsal(of_type: Path, job: str, number: int) -> Path:
    return of_type / f"{job.replace(' ', '-')}-rehearsal-{number}"


def _run(of_type: Path, job: str) -> Path:
    return of_type / f"{job.replace(' ', '-')}-run"


def _record(out: Path) -> Path:
    return next(path for path in map(out.joinpath, ("run.json", "reduction.json")) if path.exists())


def _is_done(out: Path) -> bool:
    return any((out / name).exists() for name in ("run.json", "reduction.json"))


@contextmanager
def standing(kind: Type, share: int) -> Iterator[str]:
    """Start four machines of a type with Ray, and a store; yields the store's address."""
    store = f'[[machine]]\ntype = "{STORE}"\nprice_usd_per_hour = 1\n'
    store += f'disks = [{{ size = {STORE_TIMES * share + STORE_BYTES}, fs = "xfs" }}]\n'
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(f'[lab]\nname = "{LAB}"\n{kind.text(share)}{store}')
        file.flush()
        subprocess.run([TONNAGE, "lab", "up", file.name], check=True, stdout=subprocess.DEVNULL)
    with ExitStack() as stack:
        stack.callback(subprocess.run, [TONNAGE, "lab", "down", "--lab", LAB], check=True)
        os.environ.update(stores.KEYS)
        ray = [TONNAGE, "lab", "ray", "--lab", LAB]
        subprocess.run(ray, check=True, stdout=subprocess.DEVNULL)
        (node,) = (
            each
            for each in labs.require_up(STATE_DIR, LAB).nodes(STATE_DIR)
            if each.name == f"{STORE}-0"
        )
        yield stack.enter_context(stores.served_on(LAB, node, node.devices[0].mount))


def lab(seed: int, options: argparse.Namespace) -> list[cells.Cell]:
    """Do what is not done yet in the lab of a seed; return its cells."""
    out = options.out / f"seed-{seed}"
    kinds = drawn(seed)[: options.types]
    out.mkdir(parents=True, exist_ok=True)
    text = f'[lab]\nname = "{LAB}"\n' + "".join(each.text(options.bytes) for each in kinds)
    catalog = offers.write(out, parse(text, "lab.toml"))
    _refuse_other(out / "asked.json", {"bytes": options.bytes, "rehearsals": options.rehearsals})
    planner = Planner(catalog, options.bytes)
    for kind in kinds:
        here = out / kind.name
        here.mkdir(exist_ok=True)
        if not all(_is_done(_run(here, job)) for job in options.jobs):
            with standing(kind, options.bytes) as endpoint:
                on = OnType(kind, here, options.bytes, endpoint)
                on.lay_out()
                on.measure()
                for job in options.jobs:
                    for number in range(options.rehearsals):
                        on.rehearse(job, number)
                profile = planner.profile(here, "profile.json", rehearsed=True)
                for job in options.jobs:
                    file = here / f"{job.replace(' ', '-')}-plan.json"
                    planner.plan(job, file, here, profile)
                    on.follow(job, file)
    return [cell for job in options.jobs for cell in row(seed, job, kinds, out, planner)]


def row(
    seed: int, job: str, kinds: list[Type], out: Path, planner: Planner
) -> Iterator[cells.Cell]:
    """Yield the cells of a job on all types of a lab, with the type that the plan chooses."""
    profiles = [out / kind.name / "profile.json" for kind in kinds]
    file = out / f"{job.replace(' ', '-')}-plan-of-{'-'.join(kind.name for kind in kinds)}.json"
    chosen = planner.plan(job, file, out / kinds[0].name, *profiles).candidates[0].offer
    for kind in kinds:
        here = out / kind.name
        alone = planner.profile(here, "measured.json", rehearsed=False)
        file = here / f"{job.replace(' ', '-')}-measured-plan.json"
        unrehearsed = planner.plan(job, file, here, alone).candidates
        read = ReductionRecord.read if job in REDUCTIONS else RunRecord.read
        record = read(_record(_run(here, job)))
        yield cells.Cell(
            seed=seed,
            kind=kind.name,
            job=job,
            began_at=record.began_at,
            cpu=record.environment.cpu_model,
            accuracy=plan_accuracy(record),
            unrehearsed_seconds=unrehearsed[0].seconds.median if unrehearsed else None,
            chosen=kind.name == chosen,
        )


def _refuse_other(file: Path, asked: dict[str, int]) -> None:
    """Refuse to continue with options that differ from those of earlier results."""
    if file.exists() and (before := json.loads(file.read_text())) != asked:
        raise SystemExit(f"{file.parent} was made with {before}: use these, or another --out")
    file.write_text(json.dumps(asked))


def _lines(history: Path) -> list[str]:
    return history.read_text().splitlines(keepends=True) if history.exists() else []


def main() -> int:
    """Do what is not done yet, print the cells and claims, add to the history."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--types", type=int, default=len(TYPES), help="number of types of each lab")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument(
        "--bytes", type=int, default=400 * MB, help="bytes of input for each machine"
    )
    parser.add_argument("--rehearsals", type=int, choices=range(1, 10), default=2)
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "target" / "accuracy")
    parser.add_argument("--history", type=Path, default=HERE / "history.jsonl")
    options = parser.parse_args()
    found = [cell for seed in options.seeds for cell in lab(seed, options)]
    print("\n".join(cells.render(found)))
    claims = cells.claims(found)
    asked = {name: getattr(options, name) for name in ("seeds", "types", "jobs", "bytes")}
    line = cells.in_history(
        found, {"version": __version__, **asked, "rehearsals": options.rehearsals}
    )
    if len(found) >= cells.CELLS and line not in _lines(options.history):
        with options.history.open("a") as file:
            file.write(line)
    return int(not all(claim.holds for claim in claims))


if __name__ == "__main__":
    sys.exit(main())
