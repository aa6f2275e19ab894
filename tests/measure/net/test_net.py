"""The network between endpoints: what is sent arrives, and no process and no namespace is left."""

import dataclasses
import json
import os
import re
import shutil
import signal
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cli.processes import PATIENCE_SECONDS, RunningCommand, started
from support.data.copies import replace
from support.lab.checks import needs_namespaces
from tonnage.base import core
from tonnage.base.records import Measurement, Trial
from tonnage.base.system import cgroups
from tonnage.cli.options.validate import refuse_memory
from tonnage.measure.net.endpoint import EndpointHost, run_endpoints
from tonnage.measure.net.endpoint_round import RoundSpec, all_to_all, core_configs
from tonnage.measure.net.local import NetSettings, are_rounds_precise, measure_net
from tonnage.measure.trial import environment
from tonnage.measure.trial.repetition import RepetitionPlan
from tonnage.model.analysis.cpu_cost import NetworkCost, network_cost

SETTINGS = NetSettings(
    endpoints=2,
    connections=1,
    block_bytes=1 << 16,
    seconds=0.1,
    rounds=1,
    until_confidence=None,
    one_way=False,
    namespaces=False,
    rate_bits_per_second=None,
)
ROUNDS = 2
SHORT = ["--seconds", "0.4", "--block", "64KiB"]
NAMESPACES = Path("/run/netns")
LEFT = "tonnage-*-*"
PAYLOAD_SHARE = 1448 / 1514
"""Of a packet on the wire: what TCP's, IP's and Ethernet's heads leave of it at an MTU of 1500."""
LEAST = 0.7
"""Of a link's rate: what it gives at least while others have this machine's processors, too."""


