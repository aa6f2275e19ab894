"""Two-pass MapReduce, of which sorting is the case where nothing is left out or added.

Themis on EC2, section 3.3: the first pass reads, maps, shuffles and writes partitions, the second
reads, sorts, reduces and writes. Each record is read and written exactly twice (2-IO). For an input
of D bytes on all nodes, a map that makes ``map_share`` bytes of each, and a reduction that makes
``reduce_share`` of each of those:

    map and shuffle    max(D / read, M / network, M / write)              equation 1
    sort and reduce    max(M / read, R / write)                           equation 3
    replicated         max(M / read, R / network, 2 R / write)            equation 8
    volumes            D and R on volumes, M on local disks               equations 10 and 11

To these comes the cores' own work, as far as a profile knows what a core does of it in a second.
Reading and writing of a pass share the devices, so both are set against the rate of the mix
(equation 5): where rates were measured apart, each against its own.
"""

from __future__ import annotations

from typing import Literal, cast

from msgspec import structs

from tonnage.base.records import RunRecord
from tonnage.base.records.job import Demand, Job, JobPhase, RequestDemand, Resource, SpaceDemand
from tonnage.model.run_phases import durability_of, functions_of, name_of, observed_phases

Durability = Literal["none", "replicated", "volumes"]
DURABILITIES: tuple[Durability, ...] = ("none", "replicated", "volumes")
GET_BYTES, PUT_BYTES = 4 << 20, 16 << 20
"""What a sort's requests move of an object store (`EXTENT_BYTES` and `PART_BYTES` of the core's
graphs::plan; with little memory parts are shorter, 5 MiB at least). Taken for a MapReduce, too,
whose formats ask as they need."""
STUDY = "Themis on EC2"
CORES = "what is read has to be partitioned, then sorted"


def mapreduce_job(
    durability: Durability = "none",
    *,
    map_share: float = 1.0,
    reduce_share: float = 1.0,
    objects: bool = False,
    name: str = "mapreduce",
) -> Job:
    """The job.

    Args:
        durability: ``none``; ``replicated``: a second copy of the output on another node;
            ``volumes``: input and output on network-attached volumes.
        map_share: Bytes that the map makes of each byte of input.
        reduce_share: Bytes that the reduction makes of each byte of those.
        objects: Whether volumes are an object store.
        name: What it is called.

    Raises:
        ValueError: A share is not positive and finite.
    """
    for share in (map_share, reduce_share):
        if not 0 < share < float("inf"):
            raise ValueError(f"a selectivity of {share}: it is more than 0")
    made, out = map_share, map_share * reduce_share
    apart = durability == "volumes"
    first, second = ("equation 10", "equation 11") if apart else ("equation 1", "equation 3")
    outer: tuple[Resource, Resource] = ("local read", "local write")
    if apart:
        outer = ("object get", "object put") if objects else ("volume read", "volume write")
    map_phase = [
        _row(outer[0], 1.0, first),
        structs.replace(_row("network", made, first), shuffled=True),
        _row("local write", made, first),
        Demand(resource="cpu partition", per_byte=1.0, source=CORES),
    ]
    copies = 1
    reduce_phase = [
        _row("local read", made, second),
        Demand(resource="cpu sort", per_byte=made, source=CORES),
    ]
    if durability == "replicated":
        copies = 2
        reduce_phase.append(_row("network", out, "equation 8"))
    reduce_phase.append(_row(outer[1], copies * out, "equation 8" if copies > 1 else second))
    kept: Literal["local", "volume", "object"] = "local"
    if apart:
        kept = "object" if objects else "volume"
    return Job(
        name=name,
        phases=[
            JobPhase(name="map and shuffle", demands=map_phase),
            JobPhase(name="sort and reduce", demands=reduce_phase),
        ],
        # As the study counts it: a 100 TB sort needs 300 TB (section 4.2.3).
        room=[
            SpaceDemand(where=kept, what="input", per_byte=1.0),
            SpaceDemand(where="local", what="intermediate", per_byte=made),
            SpaceDemand(where=kept, what="output", per_byte=copies * out),
        ],
        requests=[
            RequestDemand(kind="get", per_byte=1.0 / GET_BYTES),
            RequestDemand(kind="put", per_byte=out / PUT_BYTES),
        ]
        if kept == "object"
        else [],
        settings={
            "durability": durability,
            "map_share": map_share,
            "reduce_share": reduce_share,
            **({"objects": True} if kept == "object" else {}),
        },
    )


def sort_job(durability: Durability = "none", *, objects: bool = False) -> Job:
    """A sort: the map makes as much as it reads, and so does the reduction (equations 2 and 4)."""
    return mapreduce_job(durability, objects=objects, name="sort")


def job_from_run(record: RunRecord) -> Job:
    """The job that one would be which goes on as that did: a sort, or a MapReduce.

    As durable, with the shares of bytes that functions made, and as many core seconds for each
    byte.

    Raises:
        ValueError: It was of another kind, or did nothing.
    """
    phases = observed_phases(record)
    if record.job not in ("sort", "mapreduce") or not phases or not record.bytes:
        raise ValueError("it is no finished sort or MapReduce on a fleet")
    made = mapreduce_job(
        cast(Durability, durability_of(record)),
        map_share=phases[0].made or 1.0,
        reduce_share=phases[1].made or 1.0,
        objects=any("://" in str(path) for path in record.settings.get("output", ())),
        name=record.job,
    )
    if record.job == "sort":
        return made
    source = name_of(record)
    rows = [
        Demand(resource="cpu", per_byte=each.cpu_seconds / record.bytes, source=source)
        for each in phases
    ]
    return structs.replace(
        made,
        phases=[
            structs.replace(
                phase,
                demands=[d for d in phase.demands if not d.resource.startswith("cpu")] + [row],
            )
            for phase, row in zip(made.phases, rows, strict=True)
        ],
        settings=made.settings | {"functions": functions_of(record) or ""},
        seen_bytes=record.bytes,
    )


def _row(resource: Resource, per_byte: float, equation: str) -> Demand:
    return Demand(resource=resource, per_byte=per_byte, source=f"{STUDY}, {equation}")
