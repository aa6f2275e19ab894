"""Object stores: which trials are run, their results on a real server, and how they end."""

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from support.data.copies import replace
from support.data.measurements import PHASE
from support.stores.s3 import BUCKET, KEYS, Server, server
from tonnage.base import core
from tonnage.base.records import Measurement, Metric, Source, Stage, Trial, TrialSpec
from tonnage.base.records.base import to_builtins
from tonnage.base.stats.knee import knee
from tonnage.measure.object import (
    Knee,
    ObjectSettings,
    buffer_bytes,
    knees,
    measure_object,
    threads_needed,
    trial_order,
)
from tonnage.run.sort.gensort import generate
from tonnage.run.storage.object_store import parse_url

MIB = 1 << 20
SETTINGS = ObjectSettings(
    bucket=BUCKET,
    prefix="some/where",
    endpoint=None,
    operations=("get", "put", "multipart"),
    chunk_bytes=(MIB, 5 * MIB),
    threads=(1, 3),
    seconds=0.3,
    rounds=1,
    until_confidence=None,
    objects=2,
    object_bytes=6 * MIB,
    seed=1,
)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the server's keys are in the environment."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def s3(keys: None) -> Iterator[Server]:
    """A fast server without faults."""
    with server() as running:
        yield running


def measured(running: Server, out: Path, **changes: Any) -> Measurement:
    """Run a complete measurement."""
    settings = replace(SETTINGS, endpoint=running.endpoint, **changes)
    *_, whole = measure_object(out, settings, command=["test"])
    assert isinstance(whole, Measurement)
    return whole


def requesting(trial: Trial) -> Stage:
    """The stage that makes the requests."""
    (stage,) = (stage for stage in trial.phase.stages if stage.kind in ("get", "put"))
    return stage


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({1: 10.0}, 1),
        ({1: 94.9, 2: 95.0, 4: 100.0}, 2),
        ({8: 100.0, 1: 50.0, 4: 96.0}, 4),
        ({1: 0.0, 2: 0.0}, 1),
    ],
)
def test_the_knee_is_the_smallest_value_within_5_percent_of_the_best(
    values: dict[int, float], found: int
) -> None:
    assert knee(values) == found
    assert knee(values, 0.0) == min(n for n, v in values.items() if v == max(values.values()))


