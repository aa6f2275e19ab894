"""MapReduces of tests: run on this machine or on a cluster of threads, and what they wrote."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pjson
import pyarrow.parquet as pq
import pytest

from support.cluster.sorters import SortMachines, directories
from tonnage import Input, MapReduce
from tonnage.base.records import RunRecord
from tonnage.run.mapreduce.cluster import MapReduceJob, map_reduce_job
from tonnage.run.two_pass.driver import run_two_pass

LEAST = "16MiB"
READERS: dict[str, Callable[[Path], pa.Table]] = {
    ".parquet": pq.read_table,
    ".arrow": lambda path: pa.ipc.open_file(pa.OSFile(str(path), "rb")).read_all(),
    ".csv": pcsv.read_csv,
    ".jsonl": pjson.read_json,
}
Rows = list[tuple[Any, ...]]


def tables(output: Path) -> list[pa.Table]:
    """The parts of an output, which are those that it lists, and nothing else is there."""
    parts = sorted(output.glob("part-*"))
    manifest = json.loads((output / "_tonnage.json").read_text())
    assert manifest["parts"] == [path.name for path in parts]
    assert sorted(output.iterdir()) == sorted([*parts, output / "_tonnage.json"])
    found = [READERS[path.suffix](path) for path in parts]
    assert manifest["records"] == sum(table.num_rows for table in found)
    assert manifest["bytes"] == sum(path.stat().st_size for path in parts)
    return found


def done(disk: Path, job: MapReduce, inputs: Any, **options: Any) -> tuple[RunRecord, pa.Table]:
    """What a job said and wrote; scratch is empty afterwards."""
    output, scratch = disk / "out", disk / "scratch"
    usual: dict[str, Any] = {"memory": LEAST, "workers": 2}
    record = job.run(inputs, output, scratch, **(usual | options))
    assert list(scratch.iterdir()) == []
    found = tables(output)
    assert record.written_records == sum(table.num_rows for table in found)
    return record, pa.concat_tables(found) if found else pa.table({})


def failed(disk: Path, job: MapReduce, inputs: Any, kind: type[Exception], **options: Any) -> str:
    """What a job that fails says; nothing of it is left."""
    with pytest.raises(kind) as raised:
        done(disk, job, inputs, **options)
    assert not (disk / "out").exists()
    assert not (disk / "scratch").exists() or list((disk / "scratch").iterdir()) == []
    return str(raised.value.args[0])


def asked(room: Path, job: MapReduce, inputs: Sequence[Input], **more: Any) -> MapReduceJob:
    """A job into directories that each node has of its own."""
    usual: dict[str, Any] = {
        "format": "parquet",
        "workers": 2,
        "output": directories(room, "out"),
        "scratch": directories(room, "scratch"),
        "memory_bytes": 16 << 20,
        "connections": 1,
        "patience_seconds": 5.0,
        "command": ["test"],
    }
    return map_reduce_job(job, inputs, **(usual | more))


def listed(room: Path) -> list[dict[str, Any]]:
    """The files of the output, each as the manifest lists it."""
    files: list[dict[str, Any]] = json.loads((room / "job" / "reduced.json").read_text())
    for each in files:
        assert os.path.getsize(each["path"]) == each["bytes"]
        assert pq.read_metadata(each["path"]).num_rows == each["records"]
    return files


def rows_of(room: Path, record: RunRecord) -> Rows:
    """What a job on a cluster wrote, in the order of its parts; nothing else is left."""
    files = listed(room)
    assert record.written_records == sum(each["records"] for each in files)
    for node in {each.node for each in record.nodes if each.lost is None}:
        out, scratch = room / node / "out", room / node / "scratch"
        there = {path.name for path in out.iterdir()} - {"_tonnage.json", "_copies"}
        assert there == {Path(each["path"]).name for each in files if each["node"] == node}
        manifest = json.loads((out / "_tonnage.json").read_text())
        assert manifest["parts"] == [Path(each["path"]).name for each in files]
        assert list(scratch.iterdir()) == []
    return [
        tuple(row.values()) for each in files for row in pq.read_table(each["path"]).to_pylist()
    ]


def on_fleet(
    room: Path, job: MapReduce, inputs: Sequence[Input], cluster: SortMachines, **more: Any
) -> tuple[RunRecord, Rows]:
    """What a cluster makes of it."""
    record = run_two_pass(cluster, room / "job", asked(room, job, inputs, **more))
    return record, rows_of(room, record)
