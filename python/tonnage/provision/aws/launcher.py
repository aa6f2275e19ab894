"""Launch a cluster step by step, and tear it down if anything fails.

    prepare    a security group, a placement group
    rent       all instances or none
    settle     until all run, answer, have their disks, get Tonnage and Ray, join Ray and pass the
               screening. Failed or slow instances are replaced: the replacement is rented first, so
               that AWS does not return the same machine, then the old one is terminated
    ready

Each step is recorded before it starts. Whatever ends a launch before it is ready, signals included,
tears everything down (`teardown`); if that fails, the error names the command that does it.
"""

import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core, formatting
from tonnage.base.records import write_atomically
from tonnage.base.records.launch import Launch, RentedNode
from tonnage.base.system.signals import signals_deferred
from tonnage.provision import bootstrap, cost
from tonnage.provision.aws import requests, teardown
from tonnage.provision.aws.ec2 import AwsError, Ec2, has_ended, rented_node, why_ended
from tonnage.provision.aws.requests import LaunchOrder
from tonnage.provision.aws.teardown import LaunchRecordFile, now, tear_down
from tonnage.provision.ssh import CommandResult, RemoteCommand, SshClient, run_all

PAUSE_SECONDS = 3.0
ANSWER_SECONDS = 120.0
"""Time limit of a trivial command."""
INSTALL_SECONDS = 1200.0
START_SECONDS = 600.0
START_TRIES = 3
"""A busy node may need longer than Ray's own time limit."""
SCREEN_SECONDS = 3600.0
FULL = {
    *("InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacity"),
    *("InstanceLimitExceeded", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"),
    *("SpotMaxPriceTooLow", "InsufficientFreeAddressesInSubnet", "Unsupported"),
}
"""Errors that another zone, offer or price may avoid."""
REMEDY = "choose another subnet, candidate or purchase"

Tell = Callable[[str], None]
"""Shows a line of progress."""
Bad = dict[str, str]
"""Unusable instances, and why."""


@dataclass(frozen=True)
class LaunchRequest:
    order: LaunchOrder
    ssh: SshClient
    wheel: Path
    cap_usd: float | None
    replacements: int
    """The most instances that are replaced."""
    screens: bool
    size_bytes: int
    seconds: float
    patience_seconds: float
    """Time limit for an instance to run, and then to answer."""
    is_private: bool
    """Whether nodes are reached at their private addresses."""
    command: list[str]


class Launcher:
    """A launch in progress."""

    def __init__(self, asked: LaunchRequest, ec2: Ec2, kept: LaunchRecordFile, tell: Tell) -> None:
        self._asked, self._ec2, self._kept, self._tell = asked, ec2, kept, tell
        self._group, self._zone, self._requests, self._screenings = "", "", 0, 0
        self._replaced = 0
        self._made: set[str] = set()
        """Instances that are fully set up."""
        self._token = secrets.token_hex(32).encode()

    def run(self) -> None:
        """Launch the cluster.

        Raises:
            RunError, AwsError, KeyboardInterrupt: It failed; what is rented still exists.
        """
        asked = self._asked
        self._prepare()
        self._rent(asked.order.rental.candidate.nodes)
        while bad := self._wrong():
            self._replace(bad)
        address = f"{self._head.inside}:{bootstrap.PORT}"
        self._kept.update(step="ready", ready_at=now().isoformat(), address=address)

    def _prepare(self) -> None:
        order, ask = self._asked.order, self._ec2.call
        self._step("preparing", "preparing groups")
        subnet = ask("describe_subnets", **requests.describe_subnets(order))["Subnets"][0]
        self._zone = subnet["AvailabilityZone"]
        with signals_deferred():
            made = ask(
                "create_security_group", **requests.create_security_group(order, subnet["VpcId"])
            )
        self._group = made["GroupId"]
        let_in = requests.authorize_security_group_ingress(order, self._group)
        ask("authorize_security_group_ingress", **let_in)
        if placed := requests.create_placement_group(order):
            with signals_deferred():
                ask("create_placement_group", **placed)

    def _rent(self, count: int) -> None:
        order = self._asked.order
        rental = order.rental
        self._step("renting", f"renting {count} x {rental.offer.type}")
        wanted = requests.run_instances(order, self._group, count, self._requests)
        self._requests += 1
        with signals_deferred():
            self._kept.update(unheard_since=now().isoformat())
            try:
                answer = self._ec2.call("run_instances", **wanted)
            except AwsError as why:
                if why.code:
                    self._kept.update(unheard_since=None)
                if why.code not in FULL:
                    raise
                raise core.RunError(
                    f"AWS cannot currently supply {count} x {rental.offer.type} in "
                    f"{order.account.subnet}, and the request is all-or-nothing: {why}; {REMEDY}"
                ) from why
            moment = now()
            nodes = [rented_node(each, moment) for each in answer["Instances"]]
            self._kept.update(nodes=[*self._kept.record.nodes, *nodes], unheard_since=None)

    def _wrong(self) -> Bad:
        """Set up all instances, and return those that fail."""
        bad = self._wait()
        bad |= self._answer(bad)
        bad |= self._install(bad)
        if bad:
            return bad
        bad = self._start()
        if bad or not self._asked.screens:
            return bad
        return self._screen()

    def _wait(self) -> Bad:
        """Wait until AWS reports all instances as running."""
        self._step("waiting", "waiting for all instances to run")
        until = time.monotonic() + self._asked.patience_seconds
        while True:
            known = self._ec2.instances(self._asked.order.name)
            states = {
                each.instance: known.get(each.instance, {"State": {"Name": "pending"}})
                for each in self._rented
            }
            bad = {name: why_ended(each) for name, each in states.items() if has_ended(each)}
            late = [name for name, each in states.items() if each["State"]["Name"] == "pending"]
            is_over = time.monotonic() > until
            if not late or is_over:
                # Running instances have addresses.
                found = [rented_node(each, now()) for each in known.values()]
                self._kept.update(nodes=teardown.merge_nodes(self._kept.record.nodes, found))
                return bad | dict.fromkeys(
                    late, f"not running after {self._asked.patience_seconds:g} s"
                )
            time.sleep(PAUSE_SECONDS)

    def _answer(self, bad: Mapping[str, str]) -> Bad:
        """Wait until all running instances answer; each is tried at least once."""
        self._tell("waiting until all instances accept ssh")
        waiting = [each for each in self._unprepared_nodes if each.instance not in bad]
        until = time.monotonic() + self._asked.patience_seconds
        while waiting:
            said = self._at({each: bootstrap.PING for each in waiting}, ANSWER_SECONDS)
            waiting = [each for each in waiting if said[each.instance].code != 0]
            if waiting and time.monotonic() > until:
                return {
                    each.instance: f"cannot be reached by ssh: {said[each.instance].failure}"
                    for each in waiting
                }
            if waiting:
                time.sleep(PAUSE_SECONDS)
        return {}

    def _install(self, bad: Mapping[str, str]) -> Bad:
        """Install Tonnage, Ray and its token once the disks are mounted."""
        rental = self._asked.order.rental
        new = [each for each in self._unprepared_nodes if each.instance not in bad]
        self._step("installing", f"installing Tonnage on {formatting.several(len(new), 'node')}")
        wheel = self._asked.wheel
        steps: list[tuple[str, bytes | Path, float]] = [
            (bootstrap.receive_wheel(wheel), wheel, INSTALL_SECONDS),
            (bootstrap.install(rental), b"", INSTALL_SECONDS),
            (bootstrap.RECEIVE_TOKEN, self._token, ANSWER_SECONDS),
        ]
        if rental.has_disks:
            steps.insert(0, (bootstrap.WAIT_FOR_DISKS, b"", bootstrap.BOOT_SECONDS))
        found: Bad = {}
        for command, stdin, seconds in steps:
            new = [each for each in new if each.instance not in found]
            said = self._at({each: command for each in new}, seconds, stdin)
            found |= {
                name: f"Tonnage could not be installed: {each.failure}"
                for name, each in said.items()
                if each.code != 0
            }
        self._made |= {each.instance for each in new if each.instance not in found}
        return found

    def _start(self) -> Bad:
        head, rented = self._head, self._rented
        self._step("starting", f"starting Ray on {formatting.several(len(rented), 'node')}")
        for some, at in ([head], None), (rented[1:], head.inside):
            if bad := self._started(some, at):
                return bad
        until = time.monotonic() + START_SECONDS
        wanted = {each.instance for each in rented}
        while True:
            (said_of_all,) = self._at({head: bootstrap.LIST_NODES}, ANSWER_SECONDS).values()
            alive = (said_of_all.out.splitlines() or [""])[-1].split()
            if said_of_all.code == 0 and wanted == set(alive):
                return {}
            if time.monotonic() > until:
                missing = formatting.listing(sorted(wanted - set(alive)))
                raise core.RunError(f"Ray did not start on {missing}: {said_of_all.failure}")
            time.sleep(PAUSE_SECONDS)

    def _started(self, some: list[RentedNode], head: str | None) -> Bad:
        """Start Ray on these nodes, with some retries."""
        labels = bootstrap.labels(self._asked.order.rental, self._zone)
        tell = bootstrap.environment(self._head.inside or "")
        failed: Bad = {}
        for _ in range(START_TRIES):
            wanted = {
                each: tell + bootstrap.start_ray(each.inside or "", each.instance, head, labels)
                for each in some
            }
            said = self._at(wanted, START_SECONDS)
            some = [each for each in some if said[each.instance].code != 0]
            failed = {
                each.instance: f"Ray could not be started: {said[each.instance].failure}"
                for each in some
            }
            if not some:
                break
        return failed

    def _screen(self) -> Bad:
        """Find nodes that are slow or fail to measure."""
        asked = self._asked
        self._step("screening", f"screening {formatting.several(len(self._rented), 'node')}")
        wanted = bootstrap.screen(
            asked.order.rental,
            self._screenings,
            asked.size_bytes,
            asked.seconds,
            asked.patience_seconds,
        )
        (said,) = self._at({self._head: wanted}, SCREEN_SECONDS).values()
        try:
            found: dict[str, Any] = json.loads(said.out.splitlines()[-1])
            suspects: list[dict[str, Any]] = found["suspects"]
        except (IndexError, ValueError, KeyError):
            raise core.RunError(f"screening failed: {said.failure}") from None
        if path := self._kept.path:
            place = path.parent / f"screening-{self._screenings}.json"
            write_atomically(place, json.dumps(found).encode())
        self._screenings += 1
        bad: Bad = {}
        for each in suspects:
            ratio, what = each["ratio_to_median"], formatting.trial(each["what"])
            slow = f"{what}: {formatting.percent(ratio)} of the median node" if ratio else what
            bad.setdefault(each["node"], slow)
        return bad

    def _replace(self, bad: Bad) -> None:
        """Rent replacements for these instances, then terminate them.

        Raises:
            RunError: Too many replacements, or the cost cap would be exceeded.
        """
        told = formatting.listing(f"{name}: {why}" for name, why in sorted(bad.items()))
        self._tell(f"replacing {told}")
        self._replaced += len(bad)
        if self._replaced > self._asked.replacements:
            raise core.RunError(
                f"{told}; the limit is "
                f"{formatting.several(self._asked.replacements, 'replacement')}; "
                "allow more, or choose another candidate"
            )
        refuse_above(self._asked, self._kept.record, len(bad))
        self._rent(len(bad))
        with signals_deferred():
            rented = [each.instance for each in self._rented if each.instance in bad]
            if rented:
                self._ec2.call("terminate_instances", InstanceIds=rented)
            moment = now().isoformat()
            self._kept.update(
                nodes=[
                    structs.replace(each, ended_at=each.ended_at or moment, why=bad[each.instance])
                    if each.instance in bad
                    else each
                    for each in self._kept.record.nodes
                ]
            )

    @property
    def _rented(self) -> list[RentedNode]:
        return self._kept.record.rented

    @property
    def _head(self) -> RentedNode:
        return self._rented[0]

    @property
    def _unprepared_nodes(self) -> list[RentedNode]:
        return [each for each in self._rented if each.instance not in self._made]

    def _step(self, step: str, said: str) -> None:
        self._kept.update(step=step)
        self._tell(said)

    def _at(
        self, wanted: Mapping[RentedNode, str], seconds: float, stdin: bytes | Path = b""
    ) -> dict[str, CommandResult]:
        """Run commands on nodes, and report each tenth of them that is done."""
        tenths = 0

        def tell(done: int, of: int) -> None:
            nonlocal tenths
            if of > 1 and done < of and 10 * done // of > tenths:
                tenths = 10 * done // of
                self._tell(f"{done} of {formatting.several(of, 'node')} done")

        return run_all(
            {
                each.instance: RemoteCommand(
                    self._asked.ssh.command(address(each, self._asked.is_private), command), stdin
                )
                for each, command in wanted.items()
            },
            seconds,
            tell,
        )


def address(of: RentedNode, is_private: bool) -> str:
    return (of.inside if is_private else of.outside or of.inside) or ""


def highest_cost_usd(asked: LaunchRequest, record: Launch, more: int) -> float:
    """The highest cost of the launch with this many more instances, if all stay to its end."""
    order = asked.order
    moment = now()
    ends_at = order.ends_at
    coming = RentedNode(instance="", began_at=min(moment, ends_at).isoformat())
    nodes = [*record.nodes, *[coming] * more]
    return cost.cost_usd(order.tariff, nodes, ends_at, at_highest_price=True)


def refuse_above(asked: LaunchRequest, record: Launch, more: int) -> None:
    """Refuse more instances if the launch could exceed the cost cap.

    Raises:
        RunError: It could.
    """
    most = highest_cost_usd(asked, record, more)
    if asked.cap_usd is not None and most > asked.cap_usd:
        raise core.RunError(
            f"with {formatting.count(more)} more {'node' if more == 1 else 'nodes'} the total cost "
            f"could reach {formatting.cents(most)}, above the budget of "
            f"{formatting.cents(asked.cap_usd)}; raise the budget, or shorten the lifetime"
        )


@contextmanager
def launched_cluster(
    asked: LaunchRequest, ec2: Ec2, kept: LaunchRecordFile, tell: Tell, *, stays: bool
) -> Iterator[Launch]:
    """Launch a cluster; with ``stays`` it stays up after success, else it is torn down.

    Raises:
        RunError: The launch failed; says what it cost, or what still exists.
        KeyboardInterrupt: A signal arrived; says the same.
    """
    try:
        Launcher(asked, ec2, kept, tell).run()
        yield kept.record
        if not stays:
            with signals_deferred():
                tear_down(ec2, kept.record.name, kept, tell)
    except BaseException as why:
        # A second interrupt must not leave anything rented.
        with signals_deferred(discard=True):
            said = _taken_down(ec2, kept, tell, " ".join(str(why).split()) or type(why).__name__)
        if isinstance(why, (core.RunError, AwsError)):
            raise core.RunError(f"{why}; {said}") from why
        if isinstance(why, KeyboardInterrupt):
            raise type(why)(f"interrupted: {said}") from why
        print(said, file=sys.stderr)
        raise


def _taken_down(ec2: Ec2, kept: LaunchRecordFile, tell: Tell, why: str) -> str:
    try:
        tear_down(ec2, kept.record.name, kept, tell, why)
    except (AwsError, core.RunError, OSError) as failed:
        return describe_failed_teardown(kept, str(failed))
    return describe_teardown(kept.record)


def describe_teardown(record: Launch) -> str:
    cost_usd = formatting.cents(record.cost_usd)
    return f"all resources of {record.name} are terminated; total cost {cost_usd}"


def describe_failed_teardown(kept: LaunchRecordFile, why: str) -> str:
    """State what may still exist of a launch, and the command that terminates it."""
    record = kept.record
    nodes = formatting.listing(each.instance for each in record.rented) or "its resources"
    place = kept.path.parent if kept.path else record.name
    return (
        f"{record.name} COULD NOT BE TERMINATED ({why}): {nodes} in {record.region} may still be "
        f"running, at the latest until {format_moment(record.ends_at)}; terminate them with "
        f"tonnage cluster down {place}"
    )


def format_moment(told: str) -> str:
    return formatting.moment(datetime.fromisoformat(told).isoformat(timespec="seconds"))