@pytest.mark.parametrize("values", [{}, {1: float("nan")}, {1: -1.0}, {1: float("inf")}])
def test_values_without_a_knee_are_refused(values: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        knee(values)
    with pytest.raises(ValueError, match="share must be at least 0"):
        knee({1: 1.0}, 1.0)


def trial(operation: str, chunk_bytes: int, threads: int, rate: float, number: int = 0) -> Trial:
    """An invented trial."""
    return Trial(
        name="made up",
        bytes_per_second=rate,
        cpu_seconds_per_byte=0.0,
        warm_up_seconds=0.0,
        rates=[rate],
        phase=PHASE,
        step=TrialSpec(
            operation=operation,
            outstanding=threads,
            round=number,
            suite="object",
            block_bytes=chunk_bytes,
        ),
        reading=Metric(source=Source(tool="t"), operation="get", block_bytes=chunk_bytes),
    )


def walked(settings: ObjectSettings, rates: Callable[[TrialSpec], float]) -> list[TrialSpec]:
    """All steps, if the trials give these rates."""
    done: list[Trial] = []
    steps = []
    for step in trial_order(settings, done):
        steps.append(step)
        chunk = step.block_bytes or 0
        done.append(trial(step.operation, chunk, step.outstanding, rates(step), step.round))
    return steps


def test_each_round_has_each_kind_once_in_its_own_order() -> None:
    settings = replace(SETTINGS, rounds=3, threads=(1, 2, 4, 8))
    steps = walked(settings, lambda _: 1.0)
    expected = [
        (operation, chunk, threads)
        for operation, chunk in (
            *(("get", size) for size in SETTINGS.chunk_bytes),
            *(("put", size) for size in SETTINGS.chunk_bytes),
            ("multipart", 5 * MIB),  # parts of 1 MiB there are none
        )
        for threads in settings.threads
    ]
    orders = []
    for number in range(3):
        of_round = [(s.operation, s.block_bytes, s.outstanding) for s in steps if s.round == number]
        assert sorted(of_round) == sorted(expected)
        orders.append(of_round)
    assert orders[0] != orders[1] != orders[2]
    assert walked(settings, lambda _: 1.0) == steps
    assert walked(replace(settings, seed=2), lambda _: 1.0) != steps
    assert settings.max_duration_seconds == pytest.approx(3 * len(expected) * 0.3)
    assert settings.prepared_bytes == 12 * MIB
    assert replace(settings, operations=("put",)).prepared_bytes == 0
    assert buffer_bytes(settings) == 10 * 5 * MIB


def test_each_chunk_size_ends_when_it_is_precise() -> None:
    until = replace(SETTINGS, operations=("get",), threads=(2,), rounds=9, until_confidence=0.02)
    steps = walked(until, lambda s: 100.0 if s.block_bytes == MIB else 100.0 + 50 * (s.round % 2))
    sizes = [step.block_bytes for step in steps]
    # Six runs are the fewest with a 95 % interval of the median.
    assert (sizes.count(MIB), sizes.count(5 * MIB)) == (6, 9)
    assert {step.until_confidence for step in steps} == {0.02}


def test_knees_come_from_the_medians_of_each_chunk_size() -> None:
    trials = [trial("get", 1, 1, rate) for rate in (10.0, 97.0, 50.0)]
    trials += [trial("get", 1, 4, rate) for rate in (1.0, 99.0, 100.0)]
    trials += [trial("get", 1, 2, 96.0), trial("put", 1, 8, 5.0), trial("get", 4, 2, 7.0)]
    assert knees(trials) == [
        Knee("get", 1, 2, 96.0),
        Knee("get", 4, 2, 7.0),
        Knee("put", 1, 8, 5.0),
    ]


def test_threads_needed_is_the_knee_of_the_nearest_chunk_size() -> None:
    trials = [trial("get", 1, 2, 9.0), trial("get", 64, 8, 9.0), trial("put", 8, 32, 9.0)]
    measured = Measurement(
        id="m",
        kind="object",
        began_at="",
        command=[],
        environment=None,
        settings={},
        stopping_rule="",
        page_cache="",
        trials=trials,
    )
    assert [threads_needed([measured], size) for size in (1, 4, 16, 640)] == [2, 2, 8, 8]
    assert threads_needed([replace(measured, trials=trials[2:])], 8) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3://abc", ("abc", "")),
        ("s3://abc/", ("abc", "")),
        ("s3://a.b-c/x/y/", ("a.b-c", "x/y")),
        ("s3://ABC/x", None),
        ("s3://abc/x//y", None),
        ("s3://abc/../y", None),
        ("abc/x", None),
        ("s3://", None),
    ],
)
def test_a_url_is_a_bucket_and_a_folder(text: str, found: tuple[str, str] | None) -> None:
    if found:
        assert parse_url(text) == found
        return
    with pytest.raises(core.UsageError, match=r"write s3://BUCKET or"):
        parse_url(text)