def measured(tonnage: Tonnage, out: Path, *args: str) -> dict[str, Any]:
    """Run a measurement; returns its JSON."""
    done = tonnage.run("measure", "net", *SHORT, *args, "--json", "--output", out, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rates(found: dict[str, Any], way: str) -> list[list[float]]:
    """The rates of all endpoints in one direction, for each round."""
    trials = [trial for trial in found["trials"] if trial["step"]["operation"] == way]
    rounds = sorted({trial["step"]["round"] for trial in trials})
    return [
        [trial["bytes_per_second"] for trial in trials if trial["step"]["round"] == number]
        for number in rounds
    ]


def moved(found: dict[str, Any], way: str, stage: str) -> int:
    """The bytes that a stage moved, over all endpoints and rounds."""
    return sum(
        probe["bytes"]
        for trial in found["trials"]
        if trial["step"]["operation"] == way
        for probe in trial["phase"]["stages"]
        if probe["name"] == stage
    )


def endpoints_of(command: RunningCommand) -> list[int]:
    """The processes of a command that already send or receive."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            threads = [path.read_text() for path in entry.glob("task/*/comm")]
        except (OSError, IndexError, ValueError):
            continue  # No process, or one that has just ended.
        if parent == command.pid and any(name.startswith("receive") for name in threads):
            found.append(int(entry.name))
    return found


def is_gone(process: int) -> bool:
    """Whether a process has ended, even if its parent has not waited for it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def endless_command(tonnage: Tonnage, out: Path, *args: str) -> list[str | Path]:
    """A command that runs until it is ended."""
    return [tonnage.path, "measure", "net", "--seconds", "600", "--output", out, *args]


@pytest.fixture
def running(tonnage: Tonnage, tmp_path: Path) -> Iterator[RunningCommand]:
    """A running measurement of three endpoints."""
    with started(endless_command(tonnage, tmp_path / "out", "--endpoints=3")) as command:
        command.wait_until(lambda: len(endpoints_of(command)) == 3)
        yield command


def test_all_sent_bytes_arrive(tonnage: Tonnage, tmp_path: Path) -> None:
    found = measured(
        tonnage, tmp_path / "out", "--endpoints=3", "--connections=2", "--repetitions=2"
    )
    assert len(found["trials"]) == 3 * 2 * ROUNDS
    assert moved(found, "send", "send") == moved(found, "receive", "discard") > 0
    for trial in found["trials"]:
        reading, way = trial["reading"], trial["step"]["operation"]
        assert (reading["operation"], reading["concurrency"]) == (way, 2 * 2)
        assert reading["block_bytes"] == 64 << 10
        assert reading["bandwidth_bytes_per_second"] == trial["bytes_per_second"] > 0
        assert trial["cpu_seconds_per_byte"] > 0
        assert reading["details"]["process_cpu_seconds_per_byte"] > 0
        if way == "send":
            connections = reading["details"]["connections"]
            assert len(connections) == 4
            assert {each["peer"] for each in connections} == {0, 1, 2} - {
                reading["details"]["endpoint"]
            }
            assert reading["details"]["retransmits"] == sum(
                each["retransmits"] for each in connections
            )


def test_summaries_are_of_the_slowest_endpoint_and_of_all(tonnage: Tonnage, tmp_path: Path) -> None:
    found = measured(tonnage, tmp_path / "out", "--endpoints=3", f"--repetitions={ROUNDS}")
    figures = {figure["name"]: figure for figure in found["figures"]}
    for way in ("send", "receive"):
        for name, of_round in (("slowest endpoint", min), ("all endpoints", sum)):
            expected = [of_round(each) for each in rates(found, way)]
            figure = figures[f"{way}, {name}"]
            assert figure["trials"] == ROUNDS
            assert figure["median_bytes_per_second"] == statistics.median(expected)
            assert figure["low_bytes_per_second"] == min(expected)
            assert figure["high_bytes_per_second"] == max(expected)
        assert figures[f"{way}, endpoint 2"]["trials"] == ROUNDS


def rounds_of(found: Measurement, slowest: list[float], other: float) -> list[list[Trial]]:
    """Rounds of two endpoints, the second with the rates ``slowest`` in both directions."""
    first = [each for each in found.trials if each.step and each.step.round == 0]
    return [
        [
            replace(each, bytes_per_second=rate if place % 2 else other * rate)
            for place, each in enumerate(sorted(first, key=lambda each: each.name))
        ]
        for rate in slowest
    ]


@pytest.mark.slow
def test_rounds_end_when_the_slowest_rate_is_precise(tonnage: Tonnage, tmp_path: Path) -> None:
    args = ("--endpoints=2", "--until-confidence=99%")
    found = measured(tonnage, tmp_path / "out", *args)
    number = len(found["trials"]) // 4
    assert 6 <= number < 30
    figures = {figure["name"]: figure for figure in found["figures"]}
    for way in ("send", "receive"):
        figure = figures[f"{way}, slowest endpoint"]
        assert (figure["trials"], figure["wanted_share"], figure["still_needed"]) == (
            number,
            0.99,
            0,
        )
    assert "the slowest endpoint's rate in each direction: until" in found["stopping_rule"]

    # Five rounds have no interval, six equal ones have; of six that differ the slowest counts.
    whole, until = Measurement.from_json(found), RepetitionPlan(30, 0.02)
    alike = [100.0, 101.0, 100.5, 100.2, 100.8, 100.1]
    assert not are_rounds_precise(rounds_of(whole, alike[:5], 2.0), until)
    assert are_rounds_precise(rounds_of(whole, alike, 2.0), until)
    assert not are_rounds_precise(rounds_of(whole, [*alike[:5], 60.0], 2.0), until)
    assert are_rounds_precise(rounds_of(whole, alike[:2], 2.0), RepetitionPlan(2, 0.02))
    assert not are_rounds_precise(rounds_of(whole, alike, 2.0), RepetitionPlan(30))


def test_with_one_way_only_the_first_endpoint_sends(tonnage: Tonnage, tmp_path: Path) -> None:
    found = measured(tonnage, tmp_path / "out", "--endpoints=3", "--repetitions=1", "--one-way")
    trials = [
        (trial["name"], trial["reading"]["concurrency"], trial["bytes_per_second"] > 0)
        for trial in found["trials"]
    ]
    assert trials == [
        ("send, endpoint 0", 2, True),
        ("receive, endpoint 1", 1, True),
        ("receive, endpoint 2", 1, True),
    ]
    assert moved(found, "send", "send") == moved(found, "receive", "discard") > 0


def test_the_result_is_printed_in_words(tonnage: Tonnage, tmp_path: Path) -> None:
    args = ["--endpoints=2", "--repetitions=1", "--output", tmp_path / "out"]
    said = tonnage.run("measure", "net", *SHORT, *args, check=True).stdout
    assert "send, endpoint 0: " in said
    assert "receive, slowest endpoint: " in said
    assert re.search(r"^Core seconds per GB.*: [\d.]+ to send, [\d.]+ to receive$", said, re.M)
    assert re.search(r"^Retransmitted segments: [\d,]+, on 2 connections$", said, re.M)


def test_costs_cover_all_endpoints_and_rounds(tonnage: Tonnage, tmp_path: Path) -> None:
    found = measured(tonnage, tmp_path / "out", "--endpoints=2", f"--repetitions={ROUNDS}")
    costs = found.pop("costs")
    whole = Measurement.from_json(found)
    sent = [trial for trial in found["trials"] if trial["step"]["operation"] == "send"]
    known = network_cost(whole)
    assert costs == dataclasses.asdict(known)
    assert known.cpu_seconds_per_byte["send"] == statistics.median(
        trial["cpu_seconds_per_byte"] for trial in sent
    )
    again = sum(trial["reading"]["details"]["retransmits"] for trial in sent)
    assert (known.retransmits, known.connections) == (again, 2 * ROUNDS)
    # A connection without a count makes the sum unknown, not smaller.
    sent[0]["reading"]["details"]["connections"][0]["retransmits"] = None
    assert network_cost(Measurement.from_json(found)) == replace(known, retransmits=None)
    assert network_cost(replace(whole, trials=[])) == NetworkCost({}, 0, 0)


@pytest.mark.slow
def test_a_killed_measurement_resumes_with_complete_rounds(
    tonnage: Tonnage, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    args = ("--endpoints=2", "--repetitions=2")
    before = measured(tonnage, out, *args)
    # As after a kill while the second round's trials were written.
    (out / "measurement.json").unlink()
    for number in (5, 6, 7):
        (out / f"trial-{number:05}.json").unlink()
    after = measured(tonnage, out, *args)
    assert after["id"] == before["id"]
    assert after["trials"][:5] == before["trials"][:5]
    assert [trial["step"]["round"] for trial in after["trials"]] == [0] * 4 + [1] + [2] * 4
    figures = {figure["name"]: figure["trials"] for figure in after["figures"]}
    assert figures["send, all endpoints"] == 2
    again = tonnage.run(
        "measure", "net", *SHORT, "--endpoints=3", "--repetitions=2", "--output", out
    )
    assert again.returncode == 2
    assert "=2, not 3" in again.stderr


def test_an_endpoint_that_is_killed_is_named(running: RunningCommand) -> None:
    processes = endpoints_of(running)
    os.kill(processes[0], signal.SIGKILL)
    _, err = running.process.communicate(timeout=60)
    assert running.process.returncode == 1
    (last,) = [line for line in err.splitlines() if line.startswith("tonnage: ")]
    assert "endpoint " in last
    assert last.endswith("(127.0.0.1) was killed by SIGKILL")
    assert all(map(is_gone, processes))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_no_endpoint_outlives_its_command(
    running: RunningCommand, number: signal.Signals, code: int
) -> None:
    processes = endpoints_of(running)
    assert running.end(number)[0] == code
    if number == signal.SIGKILL:
        # Nothing ended them: they notice by themselves.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all(map(is_gone, processes)) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert all(map(is_gone, processes))


def test_errors_of_the_core_name_the_endpoint() -> None:
    # Addresses of a network that this machine does not belong to.
    spec = RoundSpec(0, all_to_all(2), connections=1, block_bytes=1 << 20, seconds=1.0)
    configs = core_configs(["192.0.2.1:7411", "192.0.2.2:7411"], spec, patience_seconds=9.0)
    with pytest.raises(core.RunError, match=r"^endpoint \d \(here\): listening on 192\.0\.2\.\d:"):
        run_endpoints([EndpointHost("here")] * 2, configs, timeout_seconds=60)
    configs[0]["seconds"] = configs[1]["seconds"] = -1.0
    with pytest.raises(
        core.UsageError, match=r"^endpoint \d \(here\): seconds: -1 is not a duration"
    ):
        run_endpoints([EndpointHost("here")] * 2, configs, timeout_seconds=60)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--endpoints=1"], "not an integer from 2 to 64"),
        (["--connections=0"], "not an integer from 1 to 64"),
        (["--block=10"], "not a size from 1KiB to 1GiB"),
        (["--rate=1Gbit"], "add --namespaces"),
        (["--rate=fast", "--namespaces"], "like 200Mbit or 1Gbit"),
        (["--block=1GiB", "--endpoints=64", "--connections=64"], ", more than the "),
    ],
)
def test_unusable_settings_are_refused(
    tonnage: Tonnage, tmp_path: Path, args: list[str], message: str
) -> None:
    done = tonnage.run("measure", "net", *args, "--output", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_namespaces_are_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new" / "out"
    wanted = replace(SETTINGS, namespaces=True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(core.UsageError, match="namespaces: creating namespaces requires root"):
        next(measure_net(out, wanted, command=["test"]))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(
        core.UsageError, match="namespaces: program ip is missing; install iproute2"
    ):
        next(measure_net(out, wanted, command=["test"]))
    assert list(tmp_path.iterdir()) == []


def test_memory_is_limited_by_the_control_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "physical_memory", lambda: 8 << 30)
    monkeypatch.setattr(cgroups, "memory_limit", lambda: 1 << 30)
    refuse_memory("this takes 1 GiB,", 1 << 30, "use less")
    with pytest.raises(core.UsageError, match="takes 2 GiB, more than the 1 GiB that this process"):
        refuse_memory("this takes 2 GiB,", 2 << 30, "use less")


@needs_namespaces
def test_a_link_is_limited_to_its_rate(tonnage: Tonnage, tmp_path: Path) -> None:
    args = ["--endpoints=2", "--one-way", "--namespaces", "--rate=100Mbit"]
    # Only complete blocks count: with short ones there are many in a second.
    args += ["--repetitions=1", "--seconds=3", "--block=64KiB"]
    limit = 100e6 / 8 * PAYLOAD_SHARE
    found = measured(tonnage, tmp_path / "out", *args)
    (((sent,),), ((received,),)) = (rates(found, way) for way in ("send", "receive"))
    # Sent bytes may wait in buffers. A shared machine reaches less than the limit, never more:
    # benches/lab_truth measures how close it comes.
    assert LEAST * limit < received < 1.02 * limit
    assert LEAST * limit < sent < 1.1 * limit
    assert found["trials"][0]["settings"]["mtu"]["eth0"] == 1500
    assert list(NAMESPACES.glob(LEFT)) == []


@pytest.mark.slow
@needs_namespaces
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_no_namespace_is_left(tonnage: Tonnage, tmp_path: Path, number: signal.Signals) -> None:
    with started(
        endless_command(tonnage, tmp_path / "out", "--endpoints=2", "--namespaces")
    ) as command:
        command.wait_until(lambda: len(endpoints_of(command)) == 2)
        mine = {path.name for path in NAMESPACES.glob(f"tonnage-{command.pid}-*")}
        assert mine == {f"tonnage-{command.pid}-{name}" for name in ("0", "1", "switch")}
        # Another command neither disturbs this one nor removes its namespaces.
        measured(tonnage, tmp_path / "other", "--endpoints=2", "--namespaces", "--repetitions=1")
        assert len(endpoints_of(command)) == 2
        command.end(number)
    left = {path.name for path in NAMESPACES.glob(LEFT)}
    assert left == (mine if number == signal.SIGKILL else set())
    measured(tonnage, tmp_path / "next", "--endpoints=2", "--namespaces", "--repetitions=1")
    assert list(NAMESPACES.glob(LEFT)) == []
