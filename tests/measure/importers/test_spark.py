"""Spark's event logs: real ones of several versions and codecs, and ones that are broken.

`tests/support/spark/record_logs.py` recorded them, in clusters of two executors with a core each.
"""

import gzip
import io
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.data.fuzz_importers import SAMPLES
from support.spark.fuzz_logs import LOGS as RECORDED
from support.spark.fuzz_logs import changed_log, check, read, text_lines
from support.spark.long_log import write_long_log
from tonnage.base.records.application import Application, ApplicationStage
from tonnage.measure.importers.metric import UnreadableFile
from tonnage.measure.importers.spark.log_files import (
    LONGEST_LINE,
    LogFile,
    lines,
    local_log,
    rolling_log,
)
from tonnage.measure.importers.spark.read import is_event_log, read_event_log
from tonnage.measure.importers.spark.stages import EarlyTasks

LOGS = SAMPLES.parent / "spark"
SORT, JOIN = LOGS / "spark-4.0-sort.lz4", LOGS / "spark-4.0-skewed-join.snappy"
CACHED, FAILING = LOGS / "spark-4.0-cached.zstd", LOGS / "spark-4.0-failing.gz"
SPILLING, WORDS = LOGS / "spark-4.0-spilling.zstd", LOGS / "spark-4.0-words.zstd"
WITHOUT_PARTS = "parts of one rolling event log"


def from_lines(content: list[bytes]) -> Application:
    return read(b"\n".join(content))


def in_memory(content: bytes, name: str = "log") -> LogFile:
    return LogFile(name, lambda: io.BytesIO(content))


def stage(application: Application, id: int) -> ApplicationStage:
    (found,) = (each for each in application.stages if each.id == id)
    return found


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_sums_are_those_of_the_tasks(path: Path) -> None:
    application = read_event_log(local_log(path))
    events = [json.loads(line) for line in text_lines(path)]
    assert application.version == events[0]["Spark Version"]
    assert application.ended and application.engine == "spark"
    expected = Counter[str]()
    stages = set[tuple[int, int]]()
    for event in events:
        if event["Event"] != "SparkListenerTaskEnd":
            continue
        stages.add((event["Stage ID"], event["Stage Attempt ID"]))
        expected["tasks"] += not event["Task Info"]["Failed"]
        expected["failed"] += event["Task Info"]["Failed"]
        metrics = event["Task Metrics"]
        read, write = metrics["Shuffle Read Metrics"], metrics["Shuffle Write Metrics"]
        expected["read"] += metrics["Input Metrics"]["Bytes Read"]
        expected["remote"] += read["Remote Bytes Read"]
        expected["local"] += read["Local Bytes Read"]
        expected["shuffled"] += write["Shuffle Bytes Written"]
        expected["spilled"] += metrics["Disk Bytes Spilled"]
        expected["written"] += metrics["Output Metrics"]["Bytes Written"]
        expected["run"] += metrics["Executor Run Time"]
        expected["cpu"] += metrics["Executor CPU Time"]
        expected["cpu"] += metrics["Executor Deserialize CPU Time"]
        expected["gc"] += metrics["JVM GC Time"]
        expected["wait"] += read["Fetch Wait Time"]
    assert {(each.id, each.attempt) for each in application.stages} == stages

    def total(value: Callable[[ApplicationStage], float]) -> float:
        return sum(value(each) for each in application.stages)

    assert total(lambda each: each.finished_tasks) == expected["tasks"]
    assert total(lambda each: each.failed_tasks) == expected["failed"]
    assert total(lambda each: sum(each.read_bytes.values())) == expected["read"]
    assert total(lambda each: each.shuffle_remote_bytes) == expected["remote"]
    assert total(lambda each: each.shuffle_local_bytes) == expected["local"]
    assert total(lambda each: each.shuffle_written_bytes) == expected["shuffled"]
    assert total(lambda each: each.spilled_bytes) == expected["spilled"]
    assert total(lambda each: sum(each.written_bytes.values())) == expected["written"]
    assert total(lambda each: each.run_seconds) == pytest.approx(expected["run"] / 1e3)
    assert total(lambda each: each.cpu_seconds) == pytest.approx(expected["cpu"] / 1e9)
    assert total(lambda each: each.gc_seconds) == pytest.approx(expected["gc"] / 1e3)
    assert total(lambda each: each.fetch_wait_seconds) == pytest.approx(expected["wait"] / 1e3)
    assert [each.executors for each in application.largest_cluster()] == [2]


