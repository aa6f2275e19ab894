"""Terminate a launch: everything with its tag, billed resources first.

Requests are repeated until nothing is left, since AWS releases an instance's resources only when it
is gone. Only the launch's name is needed; a record, if any, receives the final cost.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import structs

from tonnage.base import core, formatting
from tonnage.base.records.launch import Launch, RentedNode
from tonnage.provision import cost as price
from tonnage.provision.aws.ec2 import AwsError, Ec2, LaunchResources

PAUSE_SECONDS = 2.0
PATIENCE_SECONDS = 600.0
"""Instances with large memories take minutes."""
SETTLE = timedelta(seconds=60)
"""An instance may take so long to appear if the answer to its request was lost."""
HELD = {"DependencyViolation", "InvalidPlacementGroup.InUse", "VolumeInUse", "InvalidGroup.InUse"}
"""Errors of resources that wait for an instance."""

OnStep = Callable[[str], None]


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class LaunchRecordFile:
    """A launch's record, written after each change."""

    record: Launch
    path: Path | None
    """``None`` for a lost record, reconstructed from tags."""

    def update(self, **changes: object) -> Launch:
        moment = now()
        made = structs.replace(self.record, **changes)
        cost = price.cost_usd(made.tariff, made.nodes, moment)
        self.record = structs.replace(made, step_at=moment.isoformat(), cost_usd=cost)
        if self.path:
            self.record.write(self.path)
        return self.record


def tear_down(
    ec2: Ec2, name: str, kept: LaunchRecordFile | None, on_step: OnStep, why: str | None = None
) -> None:
    """Terminate everything of a launch, and return when nothing is left.

    Without a record (``kept``) no cost is known; ``why`` is recorded as the reason.

    Raises:
        AwsError: AWS refuses, or does not answer; the rest still exists.
        RunError: Something is not gone after minutes, or the record cannot be written.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    unheard = _unheard_until(kept)
    unwritten: OSError | None = None

    def note(**changes: object) -> None:
        """Update the record; a failure must not stop the termination."""
        nonlocal unwritten
        try:
            if kept:
                kept.update(**changes)
        except OSError as failed:
            unwritten = failed

    if kept:
        note(step="ending", why=why or kept.record.why)
    while True:
        there = ec2.find_resources(name).get(name, LaunchResources())
        if there.to_terminate:
            ec2.call("terminate_instances", InstanceIds=there.to_terminate)
        if kept:
            found, ended = there.nodes(now()), set(there.to_terminate)
            note(nodes=merge_nodes(kept.record.nodes, found, ended, kept.record.ends_at))
        if there.is_empty:
            if now() >= unheard:
                break
            on_step("waiting for instances of a request that AWS did not answer")
        else:
            _let_go(ec2, there)
            on_step(
                f"waiting for {formatting.several(len(there.instances), 'instance')} to terminate"
            )
        if time.monotonic() > until:
            raise core.RunError(
                f"{describe_resources(there)} did not terminate within "
                f"{formatting.duration(PATIENCE_SECONDS)}"
            )
        time.sleep(PAUSE_SECONDS)
    note(step="down", address=None, unheard_since=None)
    if unwritten:
        raise core.RunError(
            f"all resources of {name} are terminated, but the record could not be written: "
            f"{unwritten.filename or 'launch.json'}: {unwritten.strerror}"
        )


def merge_nodes(
    known: Iterable[RentedNode],
    found: Iterable[RentedNode],
    ended: set[str] | None = None,
    ends_at: str | None = None,
) -> list[RentedNode]:
    """Update a record's nodes by those that AWS has; what ended stays so, with its reason.

    AWS forgets what ended an hour ago. With ``ends_at``, when all instances terminate themselves,
    ``found`` is complete: an instance that it lacks has ended by then. ``ended`` end now.
    """
    moment = now().isoformat()
    nodes = {node.instance: node for node in known}
    found = list(found)
    if ends_at is not None:
        there = {node.instance for node in found}
        by_itself = min(now(), datetime.fromisoformat(ends_at)).isoformat()
        for node in nodes.values():
            if node.is_rented and node.instance not in there and _is_settled(node):
                nodes[node.instance] = structs.replace(node, ended_at=by_itself)
    for node in found:
        before = nodes.get(node.instance)
        if before and not before.is_rented:
            continue
        if node.instance in (ended or ()):
            node = structs.replace(node, ended_at=moment)
        nodes[node.instance] = structs.replace(node, why=before.why if before else None)
    return list(nodes.values())


def _is_settled(node: RentedNode) -> bool:
    """Whether AWS would list it by now if it existed."""
    return now() > datetime.fromisoformat(node.began_at) + SETTLE


def describe_resources(there: LaunchResources) -> str:
    parts = {
        "": there.billed + there.shutting_down,
        "volume ": [] if there.billed else there.volumes,
        "security group ": there.security_groups,
        "placement group ": there.placement_groups,
    }
    return formatting.listing(f"{what}{name}" for what, names in parts.items() for name in names)


def _let_go(ec2: Ec2, there: LaunchResources) -> None:
    """Delete volumes and groups once no instance holds them."""
    if there.billed or there.shutting_down:
        return
    asked = [
        *(("delete_volume", {"VolumeId": each}) for each in there.volumes),
        *(("delete_security_group", {"GroupId": each}) for each in there.security_groups),
        *(("delete_placement_group", {"GroupName": each}) for each in there.placement_groups),
    ]
    for method, arguments in asked:
        try:
            ec2.call(method, **arguments)
        except AwsError as why:
            # An instance still holds it, or it was deleted with one.
            if why.code not in HELD and not why.code.endswith((".NotFound", ".Unknown")):
                raise


def _unheard_until(kept: LaunchRecordFile | None) -> datetime:
    """Until when an instance of an unanswered request may appear."""
    if kept and kept.record.unheard_since:
        return datetime.fromisoformat(kept.record.unheard_since) + SETTLE
    return datetime.min.replace(tzinfo=UTC)
