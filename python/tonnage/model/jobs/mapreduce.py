"""Two-pass MapReduce; sorting is the special case of selectivity 1.

Themis on EC2, section 3.3: the first pass reads, maps, shuffles and writes partitions, the second
reads, sorts, reduces and writes. Each record is read and written exactly twice (2-IO). For an input
of D bytes on all nodes, M = ``map_share`` D bytes leave the map, and R = ``reduce_share`` M bytes
leave the reduction:

    map and shuffle    max(D / read, M / network, M / write)              equation 1
    sort and reduce    max(M / read, R / write)                           equation 3
    replicated         max(M / read, R / network, 2 R / write)            equation 8
    volumes, objects   D and R there, M on local disks                    equations 10 and 11

A sort copies its output while it writes; a MapReduce, whose functions write their own files, copies
them afterwards, in a phase of its own.

The core of a sort reads and writes while it computes. A MapReduce's threads, which call its
functions, read their input and write their output themselves, in turn with their other work.

CPU work is added if a profile has the throughput of a core. Reading and writing of a pass share the
devices, so both are divided by the mixed rate (equation 5); rates that were measured separately
apply separately.
"""

from msgspec import structs

from tonnage.base.records import RunRecord
from tonnage.base.records.durability import Durability
from tonnage.base.records.job import Demand, Job, JobPhase, RequestDemand, Resource, SpaceDemand
from tonnage.base.records.location import Location
from tonnage.model.jobs.locations import READS, SPACES, WRITES
from tonnage.model.run_phases import (
    durability_of,
    functions_of,
    locations_of,
    name_of,
    observed_phases,
)

GET_BYTES, PUT_BYTES = 16 << 20, 64 << 20
"""Bytes of a sort's longest requests to an object store (`RANGE_BYTES` and `PART_BYTES` of the
core's graphs::memory_plan); with little memory they are shorter."""
READ_BYTES = 4 << 20
"""The same of a MapReduce's gets, whose formats choose their own sizes: assumed."""
STUDY = "Themis on EC2"
THIRD_PASS = "third pass"
COPY = "copy"
COPIED = "a MapReduce copies its output to other nodes when all of it is written"
DIVIDED = "memory does not suffice for two passes, so all partitions are divided once more"
CORES = "all input is partitioned, and then sorted"