def test_turns_are_in_order_of_launch_and_of_slots() -> None:
    """An executor of two slots launched tasks of 9, 5, 3, 3 and 1 s, which end in another order."""
    early = EarlyTasks()
    began = 0
    tasks = [(began + at, ms) for at, ms in enumerate((9_000, 5_000, 3_000, 3_000, 1_000))]
    for launched, duration in sorted(tasks, key=sum):
        early.add("1", 2, launched, duration, 10)
    early.add("2", 1, 0, 7_000, 10)
    early.add_up()
    assert [(each.tasks, each.seconds, each.read_bytes) for each in early.turns()] == [
        (3, 21.0, 30),
        (2, 6.0, 20),
        (1, 1.0, 10),
    ]


def test_of_many_tasks_only_the_first_by_launch_are_kept() -> None:
    early = EarlyTasks()
    for launched in reversed(range(100)):
        early.add("1", 1, launched, 1_000 + launched, 0)
    assert [each.seconds for each in early.turns()] == [1.0, 1.001, 1.002, 1.003]


def test_a_sort_reads_files_shuffles_and_writes_files() -> None:
    application = read_event_log(local_log(SORT))
    first, last = application.stages[1:]
    assert first.read_bytes == {"files": 7919742} and not first.shuffle_local_bytes
    assert last.shuffle_remote_bytes + last.shuffle_local_bytes == first.shuffle_written_bytes
    assert last.written_bytes == {"files": 7498875}
    assert last.parents == [first.id]  # Not the skipped stage that Spark names.
    assert "Scan parquet" in first.operators and "Exchange" in last.operators
    assert first.median_task_seconds < first.longest_task_seconds <= first.seconds
    assert application.settings["spark.executor.memory"] == "512m"
    assert {each.cores for each in application.executors} == {1}
    assert all(each.ended_seconds == application.seconds for each in application.executors)


@pytest.mark.parametrize("version", ["3.0", "4.0"])
def test_what_is_read_from_a_cache_is_not_read_from_files(version: str) -> None:
    application = read_event_log(local_log(LOGS / f"spark-{version}-cached.zstd"))
    sources = [each.read_bytes for each in application.stages if each.read_bytes]
    assert [*sources[0]] == ["files"]
    assert len(sources) == 4 - (version == "3.0")
    assert all([*each] == ["cache"] for each in sources[1:])


def test_a_task_of_a_skewed_join_has_more_bytes_than_others() -> None:
    joined = stage(read_event_log(local_log(JOIN)), 3)
    read = joined.shuffle_remote_bytes + joined.shuffle_local_bytes
    assert joined.tasks == 6 and joined.largest_task_bytes > 1.5 * read / 6
    assert 0 < joined.longest_task_bytes <= joined.largest_task_bytes
    assert joined.longest_task_seconds > 3 * joined.median_task_seconds
    assert joined.median_task_seconds <= joined.p90_task_seconds <= joined.longest_task_seconds


def test_a_sort_without_enough_memory_spills() -> None:
    last = read_event_log(local_log(SPILLING)).stages[-1]
    assert last.spilled_bytes > 100e6 and last.peak_memory_bytes > 1e6


def test_python_workers_are_recognized() -> None:
    assert [each.python for each in read_event_log(local_log(WORDS)).stages] == [True, True]
    assert not any(each.python for each in read_event_log(local_log(SPILLING)).stages)


def test_failed_tasks_and_jobs_are_counted() -> None:
    application = read_event_log(local_log(FAILING))
    (only,) = application.stages
    assert application.failed_jobs == 1 and not only.finished
    assert (only.tasks, only.finished_tasks, only.failed_tasks) == (4, 3, 4)
    assert only.lost_seconds > 0


