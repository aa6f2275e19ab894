"""``tonnage cluster``: launched clusters, what they cost, and how they end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tonnage.base import core, formatting
from tonnage.base.records.base import to_builtins
from tonnage.cli.options.optional_dependencies import refuse_missing_extra
from tonnage.cli.options.types import Argument, Json, Option
from tonnage.cli.options.validate import usage_errors
from tonnage.cli.output import print_result

if TYPE_CHECKING:
    from tonnage.base.records.launch import Launch
    from tonnage.provision.aws.ec2 import Ec2
    from tonnage.provision.aws.status import LaunchStatus

Which = Annotated[
    str | None, Argument("[LAUNCH]", "The launch: its name, or the directory with its record.")
]
Region = Annotated[
    str | None,
    Option(
        "NAME",
        "AWS region, if LAUNCH is a name and not a directory with the launch's record. Default: "
        "the "
        "region in your AWS settings.",
    ),
]


def status(which: Which = None, region: Region = None, as_json: Json = False) -> None:
    """Show what a launch has rented and what it has cost so far, or show all launches in a region.

    Resources are found by the launch's AWS tag, so no local record is needed.

    Examples:
        tonnage cluster status tonnage-launch-1
        tonnage cluster status --region us-east-1
    """
    from tonnage.provision.aws.status import launch_statuses

    with _aws_errors():
        ec2, name, record, _ = _find(which, region)
        found = launch_statuses(ec2, name, record)
    lines = [line for each in found for line in _lines(each, which)]
    nothing = [f"Nothing is rented in {ec2.region}."]
    print_result(to_builtins(found), lines or nothing, as_json)


def down(which: Which = None, region: Region = None, as_json: Json = False) -> None:
    """Terminate everything that a launch has rented, and print its cost.

    LAUNCH may be any launch in your AWS account, including another user's. Without LAUNCH,
    terminate the only launch in the region.

    Examples:
        tonnage cluster down tonnage-launch-1
    """
    from tonnage.base.system.signals import signals_deferred
    from tonnage.provision.aws.requests import TARIFF_TAG, tariff_of
    from tonnage.provision.aws.teardown import LaunchRecordFile, describe_resources, now, tear_down
    from tonnage.provision.cost import cost_usd

    with _aws_errors():
        ec2, name, record, file = _find(which, region)
        standing = ec2.find_resources(name)
        if name is None:
            if len(standing) > 1:
                raise core.UsageError(
                    f"the region has several launches: {formatting.listing(sorted(standing))}; "
                    "specify one of them as LAUNCH"
                )
            name = next(iter(standing), None)
        if name is None:
            _show_down(None, None, as_json, ec2.region)
            return
        kept = LaunchRecordFile(record, file) if record else None
        before = standing.get(name)
        with signals_deferred():
            tear_down(ec2, name, kept, lambda line: print(line, file=sys.stderr, flush=True))
    if kept:
        cost: float | None = kept.record.cost_usd
    else:
        tariff = tariff_of(before.tags.get(TARIFF_TAG, "")) if before else None
        cost = cost_usd(tariff, before.nodes(now()), now()) if before and tariff else None
    was = bool(before and describe_resources(before))
    _show_down(name, cost, as_json, ec2.region, was=was)


def _show_down(
    name: str | None, cost: float | None, as_json: bool, region: str, *, was: bool = False
) -> None:
    costs = "its cost is unknown" if cost is None else f"it cost {formatting.cents(cost)}"
    line = f"{name} {'is terminated' if was else 'was already terminated'}; {costs}."
    if name is None:
        line = f"Nothing is rented in {region}."
    print_result({"name": name, "cost_usd": cost, "was_standing": was}, [line], as_json)


@contextmanager
def _aws_errors() -> Iterator[None]:
    from tonnage.provision.aws.ec2 import AwsError

    try:
        yield
    except AwsError as error:
        raise core.RunError(
            f"{error}; any rented nodes keep running until their lifetime ends"
        ) from error


def _find(
    which: str | None, region: str | None
) -> tuple[Ec2, str | None, Launch | None, Path | None]:
    """Where to look, for which launch, and its record, if there is one."""
    refuse_missing_extra("aws", "tonnage cluster")
    from tonnage.base.records import RecordError
    from tonnage.provision.aws.ec2 import Ec2, default_region
    from tonnage.provision.aws.status import read_launch_record

    with usage_errors(RecordError, hint="; use the launch's name, and --region"):
        known = read_launch_record(which) if which else None
    if known:
        record, file = known
        return Ec2(record.region), record.name, record, file
    if which and (Path(which).exists() or "/" in which):
        raise core.UsageError(f"{which}: no launch record found; use the launch's name")
    where = region or default_region()
    if not where:
        raise core.UsageError(
            "your AWS settings have no region; add --region, like --region us-east-1"
        )
    return Ec2(where), which, None, None


def _lines(each: LaunchStatus, which: str | None) -> Iterator[str]:
    step = f" ({each.step})" if each.step else ""
    rented = [node for node in each.nodes if node.is_rented]
    if not each.standing:
        cost = f"; it cost {formatting.cents(each.cost_usd)}" if each.cost_usd is not None else ""
        yield f"{each.name}: nothing is rented anymore{cost}"
        return
    yield f"{each.name} in {each.region}{step}: {each.standing}"
    if each.cost_usd is None or each.usd_per_hour is None:
        yield "  cost unknown"
    else:
        yield (
            f"  {formatting.cents(each.cost_usd)} so far, "
            f"{formatting.usd(round(each.usd_per_hour, 4))} per hour"
        )
    if each.ends_at and rented:
        yield f"  terminates itself {formatting.moment(each.ends_at)}"
    for node in rented:
        where = ", ".join(filter(None, (node.inside, node.outside)))
        yield f"  {node.instance}: {where}, since {formatting.moment(node.began_at)}"
    if each.address:
        yield f"  Ray at {each.address}"
    yield f"  to terminate it: tonnage cluster down {which or each.name}"