def mapreduce_job(
    durability: Durability = "none",
    *,
    read_from: Location = "local",
    written_to: Location = "local",
    map_share: float = 1.0,
    reduce_share: float = 1.0,
    name: str = "mapreduce",
) -> Job:
    """A MapReduce; shares are bytes of output for each byte of a function's input.

    ``replicated`` keeps a second copy of the output on another node.

    Raises:
        ValueError: A share is not positive, or the output is replicated outside local disks.
    """
    for share in (map_share, reduce_share):
        if not 0 < share < float("inf"):
            raise ValueError(
                f"map_share and reduce_share must be greater than 0, but one is {share}"
            )
    copies = 2 if durability == "replicated" else 1
    if copies > 1 and written_to != "local":
        raise ValueError(f"only output on local disks is replicated, not that on {written_to}")
    made, out = map_share, map_share * reduce_share
    apart = (read_from, written_to) != ("local", "local")
    first, second = ("equation 10", "equation 11") if apart else ("equation 1", "equation 3")
    by_threads = name != "sort"
    map_phase = [
        structs.replace(_demand(READS[read_from], 1.0, first), in_turn=by_threads),
        structs.replace(_demand("network", made, first), shuffled=True),
        _demand("local write", made, first),
        Demand(resource="cpu partition", per_byte=1.0, source=CORES),
    ]
    if read_from == "objects":
        map_phase.append(_demand("cpu object", 1.0, first))
    reduce_phase = [
        _demand("local read", made, second),
        Demand(resource="cpu sort", per_byte=made, source=CORES),
    ]
    phases = [
        JobPhase(name="map and shuffle", demands=map_phase),
        JobPhase(name="sort and reduce", demands=reduce_phase),
    ]
    if copies > 1 and name == "sort":
        reduce_phase.append(_demand("network", out, "equation 8"))
        reduce_phase.append(_demand("cpu copy", out, "equation 8"))
        reduce_phase.append(_demand("local write", copies * out, "equation 8"))
    else:
        written = _demand(WRITES[written_to], out, second)
        reduce_phase.append(structs.replace(written, in_turn=by_threads))
    if copies > 1 and name != "sort":
        moved: list[Resource] = ["local read", "network", "cpu copy", "local write"]
        copied = [Demand(resource=each, per_byte=out, source=COPIED) for each in moved]
        phases.append(JobPhase(name=COPY, demands=copied))
    if written_to == "objects":
        reduce_phase.append(_demand("cpu object", out, second))
    requests = []
    if read_from == "objects":
        get_bytes = GET_BYTES if name == "sort" else READ_BYTES
        requests.append(RequestDemand(kind="get", per_byte=1.0 / get_bytes))
    if written_to == "objects":
        requests.append(RequestDemand(kind="put", per_byte=out / PUT_BYTES))
    return Job(
        name=name,
        phases=phases,
        # As the study counts it: a 100 TB sort needs 300 TB (section 4.2.3).
        room=[
            SpaceDemand(where=SPACES[read_from], what="input", per_byte=1.0),
            SpaceDemand(where="local", what="intermediate", per_byte=made),
            SpaceDemand(where=SPACES[written_to], what="output", per_byte=copies * out),
        ],
        requests=requests,
        settings={
            "durability": durability,
            "from": read_from,
            "to": written_to,
            "map_share": map_share,
            "reduce_share": reduce_share,
        },
    )


def sort_job(
    durability: Durability = "none",
    *,
    read_from: Location = "local",
    written_to: Location = "local",
) -> Job:
    """A sort: a MapReduce of selectivity 1 (equations 2 and 4)."""
    return mapreduce_job(durability, read_from=read_from, written_to=written_to, name="sort")


def third_pass_job(job: Job) -> Job:
    """The job where memory does not suffice for two passes: all partitions are divided once more.

    What the first pass wrote is read, partitioned and written again, each on its own node.
    """
    made = float(job.settings.get("map_share", 1.0))
    first, *others = job.phases
    demands = [
        Demand(resource=resource, per_byte=made, source=DIVIDED)
        for resource in ("local read", "local write", "cpu partition")
    ]
    again = JobPhase(name=THIRD_PASS, demands=demands)
    return structs.replace(job, phases=[first, again, *others])


def job_from_run(record: RunRecord) -> Job:
    """The job that repeats a finished sort or MapReduce; `ValueError` if it is neither."""
    phases = observed_phases(record)
    if record.job not in ("sort", "mapreduce") or not phases or not record.bytes:
        raise ValueError("the record is not of a finished sort or MapReduce on a cluster")
    read_from, written_to = locations_of(record)
    made = mapreduce_job(
        durability_of(record),
        read_from=read_from,
        written_to=written_to,
        map_share=phases[0].made or 1.0,
        reduce_share=phases[1].made or 1.0,
        name=record.job,
    )
    if record.job == "sort":
        return made
    source = name_of(record)
    rows = [
        [Demand(resource="cpu", per_byte=each.cpu_seconds / record.bytes, source=source)]
        for each in phases
    ]
    return structs.replace(
        made,
        phases=[
            structs.replace(
                phase,
                demands=[d for d in phase.demands if not d.resource.startswith("cpu")] + row,
            )
            # A run on one node copied nothing.
            for phase, row in zip(made.phases, [*rows, []], strict=False)
        ],
        settings=made.settings | {"functions": functions_of(record) or ""},
        seen_bytes=record.bytes,
    )


def _demand(resource: Resource, per_byte: float, equation: str) -> Demand:
    return Demand(resource=resource, per_byte=per_byte, source=f"{STUDY}, {equation}")
