"""Generalized reduction over data in object storage and on disks, in passes (MATE-EC2).

In each pass, threads on the nodes retrieve all chunks and reduce them into an object. It is small
compared with the data (KMeans's centres, PCA's matrices), or a vector of the graph's size
(PageRank's ranks). At the end of the pass the objects of all nodes are combined. Data could be
cached between passes; this is not assumed here, since MATE-EC2 retrieves it again.
"""

from msgspec import structs

from tonnage.base.records import ReductionRecord
from tonnage.base.records.job import Demand, Job, JobPhase, RequestDemand, SpaceDemand
from tonnage.base.records.location import Location
from tonnage.model.jobs.core_throughput import REDUCTIONS
from tonnage.model.jobs.locations import READS, SPACES
from tonnage.model.run_phases import functions_of

STUDY = "MATE-EC2"


def reduce_job(
    passes: int = 1,
    *,
    chunk_bytes: int = 8 << 20,
    object_share: float = 0.0,
    read_from: Location = "objects",
    local_share: float = 0.0,
    cpu_seconds_per_byte: float | None = None,
    source: str = "specified",
    reduction: str | None = None,
) -> Job:
    """A reduction.

    ``object_share`` is bytes of a node's reduction object that are sent, for each byte of input;
    ``local_share`` is the share of the input on nodes' own disks, the rest is at ``read_from``.
    ``source`` is where the core seconds for each byte come from. Those of a built-in ``reduction``
    are Tonnage's own figure, by which a machine's cores are scaled (`core_throughput.REDUCTIONS`).
    """
    if passes < 1 or object_share < 0 or chunk_bytes < 1 or not 0 <= local_share <= 1:
        raise ValueError(
            "passes and chunk_bytes must be at least 1, object_share must not be negative, and "
            "local_share must be from 0 to 1"
        )
    if read_from == "local":
        local_share = 1.0
    far, demands, room = 1.0 - local_share, list[Demand](), list[SpaceDemand]()
    every = f"{STUDY}: all chunks, once"
    if far:
        demands.append(Demand(resource=READS[read_from], per_byte=far, source=every))
        room.append(SpaceDemand(where=SPACES[read_from], what="input", per_byte=far))
    if local_share:
        demands.append(Demand(resource="local read", per_byte=local_share, source=every))
        room.append(SpaceDemand(where="local", what="input", per_byte=local_share))
    if object_share:
        demands.append(
            Demand(
                resource="network",
                per_byte=object_share,
                source=f"{STUDY}: reduction objects, combined",
            )
        )
    if cpu_seconds_per_byte is not None:
        demands.append(Demand(resource="cpu", per_byte=cpu_seconds_per_byte, source=source))
    if reduction is not None:
        own = f"Tonnage's own work of {reduction}"
        demands.append(Demand(resource=REDUCTIONS[reduction], per_byte=1.0, source=own))
    return Job(
        name="reduce",
        phases=[JobPhase(name=f"pass {number + 1}", demands=demands) for number in range(passes)],
        room=room,
        requests=[RequestDemand(kind="get", per_byte=passes * far / chunk_bytes)]
        if far and read_from == "objects"
        else [],
        settings={
            "passes": passes,
            "chunk_bytes": chunk_bytes,
            "object_share": object_share,
            "local_share": local_share,
        },
    )


def job_from_reduction(record: ReductionRecord) -> Job:
    """The job that repeats a finished reduction; `ValueError` if that was empty.

    Its core seconds for each byte include those of retrieval.
    """
    moved = record.rounds_here * record.bytes
    if not moved:
        raise ValueError("the recorded run processed no data; run the job on some input first")
    made = reduce_job(
        record.rounds,
        chunk_bytes=record.tuning.range_bytes,
        local_share=_local_share(record),
        cpu_seconds_per_byte=record.cpu_seconds / moved,
        source=f"the run of {record.job} that began at {record.began_at}",
    )
    functions = functions_of(record) or record.job
    return structs.replace(
        made, settings=made.settings | {"functions": functions}, seen_bytes=record.bytes
    )


def _local_share(record: ReductionRecord) -> float:
    if record.object_bytes is None:  # Without that figure, requests mean that all was in objects.
        return 0.0 if record.requests else 1.0
    return 1.0 - record.object_bytes / record.bytes