def test_each_trial_does_what_its_name_says(s3: Server, disk: Path) -> None:
    whole = measured(s3, disk / "out")
    assert Measurement.read(disk / "out" / "measurement.json") == whole
    assert len(whole.trials) == len(SETTINGS.trial_kinds) == len(whole.figures) == 10
    for trial in whole.trials:
        step, reading = trial.step, trial.reading
        assert step and reading and reading.bins is not None and reading.series is not None
        gets = step.operation == "get"
        assert reading.details.get("object_bytes") == (SETTINGS.object_bytes if gets else None)
        happened = trial.activity
        assert happened and happened.foreign_cpu_seconds >= 0 <= happened.stolen_cpu_seconds
        assert happened.dirty_bytes_before is not None is not happened.dirty_bytes_after
        # A store has no device on this machine.
        assert (happened.device, happened.device_read_bytes, happened.queue) == ("", None, {})
        assert reading.operation == ("get" if gets else "put")
        assert reading.details["tool_operation"] == step.operation
        assert reading.concurrency == step.outstanding == len(trial.each_second)
        latency, first = reading.latency_seconds, reading.details["first_byte_seconds"]
        assert latency.count == sum(count for _, count in reading.bins) > 0
        assert latency.p50 and latency.p99 and latency.max and latency.error_bound == 0.001
        assert latency.p50 <= latency.p99 <= latency.max
        assert (first.get("count", 0) == latency.count) is gets
        assert not gets or 0 < first["p50"] <= latency.p99
        assert (reading.details["completing_seconds"] is not None) == (
            step.operation == "multipart"
        )
        # Every request leaves the graph exactly once.
        done = requesting(trial)
        assert done.bytes == done.records * (reading.block_bytes or 0)
        assert reading.details["requests"] == done.records >= latency.count
        assert (reading.details["retries"], reading.details["errors"]) == (0, {})
        assert trial.bytes_per_second > 0 and trial.cpu_seconds_per_byte > 0
    assert s3.files() == []


def test_prepared_objects_contain_benchmark_records(s3: Server, disk: Path) -> None:
    config = {
        "store": {"bucket": BUCKET, "endpoint": s3.endpoint},
        "work": {"lay_out": {"objects": 1}},
        "prefix": "a/b-",
        "chunk_bytes": 3 * MIB + 1,
        "threads": 1,
    }
    core.run("object_bench", config)
    (put,) = s3.files()
    assert put.relative_to(s3.directory / BUCKET) == Path("a/b-00000")
    content = put.read_bytes()
    records = (3 * MIB + 1) // 100
    generate(records, [disk / "records"])
    assert len(content) == config["chunk_bytes"]
    assert content[: 100 * records] == (disk / "records").read_bytes()
    removed = core.run("object_remove", {"store": config["store"], "folder": "a"})
    assert (removed, s3.files()) == ({"objects": 1}, [])


def test_only_our_own_folder_is_emptied(s3: Server, disk: Path) -> None:
    other = s3.directory / BUCKET / "some" / "where" / "else"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"mine")
    measured(s3, disk / "out", operations=("put",), threads=(1,))
    assert s3.files() == [other]


@pytest.mark.parametrize(
    "operation",
    [
        "get",
        pytest.param("put", marks=pytest.mark.slow),
        pytest.param("multipart", marks=pytest.mark.slow),
    ],
)
def test_transient_errors_are_counted_and_requests_completed(
    keys: None, disk: Path, operation: str
) -> None:
    # None of thousands of requests should meet five faults in a row, which ends a measurement.
    with server("-errors", "0.02", "-cuts", "0.02", "-seed", "5") as running:
        changes = {"operations": (operation,), "chunk_bytes": (5 * MIB,), "seconds": 1.0}
        whole = measured(running, disk / "out", **changes)
        kinds: set[str] = set()
        for trial in whole.trials:
            assert trial.reading
            details = trial.reading.details
            kinds |= set(details["errors"])
            assert sum(details["errors"].values()) == details["retries"]
            assert details["requests"] == requesting(trial).records + details["retries"]
        assert running.files() == []
    assert kinds <= {"server", "throttled", "broken"} and kinds


