"""`tonnage launch` and `cluster`, against moto: each failure is reported and leaves nothing behind.

A script answers for the nodes (`support/aws/ssh.sh`); `test_launch_lab.py` has real ones.
"""

import json
import math
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.aws.ec2 import REGION, Cloud, cloud
from support.aws.launches import CATALOG, GP3, OFFER, SSH, Command, Ended, candidate, plan
from support.cli.command import Tonnage
from support.cli.documented_commands import shown
from support.data.copies import replace
from support.stores.disk import ROOT
from support.stores.s3 import BUCKET, Bucket
from tonnage.base import core
from tonnage.base.records.launch import Launch, RentedNode, Tariff
from tonnage.base.records.plan import Plan
from tonnage.catalog import find_offer, load_catalog
from tonnage.provision.aws.ec2 import Ec2
from tonnage.provision.aws.requests import (
    Account,
    LaunchOrder,
    run_instances,
    tariff_of,
    tariff_tag,
)
from tonnage.provision.aws.teardown import LaunchRecordFile, merge_nodes, now, tear_down
from tonnage.provision.cost import cost_usd, node_usd
from tonnage.provision.export import Rental

pytestmark = pytest.mark.slow

NODES = 2
MUTATING = (
    "CreateSecurityGroup",
    "AuthorizeSecurityGroupIngress",
    "CreatePlacementGroup",
    "RunInstances",
)
READING = ("DescribeSubnets", "DescribeInstances")
ENDING = ("TerminateInstances", "DeleteSecurityGroup", "DeletePlacementGroup")
WORDS = (
    *("answer", "disks", "wheel", "install", "token"),
    *("start", "alive", "screen", "command"),
)
"""What nodes are asked, as the script that stands for them calls it."""


@pytest.fixture(scope="module")
def server() -> Iterator[Cloud]:
    """EC2, for all tests."""
    with cloud() as running:
        yield running


class World:
    """EC2, nodes, and the command."""

    def __init__(self, server: Cloud, here: Path) -> None:
        self.cloud, self.here = server, here
        self.nodes = here / "nodes"
        for name in ("deaf", "fails", "screens"):
            (self.nodes / name).mkdir(parents=True)
        self.keys = here / "credentials"
        self.renew("tester")
        self.plan = plan(here / "plan.json", candidate(NODES))
        self.wheel = here / "tonnage-0.1.0-py3-none-any.whl"
        self.wheel.write_bytes(b"a wheel")
        self.account: list[str | Path] = ["--image", server.image(), "--subnet", server.subnet()]
        self.account += ["--key-pair", "mine", "--ssh-from", "203.0.113.7/32"]
        self.flags: list[str | Path] = [*self.account, "--ssh", SSH, "--wheel", self.wheel]
        self.flags += ["--output", "launch", "--timeout", "1s"]
        self._runs = 0

    def renew(self, keys: str) -> None:
        """The user has credentials of this name."""
        self.keys.write_text(
            f"[default]\naws_access_key_id = {keys}\naws_secret_access_key = secret\n"
        )

    def start(self, *arguments: str | Path) -> Command:
        """The command, under way."""
        self._runs += 1
        own = {
            "AWS_ENDPOINT_URL": self.cloud.endpoint,
            "AWS_SHARED_CREDENTIALS_FILE": str(self.keys),
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_DEFAULT_REGION": REGION,
            "NODES": str(self.nodes),
        }
        room = self.here / f"run-{self._runs}"
        room.mkdir()
        return Command(arguments, self.here, room, own)

    def run(self, *arguments: str | Path) -> Ended:
        """The command, at its end."""
        return self.start(*arguments).wait()

    def launch(self, *more: str | Path) -> Ended:
        """A launch."""
        return self.run("launch", self.plan, *self.flags, *more)

    @property
    def record(self) -> Launch:
        """What is on file of it."""
        return Launch.read(self.here / "launch" / "launch.json")

    def done(self) -> list[str]:
        """What nodes were asked, in order."""
        lines = (self.nodes / "done").read_text().splitlines()
        return [line.split()[1] for line in lines]

    def assert_nothing_is_left(self) -> None:
        """All that was rented is gone, and the record says so."""
        assert self.cloud.left() == {}
        assert self.record.step == "down" and self.record.rented == []


