"""Records: each that was ever written can be read, and other files are refused."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.data.copies import replace
from support.data.measurements import ENVIRONMENT, PHASE, measurement
from support.stores.disk import ROOT
from tonnage.base import records
from tonnage.base.records import (
    ClusterMeasurement,
    ClusterNode,
    Environment,
    Measurement,
    Observation,
    Prediction,
    Record,
    RecordError,
    ReductionRecord,
    RunRecord,
    Study,
    Trial,
    read_table,
    write_atomically,
    write_table,
)
from tonnage.base.records.analysis import Analysis
from tonnage.base.records.application import Application
from tonnage.base.records.application_analysis import ApplicationAnalysis
from tonnage.base.records.cluster_study import ClusterStudy
from tonnage.base.records.job import Job
from tonnage.base.records.known_keys import MeasurementSettings
from tonnage.base.records.launch import Launch
from tonnage.base.records.observation_analysis import ObservationAnalysis
from tonnage.base.records.operations_plan import OperationsPlan
from tonnage.base.records.past_run import PastRuns
from tonnage.base.records.plan import Explanation, Plan, Plans
from tonnage.base.records.profile import Profile
from tonnage.base.records.sweep import ReductionSweep
from tonnage.provision.lab.record import LabRecord

DATA = ROOT / "tests" / "support" / "recorded" / "artifacts"
KINDS: dict[str, type[Record]] = {
    "analysis": Analysis,
    "application": Application,
    "application-analysis": ApplicationAnalysis,
    "environment": Environment,
    "explanation": Explanation,
    "fleet": ClusterMeasurement,
    "fleet-study": ClusterStudy,
    "job": Job,
    "lab": LabRecord,
    "launch": Launch,
    "measurement": Measurement,
    "node": ClusterNode,
    "observation": Observation,
    "observation-analysis": ObservationAnalysis,
    "operations-plan": OperationsPlan,
    "past-runs": PastRuns,
    "plan": Plan,
    "plans": Plans,
    "prediction": Prediction,
    "profile": Profile,
    "reduction": ReductionRecord,
    "run": RunRecord,
    "study": Study,
    "sweep": ReductionSweep,
    "trial": Trial,
}
KEPT = sorted(DATA.glob("*.json"))
"""A file for each version of each schema there ever was; none is ever changed or removed."""


def test_every_kind_of_record_is_kept() -> None:
    assert {kind.SCHEMA for kind in Record.__subclasses__()} == {
        kind.SCHEMA for kind in KINDS.values()
    }
    versions = {kind.SCHEMA.replace("tonnage.", "").replace("/", "-") for kind in KINDS.values()}
    assert versions <= {path.stem for path in KEPT}


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_was_once_written_is_read(path: Path) -> None:
    record = KINDS[path.stem.rpartition("-")[0]].read(path)
    _assert_holds(json.loads(json.dumps(record.to_json())), json.loads(path.read_text()))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_is_written_is_read(path: Path, disk: Path) -> None:
    kind = KINDS[path.stem.rpartition("-")[0]]
    record = kind.read(path)
    assert record.write(disk / "new" / "record.json") == disk / "new" / "record.json"
    assert kind.read(disk / "new" / "record.json") == record
    assert next(iter(json.loads((disk / "new" / "record.json").read_text()))) == "schema"
    assert kind.from_json(record.to_json()) == record


NUMBERS = st.floats(0, 1e21)


# Keys that something reads again have types of their own.
FREE_KEYS = st.text().filter(lambda key: key not in MeasurementSettings.__struct_encode_fields__)


@given(
    rates=st.dictionaries(st.text(), st.lists(NUMBERS, max_size=3), max_size=3),
    settings=st.dictionaries(FREE_KEYS, st.none() | st.booleans() | st.integers() | NUMBERS),
    host=st.text(),
    size=st.none() | st.integers(0, 2**62),
)
@settings(derandomize=True, max_examples=50)
def test_any_values_are_read_as_they_were_written(
    rates: dict[str, list[float]], settings: dict[str, Any], host: str, size: int | None
) -> None:
    environment = replace(ENVIRONMENT, host=host, memory_limit_bytes=size)
    made = measurement("m", rates)
    made = replace(made, settings=settings, environment=environment)
    assert Measurement.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_records_within_records_are_records() -> None:
    study = Study.read(DATA / "study-1.json")
    assert isinstance(study.environment, Environment)
    assert isinstance(study.measurements[0], Measurement)
    assert isinstance(study.measurements[0].trials[0].phase, type(PHASE))
    assert study.predicted and isinstance(study.predicted.phases[0].terms[0].seconds, float)
    assert study.run and study.run.phases[0].stages[0].busy_seconds >= 0


def test_a_study_that_was_cut_short_is_read(disk: Path) -> None:
    whole = json.loads((DATA / "study-1.json").read_text())
    needed = ("schema", "began_at", "command", "environment", "settings")
    study = Study.from_json({name: whole[name] for name in needed})
    assert (study.steps, study.measurements, study.files) == ([], [], {})
    assert (study.predicted, study.run, study.actual, study.report) == (None,) * 4


@pytest.mark.parametrize(
    "schema", ["tonnage.prediction/2", "tonnage.run/1", "prediction", "", None, 1]
)
def test_another_schema_is_refused(disk: Path, schema: object) -> None:
    values = json.loads((DATA / "prediction-1.json").read_text()) | {"schema": schema}
    (disk / "prediction.json").write_text(json.dumps(values))
    with pytest.raises(
        RecordError, match=r"/prediction\.json: expected tonnage\.prediction/1, but "
    ):
        Prediction.read(disk / "prediction.json")


def test_unknown_fields_are_named() -> None:
    values = json.loads((DATA / "study-1.json").read_text())
    values["measurements"][0]["trials"][0]["phase"]["stages"][0]["later"] = [None]
    place = r"\$\.measurements\[0\]\.trials\[0\]\.phase\.stages\[0\]\.later"
    with pytest.raises(RecordError, match=f"^{place}: unknown field$"):
        Study.from_json(values)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_truncated_file_is_refused_by_its_name(path: Path, disk: Path) -> None:
    kind = KINDS[path.stem.rpartition("-")[0]]
    content = path.read_bytes().rstrip()
    cut_short = disk / "cut.json"
    for length in (0, 1, len(content) // 2, len(content) - 1):
        cut_short.write_bytes(content[:length])
        with pytest.raises(RecordError, match=r"/cut\.json is not JSON: "):
            kind.read(cut_short)


@pytest.mark.parametrize("content", [b"[]", b"1", b'"text"', b"null", b"\xff\xfe", b"{}"])
def test_what_is_no_record_is_refused(disk: Path, content: bytes) -> None:
    (disk / "odd.json").write_bytes(content)
    with pytest.raises(RecordError, match=r"/odd\.json"):
        Study.read(disk / "odd.json")


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_record_without_one_of_its_fields_is_refused(path: Path) -> None:
    values = json.loads(path.read_text())
    field = list(values)[1]
    del values[field]
    with pytest.raises(RecordError, match=rf"^\$\.{field}: missing$"):
        KINDS[path.stem.rpartition("-")[0]].from_json(values)


def test_a_file_that_is_not_there_is_no_bad_record(disk: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Study.read(disk / "none.json")


def test_a_write_that_fails_leaves_what_was_there(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = disk / "new" / "record"

    def fail(*_: object) -> None:
        raise OSError("no more")

    for call in ("fsync", "replace"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="no more"):
            patch.setattr(os, call, fail)
            write_atomically(place, b"content")
        assert list(place.parent.iterdir()) == []
    write_atomically(place, b"old")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no more"):
        patch.setattr(os, "fsync", fail)
        write_atomically(place, b"new")
    assert place.read_bytes() == b"old"
    assert [path.name for path in place.parent.iterdir()] == ["record"]
    write_atomically(place, b"new")
    assert place.read_bytes() == b"new"
    assert place.stat().st_mode & 0o777 == 0o644


def test_what_is_written_is_durable_before_it_has_its_name_and_the_name_after(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flush(handle: int) -> None:
        done.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def name(old: Path, new: Path) -> None:
        done.append("name")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", name)
    write_atomically(disk / "new" / "record", b"content")
    assert done == ["file", "name", "directory"]
    done.clear()
    write_table(disk / "t.parquet", COLUMNS)
    assert done == ["file", "name", "directory"]


def test_a_record_that_cannot_be_written_leaves_nothing(disk: Path) -> None:
    made = replace(measurement("m", {}), settings={"a": object()})
    with pytest.raises(TypeError):
        made.write(disk / "m.json")
    assert list(disk.iterdir()) == []


COLUMNS: dict[str, list[Any]] = {
    "name": ["read", "write", "read"],
    "bytes": [0, 1 << 60, 7],
    "seconds": [0.0, 0.25, 1e-9],
}


def test_tables_are_read_as_they_were_written(disk: Path) -> None:
    assert read_table(write_table(disk / "new" / "t.parquet", COLUMNS)) == COLUMNS
    assert read_table(write_table(disk / "e.parquet", {"a": [], "b": []})) == {"a": [], "b": []}
    assert sorted(path.name for path in disk.rglob("*")) == ["e.parquet", "new", "t.parquet"]


def test_a_table_that_cannot_be_written_leaves_what_was_there(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    place = disk / "t.parquet"
    write_table(place, COLUMNS)
    with pytest.raises(pa.ArrowInvalid):
        write_table(place, {"a": [1], "b": [1, 2]})

    def fail(*_: object) -> None:
        raise OSError("no more")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="no more"):
        patch.setattr(records.io.os, "replace", fail)
        write_table(place, {"a": [1]})
    assert read_table(place) == COLUMNS
    assert list(disk.iterdir()) == [place]


def _assert_holds(new: Any, old: Any) -> None:
    """All that the old JSON says, the new one says too, under the same names."""
    if isinstance(old, dict):
        assert set(old) <= set(new)
        for name in old:
            _assert_holds(new[name], old[name])
    elif isinstance(old, list):
        assert len(old) == len(new)
        for each_new, each_old in zip(new, old, strict=True):
            _assert_holds(each_new, each_old)
    else:
        assert new == old and isinstance(new, bool) == isinstance(old, bool)