def test_permanent_errors_end_in_one_line(keys: None, tonnage: Tonnage, disk: Path) -> None:
    with server("-errors", "1") as running:
        said = tonnage.run(*command(running, disk / "out", "--operation", "put"))
        assert (said.returncode, said.stdout) == (1, "")
        told = r"tonnage: stage put: putting s3://tests/\S+: \w+: .+ \(tried 5 times\)\n"
        assert re.fullmatch(told, said.stderr.splitlines(keepends=True)[-1]), said.stderr
        assert running.files() == []


def command(running: Server, out: Path, *more: str) -> list[str | Path]:
    """The command's arguments for one short trial."""
    place: list[str | Path] = ["measure", "object", f"s3://{BUCKET}/some/where"]
    place += [
        "--endpoint-url",
        running.endpoint,
        "--output",
        out,
        "--chunk-size",
        "5MiB",
        "--requests",
        "2",
    ]
    return [*place, "--repetitions", "1", "--seconds", "0.3", "--object-size", "6MiB", *more]


def test_the_command_prints_trials_and_knees(s3: Server, tonnage: Tonnage, disk: Path) -> None:
    said = tonnage.run(*command(s3, disk / "out", "--requests", "1"), check=True)
    lines = said.stdout.splitlines()
    assert sum(line.startswith(("get 5MiB x", "put 5MiB x")) for line in lines) == 8
    assert sum("first byte" in line for line in lines) == 2
    knee_line = r"(get|put) of 5 MiB: \d requests? suffices?: [\d,.]+ MB/s, within 5 % of the best"
    assert sum(bool(re.fullmatch(knee_line, line)) for line in lines) == 2
    assert s3.files() == []

    again = tonnage.run(*command(s3, disk / "out", "--requests", "1", "--json"), check=True)
    found = json.loads(again.stdout)
    assert {(one["operation"], one["chunk_bytes"]) for one in found["knees"]} == {
        ("get", 5 * MIB),
        ("put", 5 * MIB),
    }
    assert Measurement.from_json(found).trials == [
        Trial.read(path) for path in sorted((disk / "out").glob("trial-*.json"))
    ]
    assert not any(secret in again.stdout for secret in KEYS.values())