def test_plain_text_and_joined_streams_are_read_alike() -> None:
    content = text_lines(SORT)
    text = b"\n".join(content)
    expected = read_event_log(local_log(SORT))
    assert read(text) == read(text + b"\n\n") == expected
    first, second = text[:1000], text[1000:]
    assert read(gzip.compress(first) + gzip.compress(second)) == expected


def test_a_rolling_log_without_one_of_its_parts_is_refused(tmp_path: Path) -> None:
    for number in (3, 4, 6):
        (tmp_path / f"events_{number}_app").touch()
    with pytest.raises(UnreadableFile, match="events_5_"):
        local_log(tmp_path)


def test_a_rolling_log_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    content = text_lines(JOIN)
    for number, part in enumerate((content[:20], content[20:30], content[30:]), start=9):
        (tmp_path / f"events_{number}_app.zstd").write_bytes(
            pa.compress(b"\n".join(part), "zstd", asbytes=True)
        )
    (tmp_path / "appstatus_app.inprogress").touch()
    assert read_event_log(local_log(tmp_path)) == read_event_log(local_log(JOIN))


def test_a_compacted_part_replaces_those_before_it() -> None:
    content = text_lines(JOIN)
    parts = {
        "events_1_app": b"not read",
        "events_2_app": b"not read, either",
        "events_2_app.compact": b"\n".join(content[:20]),
        "events_3_app": b"\n".join(content[20:]),
    }
    files = [in_memory(part, f"s3://bucket/log/{name}") for name, part in parts.items()]
    for shuffled in (files, files[::-1]):
        found = read_event_log(rolling_log("s3://bucket/log/", shuffled))
        assert found == read_event_log(local_log(JOIN))


def test_a_directory_without_parts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "application_1").touch()
    with pytest.raises(UnreadableFile, match=WITHOUT_PARTS):
        local_log(tmp_path)


@pytest.mark.parametrize("path", [SORT, JOIN, CACHED, FAILING], ids=lambda path: path.name)
def test_an_application_that_runs_still_is_read_until_its_last_event(path: Path) -> None:
    """Cut anywhere: in a line, and in a block of each codec."""
    content = path.read_bytes()
    complete = read(content)
    for share in (0.97, 0.9, 0.8):
        application = read(content[: int(len(content) * share)])
        assert not application.ended and "no end of the application" in application.notes[0]
        assert len(application.stages) <= len(complete.stages)
        assert 0 < application.seconds <= complete.seconds


def test_a_cut_zstd_stream_loses_no_complete_line() -> None:
    text = b"\n".join(text_lines(CACHED))
    random_text = random.Random(0).randbytes(300_000).hex().encode()
    comment = b'{"Event":"SparkListenerOther","Text":"' + random_text + b'"}'
    content = pa.compress(text + b"\n" + comment, "zstd", asbytes=True)
    application = read(content[: len(content) // 2])
    assert application.ended and "ends early" in application.notes[-1]


def test_a_cut_part_before_the_last_is_refused() -> None:
    content = text_lines(JOIN)
    parts = [
        pa.compress(b"\n".join(part), "zstd", asbytes=True) for part in (content[:30], content[30:])
    ]
    files = [in_memory(part, f"events_{at}_a") for at, part in enumerate(parts, start=1)]
    files[0] = in_memory(parts[0][:-20], "events_1_a")
    with pytest.raises(UnreadableFile, match=r"events_1_a: expected a complete file"):
        read_event_log(rolling_log("log", files))


def test_without_the_environment_and_executors() -> None:
    missing = (b"SparkListenerEnvironmentUpdate", b"SparkListenerExecutorAdded", b"LogStart")
    content = [line for line in text_lines(SORT) if not any(name in line[:60] for name in missing)]
    application = from_lines(content)
    assert application.settings == {} and "does not state" in application.notes[0]
    assert [each.executors for each in application.largest_cluster()] == [2]
    assert application.core_seconds is None and application.version == ""


def changed(kind: bytes, change: Callable[[dict[str, Any]], None], path: Path = SORT) -> bytes:
    """A log with its last event of a kind changed."""
    content = text_lines(path)
    place = max(at for at, line in enumerate(content) if kind in line[:60])
    event = json.loads(content[place])
    change(event)
    content[place] = json.dumps(event).encode()
    return b"\n".join(content)


@pytest.mark.parametrize(
    "value", ["12", -1, 2**63, 10**400, 1.5, True, None, [], {}], ids=lambda value: str(value)[:9]
)
def test_values_of_other_types_and_sizes_are_refused_in_a_line(value: Any) -> None:
    def change(event: dict[str, Any]) -> None:
        event["Task Metrics"]["Executor Run Time"] = value

    with pytest.raises(UnreadableFile, match=r"^log: expected an event of a Spark log at line \d+"):
        read(changed(b"TaskEnd", change))


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"-", b"[" * 5000 + b"]" * 5000, b"\xff"])
def test_what_is_not_json_is_refused_in_a_line(value: bytes) -> None:
    content = changed(b"TaskEnd", lambda event: event.update(Unknown="here"))
    with pytest.raises(UnreadableFile, match=r"^log: expected an event of a Spark log at line \d+"):
        read(content.replace(b'"here"', value))