@pytest.fixture
def world(server: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """EC2 with nothing on it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    server.reset()
    return World(server, tmp_path)


@pytest.mark.real
def test_a_fleet_is_launched_shown_and_ended(world: World) -> None:
    done = world.launch()
    assert done.code == 0, done.err
    record = world.record
    assert record.step == "ready" and len(record.rented) == NODES
    assert record.ready_at and record.began_at <= record.ready_at <= record.step_at
    running = world.cloud.running()
    assert [each["InstanceId"] for each in running] == [each.instance for each in record.rented]
    head = record.rented[0]
    assert record.address == f"{head.inside}:6379"
    # How to use it, what it costs, and how it is ended.
    assert f"ubuntu@{head.outside}" in done.out and "tonnage cluster down launch" in done.out
    assert re.search(r"It costs \$0\.\d+ per hour", done.out)

    told = {tag["Key"]: tag["Value"] for tag in running[0]["Tags"]}
    assert told["tonnage-launch"] == told["Name"] == record.name
    assert {each["InstanceType"] for each in running} == {OFFER}
    shutdown = world.cloud.ec2.describe_instance_attribute(
        InstanceId=head.instance, Attribute="instanceInitiatedShutdownBehavior"
    )
    assert shutdown["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"
    assert {"placement groups", "security groups", "volumes"} <= world.cloud.left().keys()

    # Each node once, all that it needs.
    assert sorted(world.done()) == sorted(
        [*("answer", "disks", "wheel", "install", "token", "start") * NODES, "alive", "screen"]
    )
    said = (world.nodes / "said").read_text()
    assert "--dir /tonnage/volume-0" in said and "ray[default]==" in said

    shown = world.run("cluster", "status", "launch", "--json")
    assert shown.code == 0, shown.err
    (status,) = json.loads(shown.out)
    assert status["name"] == record.name and status["step"] == "ready"
    assert status["usd_per_hour"] == pytest.approx(NODES * candidate(NODES).usd_per_hour)
    assert len(status["nodes"]) == NODES

    ended = world.run("cluster", "down", "launch")
    assert ended.code == 0 and f"{record.name} is terminated; it cost $" in ended.out
    world.assert_nothing_is_left()
    again = world.run("cluster", "down", "launch", "--json")
    assert again.code == 0 and again.json["was_standing"] is False
    assert "nothing is rented anymore" in world.run("cluster", "status", "launch").out


def test_the_guide_leads_from_a_bucket_to_an_answer(
    world: World, s3: Bucket, tonnage: Tonnage
) -> None:
    """Its commands one after the other, with less data; what is done on nodes is only asked."""
    s3.put("points/part-0", np.random.default_rng(1).random((20_000, 8)).tobytes())
    _, image, _, subnet, *_ = world.account
    given = {
        "20TB": "200GB",
        "s3://bucket/points/part-0": f"s3://{BUCKET}/points/part-0",
        "ami-...": str(image),
        "subnet-...": str(subnet),
    }
    reached = ["--ssh", SSH, "--wheel", world.wheel, "--timeout", "1s"]
    store = {"AWS_ENDPOINT_URL": s3.endpoint, "AWS_REGION": "us-east-1"}
    printed = iter(["small.json", "plan.json"])
    done = []
    for call in shown(ROOT / "docs" / "guide" / "from-a-bucket.md"):
        if "--plan" in call.arguments:
            continue  # On the nodes.
        arguments = [given.get(each, each) for each in call.arguments]
        done.append(arguments[0])
        if "--instance-profile" in arguments:  # Of which the EC2 that is played knows none.
            at = arguments.index("--instance-profile")
            del arguments[at : at + 2]
        if arguments[0] in ("launch", "cluster"):
            ended = world.run(*arguments, *(reached if "--image" in arguments else ()))
            assert ended.code == 0, ended.err
            if arguments[1] == "status":
                chosen = Plan.read(world.here / "plan.json").candidates[0]
                assert len(world.cloud.running()) == chosen.nodes and "per hour" in ended.out
            continue
        ran = tonnage.run(*arguments, cwd=world.here, env=store, check=True)
        if "--json" in arguments:
            (world.here / next(printed)).write_text(ran.stdout)
    assert done == [
        *("plan", "explore", "plan", "run", "plan", "plan"),
        *("launch", "launch", "cluster", "cluster"),
    ]
    assert (world.here / "explore.html").exists()
    rents = [asked for action, asked in world.cloud.asked if action == "RunInstances"]
    assert (rents[0]["InstanceType"], rents[0]["MaxCount"]) == (chosen.offer, str(chosen.nodes))
    assert world.cloud.left() == {}


def test_what_is_printed_without_launching_is_what_is_asked_then(world: World) -> None:
    dry = world.run("launch", world.plan, *world.flags, "--dry-run", "--json")
    assert dry.code == 0, dry.err
    assert world.cloud.asked == [] and not (world.here / "launch").exists()
    document: Any = dry.json
    assert document["give"] == {}
    assert world.launch("--no-screen").code == 0
    asked = [action for action, _ in world.cloud.asked if action in (*MUTATING, "DescribeSubnets")]
    methods = [method for request in document["requests"] for method in request]
    assert [method.replace("_", "") for method in methods] == [each.lower() for each in asked]
    (wanted,) = [each["run_instances"] for each in document["requests"] if "run_instances" in each]
    (sent,) = [asked for action, asked in world.cloud.asked if action == "RunInstances"]
    assert wanted["MinCount"] == wanted["MaxCount"] == NODES
    for name in ("MinCount", "MaxCount", "ImageId", "SubnetId", "InstanceType", "KeyName"):
        assert sent[name] == str(wanted[name])
    assert sent["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert sent["Placement.GroupName"] == world.record.name
    assert not any(name.startswith("IamInstanceProfile") for name in sent)
    assert wanted["UserData"].startswith("#!/bin/bash\nends_at=")
    assert "screen" not in world.done()


def test_without_what_only_the_account_tells_it_says_what_to_give(world: World) -> None:
    dry = world.run("launch", world.plan, "--dry-run")
    assert dry.code == 0 and "REPLACE-ImageId" in dry.out and "To launch, add --image" in dry.err
    done = world.run("launch", world.plan)
    assert done.code == 2 and world.cloud.asked == []
    for flag in ("--image", "--subnet", "--key-pair", "--ssh-from"):
        assert flag in done.err


@pytest.mark.parametrize(
    ("given", "flags", "rule"),
    [
        ("10.0.0.1", (), {"IpRanges": [{"CidrIp": "10.0.0.1/32"}]}),
        ("203.0.113.0/24", (), {"IpRanges": [{"CidrIp": "203.0.113.0/24"}]}),
        ("2001:db8::1", (), {"Ipv6Ranges": [{"CidrIpv6": "2001:db8::1/128"}]}),
        ("0.0.0.0/0", ("--open-to-the-world",), {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}),
        ("::/0", ("--open-to-the-world",), {"Ipv6Ranges": [{"CidrIpv6": "::/0"}]}),
    ],
)
def test_addresses_that_may_log_in_are_a_range_of_their_kind(
    world: World, given: str, flags: tuple[str, ...], rule: dict[str, Any]
) -> None:
    done = world.launch("--ssh-from", given, *flags, "--dry-run", "--json")
    document: Any = done.json
    (asked,) = [each for each in document["requests"] if "authorize_security_group_ingress" in each]
    ssh = asked["authorize_security_group_ingress"]["IpPermissions"][1]
    assert {name: value for name, value in ssh.items() if "Ranges" in name} == rule
    # EC2 takes it as it is.
    assert world.launch("--ssh-from", given, *flags, "--no-screen").code == 0


def test_nodes_have_the_role_that_is_given(world: World) -> None:
    dry = world.run(
        "launch", world.plan, *world.flags, "--instance-profile", "reads", "--dry-run", "--json"
    )
    document: Any = dry.json
    (wanted,) = [each["run_instances"] for each in document["requests"] if "run_instances" in each]
    assert wanted["IamInstanceProfile"] == {"Name": "reads"}


def test_a_cap_is_kept_before_anything_is_rented(world: World) -> None:
    hourly = NODES * candidate(NODES).usd_per_hour
    done = world.launch("--lifetime", "3h", "--budget", f"{3 * hourly * 0.99:.4f}")
    assert done.code == 2 and "--budget" in done.err and "--lifetime" in done.err
    assert world.cloud.asked == []
    assert world.launch("--lifetime", "3h", "--budget", f"{3 * hourly * 1.01:.4f}").code == 0


def test_a_cap_holds_for_machines_that_are_rented_instead_of_others(world: World) -> None:
    world.cloud.after["RunInstances"] = lambda: deafen(world, 0)
    hourly = candidate(NODES).usd_per_hour
    # Enough for all, and not for one more until AWS has let go of the one that is replaced.
    done = world.launch("--lifetime", "3h", "--budget", f"{3 * hourly * (NODES + 0.5):.4f}")
    assert done.code == 1 and "with 1 more node the total cost could reach $" in done.err
    assert "above the budget" in done.err
    world.assert_nothing_is_left()


@pytest.mark.parametrize("status", [400, 500])
def test_all_or_none(world: World, status: int) -> None:
    world.cloud.refused["RunInstances"] = [("InsufficientInstanceCapacity", status)] * 4
    done = world.launch()
    assert done.code == 1
    assert (
        f"AWS cannot currently supply {NODES} x {OFFER}" in done.err
        and "another subnet" in done.err
    )
    assert "total cost $0.00" in done.err
    world.assert_nothing_is_left()


def test_a_node_that_fails_to_start_is_replaced(world: World) -> None:
    world.cloud.after["RunInstances"] = lambda: world.cloud.end(
        world.cloud.running()[1]["InstanceId"]
    )
    done = world.launch()
    assert done.code == 0, done.err
    record = world.record
    (lost,) = [each for each in record.nodes if not each.is_rented]
    assert lost.why and lost.why.startswith("AWS terminated it: ")
    assert len(record.nodes) == NODES + 1 and len(world.cloud.running()) == NODES
    # Each request has a token of its own, and the new node ends with the others.
    rents = [asked for action, asked in world.cloud.asked if action == "RunInstances"]
    assert len({asked["ClientToken"] for asked in rents}) == 2
    assert [asked["MaxCount"] for asked in rents] == [str(NODES), "1"]
    assert len({asked["UserData"] for asked in rents}) == 1


def deafen(world: World, place: int) -> None:
    """The machine at this place, of those that run, cannot be reached."""
    instance = world.cloud.running()[place]
    (world.nodes / "deaf" / instance["PublicIpAddress"]).touch()


def test_a_node_that_cannot_be_reached_is_replaced(world: World) -> None:
    world.cloud.after["RunInstances"] = lambda: deafen(world, 0)
    done = world.launch()
    assert done.code == 0, done.err
    (gone,) = [each for each in world.record.nodes if not each.is_rented]
    assert gone.why and "cannot be reached by ssh: ssh: connect to host" in gone.why
    assert len(world.cloud.running()) == NODES


def test_a_launch_of_nodes_that_cannot_be_reached_is_given_up(world: World) -> None:
    world.cloud.after["RunInstances"] = lambda: deafen(world, 1)
    done = world.launch("--replacements", "0")
    assert done.code == 1 and "cannot be reached" in done.err and "the limit is" in done.err
    world.assert_nothing_is_left()


def test_a_node_on_which_nothing_can_be_installed_ends_it(world: World) -> None:
    (world.nodes / "fails" / "install").touch()
    done = world.launch()
    assert done.code == 1 and "install failed as the test says" in done.err
    world.assert_nothing_is_left()


def test_a_slow_node_is_replaced_and_all_are_screened_again(world: World) -> None:
    def slow() -> None:
        head = world.cloud.running()[0]["InstanceId"]
        suspect = {"node": head, "what": "ro", "ratio_to_median": 0.25, "confidence": 0.99}
        (world.nodes / "screens" / "1.json").write_text(json.dumps({"suspects": [suspect]}))

    world.cloud.after["RunInstances"] = slow
    done = world.launch()
    assert done.code == 0, done.err
    record = world.record
    (gone,) = [each for each in record.nodes if not each.is_rented]
    assert gone is record.nodes[0] and gone.why == "read only: 25 % of the median node"
    # It was the head: another one is, and all are started anew.
    assert record.address == f"{record.rented[0].inside}:6379"
    assert world.done().count("start") == 2 * NODES and world.done().count("screen") == 2
    assert world.done().count("install") == NODES + 1
    kept = sorted(path.name for path in (world.here / "launch").glob("screening-*.json"))
    assert kept == ["screening-0.json", "screening-1.json"]
    # The other was rented first: else AWS could have given the same one again.
    actions = [action for action, _ in world.cloud.asked]
    assert (
        actions.index("TerminateInstances")
        > [at for at, action in enumerate(actions) if action == "RunInstances"][1]
    )


def test_slow_nodes_beyond_those_that_may_be_replaced_end_it(world: World) -> None:
    def slow() -> None:
        for number in (1, 2):
            names = [each["InstanceId"] for each in world.cloud.running()]
            suspects = [{"node": names[0], "what": "measurement failed", "ratio_to_median": None}]
            (world.nodes / "screens" / f"{number}.json").write_text(
                json.dumps({"suspects": suspects})
            )

    world.cloud.after["RunInstances"] = slow
    done = world.launch("--replacements", "0")
    assert done.code == 1 and "measurement failed" in done.err
    world.assert_nothing_is_left()


def test_a_command_runs_on_the_head_and_all_is_ended_after_it(world: World) -> None:
    done = world.launch("--", "tonnage", "run", "sort", "a b")
    assert done.code == 0, done.err
    head = world.record.nodes[0]
    assert done.out == f"said on {head.outside}\n"
    assert "exec tonnage run sort 'a b'" in (world.nodes / "said").read_text()
    assert "are terminated; total cost $" in done.err
    world.assert_nothing_is_left()


def test_a_command_that_fails_ends_all_too(world: World) -> None:
    (world.nodes / "fails" / "command").touch()
    done = world.launch("--json", "--", "false")
    assert (
        done.code == 1
        and "false failed with exit code 1; all resources of tonnage-sort-" in done.err
    )
    world.assert_nothing_is_left()


@pytest.mark.parametrize(
    ("action", "number"),
    [
        *((action, signal.SIGINT) for action in (*READING, *MUTATING, *ENDING)),
        ("RunInstances", signal.SIGTERM),
        ("RunInstances", signal.SIGHUP),
    ],
)
def test_a_signal_at_a_request_leaves_nothing(
    world: World, action: str, number: signal.Signals
) -> None:
    strike = Strike(world, number)
    world.cloud.before[action] = strike
    assert_interrupted(world, strike.launch(), number)


@pytest.mark.parametrize("action", ["RunInstances", "TerminateInstances"])
def test_a_signal_while_a_node_is_replaced_leaves_nothing(world: World, action: str) -> None:
    strike = Strike(world)

    def replaced() -> None:
        deafen(world, 0)
        world.cloud.before[action] = strike

    world.cloud.after["RunInstances"] = replaced
    assert_interrupted(world, strike.launch())


def test_who_is_interrupted_again_ends_all_nevertheless(world: World) -> None:
    strike = Strike(world)
    for action in ("RunInstances", *ENDING):
        world.cloud.before[action] = strike
    assert_interrupted(world, strike.launch())


def test_a_signal_while_a_fleet_is_taken_down_waits_for_its_end(world: World) -> None:
    assert world.launch("--no-screen").code == 0
    strike = Strike(world)
    world.cloud.before["TerminateInstances"] = strike
    assert strike.run("cluster", "down", "launch").code == 130
    world.assert_nothing_is_left()


@pytest.mark.parametrize("word", WORDS)
def test_a_signal_while_nodes_are_asked_leaves_nothing(world: World, word: str) -> None:
    (world.nodes / "kill").write_text(f"{word} INT\n")
    assert_interrupted(world, world.launch("--", "sleep", "60"))


class Strike:
    """Sends a command a signal whenever it is called, as while a request is answered."""

    def __init__(self, world: World, number: signal.Signals = signal.SIGINT) -> None:
        self._world, self._number = world, number
        self._known, self._pid = threading.Event(), 0

    def __call__(self) -> None:
        assert self._known.wait(60)
        os.kill(self._pid, self._number)

    def run(self, *arguments: str | Path) -> Ended:
        """The command, at its end."""
        command = self._world.start(*arguments)
        self._pid = command.pid
        self._known.set()
        return command.wait()

    def launch(self) -> Ended:
        """A launch for a command."""
        return self.run("launch", self._world.plan, *self._world.flags, "--", "sleep", "60")


def assert_interrupted(world: World, done: Ended, number: signal.Signals = signal.SIGINT) -> None:
    """It ended as a signal ends a command, and nothing is left."""
    assert done.code == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}[number], (
        done.err
    )
    last = done.err.splitlines()[-1]
    assert re.fullmatch(
        r"tonnage: interrupted: all resources of \S+ are terminated; total cost \$0\.\d+", last
    )
    world.assert_nothing_is_left()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("action", MUTATING)
def test_a_launch_that_is_killed_at_a_request_is_found_and_ended(
    world: World, action: str, when: str
) -> None:
    kill = Strike(world, signal.SIGKILL)
    getattr(world.cloud, when)[action] = kill
    assert kill.run("launch", world.plan, *world.flags).code == -signal.SIGKILL
    assert world.record.step in ("preparing", "renting")
    down = world.run("cluster", "down", "launch")
    assert down.code == 0, down.err
    world.assert_nothing_is_left()
    if (action, when) == ("RunInstances", "after"):
        # Nobody heard of them, and they are in the record now.
        assert len(world.record.nodes) == NODES and world.record.cost_usd > 0


@pytest.mark.parametrize("word", ["install", "screen"])
def test_a_launch_that_is_killed_later_is_ended_without_its_record(world: World, word: str) -> None:
    (world.nodes / "kill").write_text(f"{word} KILL\n")
    assert world.launch().code == -signal.SIGKILL
    name = world.record.name
    (world.here / "launch" / "launch.json").unlink()
    shown = json.loads(world.run("cluster", "status", "--json").out)
    assert [each["name"] for each in shown] == [name]
    assert shown[0]["usd_per_hour"] == pytest.approx(NODES * candidate(NODES).usd_per_hour)
    assert shown[0]["cost_usd"] > 0 and shown[0]["ends_at"]
    down = world.run("cluster", "down", "--region", REGION)
    assert down.code == 0 and f"{name} is terminated; it cost $" in down.out
    assert world.cloud.left() == {}
    assert "Nothing is rented" in world.run("cluster", "down").out


def test_machines_that_somebody_stopped_are_ended_too(world: World) -> None:
    assert world.launch("--no-screen").code == 0
    world.cloud.ec2.stop_instances(InstanceIds=[world.record.rented[0].instance])
    down = world.run("cluster", "down", "launch")
    assert down.code == 0, down.err
    assert world.cloud.left() == {}


def test_a_record_that_cannot_be_written_keeps_nothing_from_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.launch("--no-screen").code == 0
    record = world.record
    monkeypatch.setenv("AWS_ENDPOINT_URL", world.cloud.endpoint)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(world.keys))
    unwritable = LaunchRecordFile(record, world.plan / "under a file")
    with pytest.raises(core.RunError, match="are terminated, but the record could not be written"):
        tear_down(Ec2(REGION), record.name, unwritable, lambda _: None)
    assert world.cloud.left() == {}


def test_machines_that_aws_has_forgotten_have_ended_when_all_did() -> None:
    ends_at = "2026-01-01T02:00:00+00:00"
    known = [
        RentedNode(instance=f"i-{each}", began_at="2026-01-01T00:00:00+00:00") for each in "ab"
    ]
    still, gone = sorted(
        merge_nodes(known, known[:1], ends_at=ends_at), key=lambda node: node.instance
    )
    assert still.is_rented and gone.ended_at == ends_at
    young = RentedNode(instance="i-c", began_at=now().isoformat())
    assert merge_nodes([young], [], ends_at=ends_at)[0].is_rented


def test_of_several_launches_only_the_named_one_is_ended(world: World) -> None:
    assert world.launch("--no-screen").code == 0
    first = world.record.name
    (world.here / "launch").rename(world.here / "first")
    assert world.launch("--no-screen").code == 0
    refused = world.run("cluster", "down")
    assert refused.code == 2 and first in refused.err and "specify one" in refused.err
    assert len(world.cloud.running()) == 2 * NODES
    assert world.run("cluster", "down", first).code == 0
    assert len(world.cloud.running()) == NODES
    assert world.record.step == "ready"


def test_credentials_that_expire_are_looked_for_again_at_every_request(world: World) -> None:
    # At each action the old ones are refused, and new ones are where the user puts them.
    number = 0

    def expire() -> None:
        nonlocal number
        number += 1
        world.cloud.keys = f"keys-{number}"
        world.renew(world.cloud.keys)

    actions = [*READING, *MUTATING, "DescribeVolumes", "TerminateInstances"]
    actions += ["DeleteSecurityGroup", "DeletePlacementGroup"]
    for action in actions:
        world.cloud.before[action] = expire
    done = world.launch("--", "true")
    assert done.code == 0, done.err
    assert number == len(actions)
    world.assert_nothing_is_left()


@pytest.mark.parametrize("action", ["AuthorizeSecurityGroupIngress", "DescribeInstances"])
def test_credentials_that_stay_expired_leave_word_of_what_is_rented(
    world: World, action: str
) -> None:
    def expire() -> None:
        world.cloud.keys = "others"

    world.cloud.before[action] = expire
    done = world.launch()
    assert done.code == 1
    record = world.record
    assert "AWS rejects these credentials" in done.err
    assert "COULD NOT BE TERMINATED" in done.err and "tonnage cluster down launch" in done.err
    assert all(each.instance in done.err for each in record.rented)
    assert bool(record.rented) == (action == "DescribeInstances")
    assert record.ends_at[:10] in done.err
    # Nor is it ended without.
    again = world.run("cluster", "down", "launch")
    assert again.code == 1 and "AWS rejects these credentials" in again.err
    world.renew("others")
    assert world.run("cluster", "down", "launch").code == 0
    world.assert_nothing_is_left()


def test_the_bid_for_spot_machines_is_not_below_the_price_on_demand(world: World) -> None:
    world.plan = plan(world.here / "plan.json", candidate(NODES))
    done = world.launch("--purchase", "spot", "--no-screen")
    assert done.code == 0, done.err
    (sent,) = [asked for action, asked in world.cloud.asked if action == "RunInstances"]
    assert sent["InstanceMarketOptions.MarketType"] == "spot"
    most = world.record.tariff.machine_most_usd_per_hour
    assert float(sent["InstanceMarketOptions.SpotOptions.MaxPrice"]) == pytest.approx(most)
    on_demand = find_offer([load_catalog(CATALOG)], OFFER)[1].on_demand
    assert on_demand and most >= on_demand.usd_per_hour
    assert world.record.spot and "market=spot" in (world.nodes / "said").read_text()
    assert world.record.tariff.machine_usd_per_hour < candidate(NODES).usd_per_hour


@pytest.mark.parametrize("public", [True, False])
def test_nodes_have_public_addresses_if_the_plan_has(world: World, public: bool) -> None:
    address = 0.005 if public else 0.0
    price = candidate(NODES).usd_per_hour + address
    plan(world.plan, replace(candidate(NODES), usd_per_hour=price), public_addresses=public)
    done = world.launch("--no-screen")
    assert done.code == 0, done.err
    assert world.record.tariff.address_usd_per_hour == address
    assert [each.outside is not None for each in world.record.nodes] == [public] * NODES
    # What is known without the record is as much.
    (world.here / "launch" / "launch.json").unlink()
    (shown,) = json.loads(world.run("cluster", "status", "--json").out)
    assert shown["usd_per_hour"] == pytest.approx(NODES * price)


def test_the_tariff_of_a_launch_of_before_is_read_from_its_tag() -> None:
    assert tariff_of("3.6 7.2 0.36 1.0 60.0") == PRICED
    with_address = replace(PRICED, address_usd_per_hour=0.005)
    assert tariff_of(tariff_tag(with_address)) == with_address
    for tag in ("", "3.6", "3.6 7.2 0.36 1.0", "3.6 7.2 0.36 1.0 60.0 0.005 1", "a b c d e"):
        assert tariff_of(tag) is None


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--candidate", "2"), "--candidate 2 does not exist; PLAN"),
        (("--lifetime", "9min"), "--lifetime is too short; use at least 10min"),
        (("--wheel", "none.whl"), "--wheel none.whl: no such wheel"),
        (("--catalog", "aws-us-east-1-2014"), "the plan used aws-us-east-1-2026"),
        (("--ssh", ""), "--ssh is empty, perhaps from an unset variable"),
        (("--ssh-from", "everywhere"), "--ssh-from everywhere:"),
        (("--ssh-from", "10.0.0.1/24"), "has host bits set; use an address or a range"),
        (("--ssh-from", "0.0.0.0/0"), "lets everybody try to log in; use your own address"),
        (("--ssh-from", "::/0"), "or add --open-to-the-world"),
    ],
)
def test_refuses_and_says_what_mends_it(world: World, flags: tuple[str, ...], said: str) -> None:
    done = world.launch(*flags)
    assert done.code == 2 and said in done.err and len(done.err.splitlines()) == 1
    assert world.cloud.asked == []


def test_a_plan_at_another_price_or_of_another_provider_is_refused(world: World) -> None:
    costlier = replace(candidate(NODES), usd_per_hour=9.0)
    plan(world.here / "plan.json", costlier)
    assert "plan again" in world.launch().err
    longer = replace(candidate(NODES), seconds=replace(costlier.seconds, high=9000.0))
    plan(world.here / "plan.json", longer)
    assert "the planned job may take 2.5 h; use more" in world.launch().err
    plan(world.here / "plan.json", replace(costlier, provider="gcp"))
    assert "only those of aws; plan with --provider aws" in world.launch().err
    assert world.cloud.asked == []


BEGAN = datetime(2026, 11, 25, 3, 0, tzinfo=UTC)
PRICED = Tariff(
    machine_usd_per_hour=3.6,
    machine_most_usd_per_hour=7.2,
    volumes_usd_per_hour=0.36,
    granularity_seconds=1,
    least_seconds=60,
)
"""A tenth of a cent a second, and a tenth of that for the volumes."""


@pytest.mark.real
@pytest.mark.parametrize(
    ("seconds", "usd"),
    [(0, 0.06), (10, 0.061), (59.2, 0.06592), (60, 0.066), (60.5, 0.061 + 0.00605), (3600, 3.96)],
)
def test_a_node_costs_begun_seconds_and_a_minute_at_least(seconds: float, usd: float) -> None:
    assert node_usd(PRICED, seconds) == pytest.approx(usd, abs=1e-9)


@pytest.mark.real
def test_a_fleet_costs_what_each_node_was_there_for() -> None:
    def node(began: float, ended: float | None) -> RentedNode:
        at = [(BEGAN + timedelta(seconds=each)).isoformat() for each in (began, ended or 0)]
        return RentedNode(instance="i", began_at=at[0], ended_at=at[1] if ended else None)

    nodes = [node(0, None), node(0, 120), node(130, None)]
    # 300 s, 120 s and 170 s, at 0.11 cents a second.
    until = BEGAN + timedelta(seconds=300)
    assert cost_usd(PRICED, nodes, until) == pytest.approx(590 * 0.0011, abs=1e-9)
    assert cost_usd(PRICED, nodes, until, at_highest_price=True) == pytest.approx(
        590 * 0.0021, abs=1e-9
    )
    # By begun hours, as EC2 once had it.
    hourly = replace(PRICED, granularity_seconds=3600.0, volumes_usd_per_hour=0.0)
    assert cost_usd(hourly, nodes[:2], until) == pytest.approx(7.2)


@pytest.mark.parametrize("replaced", [0, 1])
def test_the_price_of_a_launch_is_that_of_its_machines_as_aws_has_them(
    world: World, replaced: int
) -> None:
    if replaced:
        world.cloud.after["RunInstances"] = lambda: deafen(world, 0)
    assert world.launch("--no-screen").code == 0
    launched = {each["InstanceId"]: each["LaunchTime"] for each in world.cloud.instances()}
    assert world.run("cluster", "down", "launch").code == 0
    record = world.record
    assert len(record.nodes) == NODES + replaced
    each_usd = []
    for node in record.nodes:
        assert datetime.fromisoformat(node.began_at) == launched[node.instance]
        assert node.ended_at
        seconds = (datetime.fromisoformat(node.ended_at) - launched[node.instance]).total_seconds()
        machine = max(math.ceil(seconds), 60) * record.tariff.machine_usd_per_hour / 3600
        each_usd.append(machine + seconds * record.tariff.volumes_usd_per_hour / 3600)
    assert record.cost_usd == pytest.approx(sum(each_usd), abs=1e-4)
    assert record.tariff.machine_usd_per_hour + record.tariff.volumes_usd_per_hour == (
        pytest.approx(candidate(NODES).usd_per_hour)
    )
    assert record.candidate.volumes == GP3


@pytest.mark.parametrize(("left", "minutes"), [(7200, 120), (119, 1), (59, 0), (-5, 0)])
def test_a_machine_ends_itself_at_its_time_and_when_it_boots_anew(
    tmp_path: Path, left: int, minutes: int
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    programs = {"date": "echo 1000000", "shutdown": f'echo "$@" >> {tmp_path}/done'}
    for name, body in programs.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    order = LaunchOrder(
        rental=Rental("sort", candidate(NODES), find_offer([load_catalog(CATALOG)], OFFER)[1]),
        account=Account(),
        tariff=PRICED,
        ends_at=datetime.fromtimestamp(1_000_000 + left, UTC),
    )
    script = run_instances(order, "sg-1", NODES, 0)["UserData"]
    # What mounts disks comes after it, whether that fails or not.
    script = script[: script.index("# Mounts each blank disk")]
    script = script.replace("/var/lib/cloud", str(tmp_path)).replace("local_disks=", "own=")
    env = {"PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", script], check=True, env=env)
    subprocess.run([tmp_path / "scripts" / "per-boot" / "tonnage-lifetime"], check=True, env=env)
    assert (tmp_path / "done").read_text() == f"-h +{minutes}\n" * 2