REFUSALS = {
    "no bucket": (["s3://nowhere/x"], "s3://nowhere: the bucket does not exist at .* create it"),
    "nobody there": (
        ["--endpoint-url", "http://127.0.0.1:9"],
        "--endpoint(-url)?: .*127.0.0.1:9 cannot be",
    ),
    "no address": (
        ["--endpoint-url", "127.0.0.1"],
        "--endpoint-url 127.0.0.1: use a URL like http://",
    ),
    "no place": (["here"], "here: not an object store URL; write s3://BUCKET or"),
    "no such operation": (
        ["--operation", "head"],
        "--operation head is not valid; use one of get, put",
    ),
    "small parts": (
        ["--operation", "multipart", "--chunk-size", "1MiB"],
        "--chunk-size 1048576: a part of .* has at least 5MiB",
    ),
    "small objects": (
        ["--object-size", "1MiB"],
        "--object-size 1048576 is less .*lower --chunk-size",
    ),
    "much memory": (
        ["--operation", "put", "--requests", "1000", "--chunk-size", "1TiB"],
        "--requests 1000 with chunks of",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_unusable_settings_are_refused_in_one_line(
    s3: Server, tonnage: Tonnage, disk: Path, case: str
) -> None:
    more, told = REFUSALS[case]
    args = command(s3, disk / "out")
    if not more[0].startswith("--"):
        args[2] = more[0]
        more = []
    said = tonnage.run(*args, *more)
    assert (said.returncode, said.stdout) == (2, "")
    assert re.fullmatch(rf"tonnage: {told}[^\n]*\n", said.stderr), said.stderr
    assert not (disk / "out").exists()
    assert s3.files() == []


def test_wrong_keys_are_an_error(s3: Server, tonnage: Tonnage, disk: Path) -> None:
    wrong = {"AWS_SECRET_ACCESS_KEY": "another"}
    said = tonnage.run(*command(s3, disk / "out"), env=wrong)
    assert said.returncode == 2
    assert re.fullmatch(
        r"tonnage: s3://tests: access to http\S+ was denied "
        r"\(SignatureDoesNotMatch: "
        r".*AWS_PROFILE\n",
        said.stderr,
    )


def test_keys_are_read_from_aws_files(
    s3: Server, tonnage: Tonnage, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    lines = [f"{name.lower()} = {value}" for name, value in KEYS.items()]
    (disk / "credentials").write_text("\n".join(["[default]", "x = y", "[mine]", *lines]))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(disk / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(disk / "none"))
    args = command(s3, disk / "out", "--operation", "put")
    tonnage.run(*args, env={"AWS_PROFILE": "mine"}, check=True)
    said = tonnage.run(*args, env={"AWS_PROFILE": "yours"})
    assert said.returncode == 2
    assert said.stderr.startswith("tonnage: AWS_PROFILE is yours, but ~/.aws has no such profile")


@pytest.mark.parametrize("operation", ["get", "put", "multipart"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupted_measurement_leaves_nothing_in_the_bucket(
    s3: Server, tonnage: Tonnage, disk: Path, operation: str, number: signal.Signals
) -> None:
    args = command(s3, disk / "out", "--operation", operation, "--seconds", "600")
    with started([tonnage.path, *args]) as running:
        # During a trial there are prepared or put objects.
        running.wait_until(lambda: len(s3.files()) > 1)
        code, out, err = running.end(number)
    assert (code, out) == (130 if number == signal.SIGINT else 143, "")
    assert re.search(r"(^|\n)tonnage: interrupted; .*removed\n$", err), err
    assert s3.files() == []


def test_a_killed_measurement_resumes_and_leaves_nothing(
    s3: Server, tonnage: Tonnage, disk: Path
) -> None:
    out = disk / "out"
    args = command(s3, out, "--operation", "get", "put", "--repetitions", "3", "--json")
    with started([tonnage.path, *args]) as running:
        running.wait_until(lambda: (out / "trial-00001.json").exists())
        running.end(signal.SIGKILL)
    kept = {path.name: path.read_bytes() for path in out.glob("trial-*.json")}
    assert 2 <= len(kept) < 6
    assert s3.files() != []
    found = json.loads(tonnage.run(*args, check=True).stdout)
    steps = [(t["step"]["operation"], t["step"]["round"]) for t in found["trials"]]
    assert sorted(steps) == [(o, n) for o in ("get", "put") for n in range(3)]
    assert {name: (out / name).read_bytes() for name in kept} == kept
    assert s3.files() == []


def test_the_command_ends_when_the_result_is_precise(
    s3: Server, tonnage: Tonnage, disk: Path
) -> None:
    args = command(s3, disk / "out", "--operation", "put", "--json")
    args[args.index("--repetitions") : args.index("--seconds")] = ["--until-confidence", "99%"]
    found = json.loads(tonnage.run(*args, check=True).stdout)
    (figure,) = found["figures"]
    assert 6 <= figure["trials"] == len(found["trials"]) < 30
    assert (figure["wanted_share"], figure["still_needed"]) == (0.99, 0)
    assert 0 <= figure["reached_share"] <= 0.99
    assert {trial["step"]["block_bytes"] for trial in found["trials"]} == {5 * MIB}


def test_settings_are_recorded_without_keys(s3: Server, disk: Path) -> None:
    whole = measured(s3, disk / "out", operations=("put",), threads=(1,), chunk_bytes=(MIB,))
    expected = replace(
        SETTINGS,
        endpoint=s3.endpoint,
        operations=("put",),
        threads=(1,),
        chunk_bytes=(MIB,),
    )
    kept = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in to_builtins(expected).items()
    }
    assert whole.settings == kept
    texts = [path.read_text() for path in (disk / "out").iterdir()]
    assert not any(secret in text for text in texts for secret in KEYS.values())