def test_sums_beyond_what_a_record_holds_are_refused() -> None:
    def change(event: dict[str, Any]) -> None:
        event["Task Metrics"]["Input Metrics"]["Bytes Read"] = 2**62

    content = changed(b"TaskEnd", change)
    repeated = max(content.split(b"\n"), key=lambda line: line.count(str(2**62).encode()))
    with pytest.raises(UnreadableFile, match="plausible amounts"):
        read(content + b"\n" + repeated + b"\n")


def test_events_and_fields_of_later_versions_are_skipped() -> None:
    content = changed(b"TaskEnd", lambda event: event.update({"New Field": [1, {"a": None}]}))
    new = b'{"Event":"org.apache.spark.New","value":1}\n{"Event":"SparkListenerNew","a":[{}]}'
    assert read(content + b"\n" + new) == read_event_log(local_log(SORT))


def test_tasks_of_lost_executors_have_no_metrics() -> None:
    def change(event: dict[str, Any]) -> None:
        del event["Task Metrics"]
        event["Task Info"]["Failed"] = True

    last = read(changed(b"TaskEnd", change)).stages[-1]
    assert (last.finished_tasks, last.failed_tasks) == (5, 1)


def test_names_reach_no_terminal_with_control_characters() -> None:
    text = b"\n".join(text_lines(WORDS)).replace(
        b'"App Name":"words"', b'"App Name":"a\\u001b[31m\\nb"'
    )
    assert read(text).name == "a?[31m?b"


def test_other_settings_are_left_out() -> None:
    def change(event: dict[str, Any]) -> None:
        event["Spark Properties"] = {
            "spark.hadoop.fs.s3a.secret.key": "secret",
            "spark.master": "spark://node-1:7077",
            "spark.executor.cores": "4",
        }

    found = read(changed(b"EnvironmentUpdate", change))
    assert found.settings == {"spark.executor.cores": "4", "spark.master": "spark"}


@pytest.mark.parametrize(
    ("url", "place"),
    [("s3a://bucket/t", "objects"), ("hdfs://n:8020/t", "files"), ("jdbc:x", "unknown")],
)
def test_the_place_of_the_input_is_that_of_the_query(url: str, place: str) -> None:
    text = b"\n".join(text_lines(SORT))
    first = read(text.replace(b"[file:/data/data]", f"[{url}]".encode())).stages[1]
    assert [*first.read_bytes] == [place]


def test_the_place_of_the_input_is_that_of_a_data_sets_name() -> None:
    text = b"\n".join(text_lines(SORT))
    first = read(text.replace(b'"FileScanRDD"', b'"gs://bucket/table"')).stages[1]
    assert [*first.read_bytes] == ["objects"]


