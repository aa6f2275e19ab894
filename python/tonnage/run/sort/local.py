"""The two-pass sort on this machine, as ``crates/graphs/src/sort/sort_job.rs`` runs it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.core import process_usage, stage_stats
from tonnage.base.records import Environment, RunRecord
from tonnage.run.storage.object_store import ObjectStoreOptions


@dataclass(frozen=True)
class Layout:
    """Fixed-length records and where their key is, in bytes."""

    record_bytes: int = 100
    key_offset: int = 0
    key_bytes: int = 10

    def to_json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True)
class SortOutcome:
    """A finished sort: its record, and its stages over time as columns."""

    record: RunRecord
    timeline: dict[str, list[Any]]


def sort(
    inputs: Sequence[Path | str],
    output: Sequence[Path | str],
    scratch: Sequence[Path],
    *,
    layout: Layout,
    memory_bytes: int,
    environment: Environment,
    began_at: str,
    command: list[str],
    object_store: ObjectStoreOptions | None = None,
    spill_all: bool = False,
    faults: dict[str, Any] | None = None,
    on_progress: core.OnProgress | None = None,
) -> SortOutcome:
    """Sorts ``inputs`` into files ``part-00000`` and so on in the ``output`` directories.

    The order of equal keys is not kept. Inputs are not changed. An output appears whole or not at
    all; scratch has no names and is gone with the job, however it ends.

    Args:
        inputs: Files, or directories of files, of whole records; as strings, urls of objects or
            folders of them.
        output: Empty directories, one for each device; or the url of a folder, as a string.
        scratch: Directories, one for each device.
        memory_bytes: For all buffers and indexes.
        began_at: When the command was given, ISO 8601.
        spill_all: Whether records go to scratch although memory has room for them: to see what a
            longer sort does.
        faults: What is to go wrong, for tests (``crates/io/disk/src/faults.rs``).
        on_progress: Called with bytes of the input: half of what both passes, and
            the sample, have moved of it.

    Raises:
        UsageError: Arguments or input cannot be used.
        RunError: It failed while it ran.
        KeyboardInterrupt: Ctrl-C; everything is cleaned up by then.
    """
    settings: dict[str, Any] = {
        "inputs": [str(path) for path in inputs],
        "output": [str(path) for path in output],
        "scratch": [str(path) for path in scratch],
        "layout": layout.to_json(),
        "memory_bytes": memory_bytes,
        "spill_all": spill_all,
        "volumes": (object_store or ObjectStoreOptions()).to_json(),
    }
    disk = {} if faults is None else {"disk": {"faults": faults}}
    cpu_before = process_usage.cpu_seconds()
    halved = None if on_progress is None else lambda done: on_progress(done // 2)
    outcome = core.run("sort", settings | disk, halved)
    record = RunRecord(
        job="sort",
        began_at=began_at,
        command=command,
        environment=environment,
        settings=settings | {"plan": outcome["plan"]},
        records=outcome["records"],
        bytes=outcome["bytes"],
        checksum=outcome["checksum"],
        seconds=outcome["seconds"],
        cpu_seconds=process_usage.cpu_seconds() - cpu_before,
        peak_memory_bytes=process_usage.peak_memory_bytes(),
        repartitioned_bytes=outcome["repartitioned_bytes"],
        spilled_bytes=outcome["spilled_bytes"],
        requests=outcome["requests"],
        phases=[stage_stats.phase_record(phase) for phase in outcome["phases"]],
    )
    return SortOutcome(record=record, timeline=stage_stats.timeline_table(outcome["phases"]))