def test_executors_come_and_go() -> None:
    application = from_lines(
        [
            *text_lines(SORT)[:-1],
            b'{"Event":"SparkListenerExecutorRemoved","Timestamp":1795860136962,"Executor ID":"0"}',
            b'{"Event":"SparkListenerExecutorAdded","Timestamp":1795860136962,"Executor ID":"2",'
            b'"Executor Info":{"Host":"host-2","Total Cores":4}}',
            text_lines(SORT)[-1],
        ]
    )
    assert [each.host for each in application.executors] == [0, 0, 1]
    lifetimes = [each.ended_seconds - each.began_seconds for each in application.executors]
    assert lifetimes[0] == pytest.approx(10) and lifetimes[2] == pytest.approx(2.249)
    assert application.core_seconds == pytest.approx(lifetimes[0] + lifetimes[1] + 4 * lifetimes[2])
    assert [(each.executors, each.cores) for each in application.largest_cluster()] == [(2, 1)]


def test_the_size_of_cached_data_is_the_most_that_there_was() -> None:
    def update(block: str, memory: int, disk: int) -> bytes:
        info = {"Block ID": block, "Memory Size": memory, "Disk Size": disk}
        return json.dumps(
            {"Event": "SparkListenerBlockUpdated", "Block Updated Info": info}
        ).encode()

    application = from_lines(
        [
            *text_lines(CACHED),
            update("rdd_6_0", 100, 0),
            update("rdd_6_1", 50, 0),
            update("rdd_6_0", 0, 70),
            update("rdd_6_0", 0, 0),
            update("broadcast_1", 9, 9),
        ]
    )
    (only,) = application.cached
    assert (only.memory_bytes, only.disk_bytes) == (150, 0)
    assert only.name.startswith("*(1) Project")


def test_blocks_that_tasks_report_are_cached_data() -> None:
    def change(event: dict[str, Any]) -> None:
        status = {"Memory Size": 70, "Disk Size": 30}
        event["Task Metrics"]["Updated Blocks"] = [{"Block ID": "rdd_9_0", "Status": status}]

    (only,) = read(changed(b"TaskEnd", change)).cached
    assert (only.name, only.memory_bytes, only.disk_bytes) == ("RDD 9", 70, 30)


def test_many_tasks(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\n".join(text_lines(SORT)))
    tasks = write_long_log(tmp_path / "log", tmp_path / "long", 10_000_000, stages=1)
    largest = max(read_event_log(local_log(tmp_path / "long")).stages, key=lambda each: each.tasks)
    assert largest.tasks == largest.finished_tasks == tasks > 1000
    assert largest.median_task_seconds == pytest.approx(2.98, rel=0.1)  # exp(8) milliseconds


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"Event":"SparkListenerLogStart","Spark Version":"3.5.0"}\n',
        b'{"schema":"tonnage.plan/1"}',
        b"\x00" * 1000,
        b"\x1f\x8bnothing",
        b"\x28\xb5\x2f\xfd" + b"\xff" * 100,
        b"LZ4Block" + b"\xff" * 100,
        b"\x82SNAPPY\x00" + b"\xff" * 100,
        b"ZV\x01\x00\x00",
    ],
    ids=lambda content: str(content[:12]),
)
def test_what_is_no_log_is_refused_in_a_line(content: bytes) -> None:
    with pytest.raises(UnreadableFile, match=r"^log: expected ") as refused:
        read(content)
    assert str(refused.value).isprintable()


def test_lines_have_a_limit() -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return b"x" * size

    with pytest.raises(UnreadableFile, match=f"at most {LONGEST_LINE >> 20} MiB"):
        [*lines(Endless())]  # type: ignore[arg-type]


def test_detection_reads_only_the_start() -> None:
    assert all(is_event_log(local_log(path).files[0]) for path in RECORDED)
    others = [path for path in SAMPLES.rglob("*") if path.is_file()]
    assert not any(is_event_log(local_log(path).files[0]) for path in others)
    assert not is_event_log(local_log(Path("missing")).files[0])


@given(seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_changed_logs_are_read_or_refused(seed: int) -> None:
    check(changed_log(random.Random(seed)))
