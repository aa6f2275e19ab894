"""``tonnage launch``."""

from __future__ import annotations

import ipaddress
import json
import secrets
import shlex
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tonnage.base import core, formatting
from tonnage.base.records.base import to_builtins
from tonnage.cli.measure.options import TrialSeconds, TrialSize
from tonnage.cli.options.extras import refuse_without
from tonnage.cli.options.files import new_directory
from tonnage.cli.options.plan_file import chosen_of
from tonnage.cli.options.planning import catalogs_of
from tonnage.cli.options.types import Json, parse_duration, parse_usd, whole_number
from tonnage.cli.options.validate import refuse_files, refuse_non_empty, refuse_unknown
from tonnage.cli.plan.emit import offer_of

if TYPE_CHECKING:
    from tonnage.base.records.launch import Launch
    from tonnage.base.records.plan import Candidate, Plan
    from tonnage.plan.machines import PURCHASES
    from tonnage.provision.aws.launcher import LaunchRequest
    from tonnage.provision.aws.requests import Account, LaunchOrder

LIFETIME = "2h"
WHEELS = Path("target/wheels")
"""Where ``make build`` puts the wheel."""
LEAST_LIFETIME_SECONDS = 600.0
ARCHITECTURES = {"x86_64": "x86_64", "arm64": "aarch64"}
"""What wheels call the catalog's."""


def launch(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", help="What tonnage plan JOB --json printed.")
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]",
            help="What to run on the fleet's head, after --; the fleet is taken down then.",
        ),
    ] = None,
    candidate: Annotated[
        int | None,
        typer.Option(
            "--candidate",
            parser=whole_number(1, 1_000_000),
            metavar="N",
            help="Not the best candidate but the N-th.",
        ),
    ] = None,
    purchase: Annotated[
        str | None,
        typer.Option(
            "--purchase",
            metavar="HOW",
            help="How to rent: on-demand or spot. Default: as planned.",
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option("--image", metavar="AMI", help="The id of an image of Ubuntu 24.04."),
    ] = None,
    subnet: Annotated[
        str | None,
        typer.Option("--subnet", metavar="ID", help="Where all nodes are; its zone is theirs."),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="NAME", help="Your key pair, as EC2 calls it.")
    ] = None,
    ssh_from: Annotated[
        str | None,
        typer.Option(
            "--ssh-from", metavar="CIDR", help="Who may reach nodes by ssh, like 203.0.113.7/32."
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--instance-profile",
            metavar="NAME",
            help="What gives nodes their role, by which a job on them reads and writes a bucket of "
            "S3.",
        ),
    ] = None,
    ssh: Annotated[
        str,
        typer.Option(
            "--ssh",
            metavar="COMMAND",
            help="What reaches nodes, with its options: 'ssh -i KEY.pem -J BASTION'.",
        ),
    ] = "ssh",
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Whom the image lets in.")
    ] = "ubuntu",
    private: Annotated[
        bool, typer.Option("--private", help="Reach nodes at their private addresses.")
    ] = False,
    wheel: Annotated[
        Path | None,
        typer.Option(
            "--wheel",
            metavar="FILE",
            help="Tonnage for the nodes. Default: the one that make build made.",
        ),
    ] = None,
    lifetime: Annotated[
        float,
        typer.Option(
            "--lifetime",
            parser=parse_duration,
            metavar="TIME",
            help="After which all ends by itself, whoever is gone by then.",
        ),
    ] = LIFETIME,  # type: ignore[assignment]
    cap: Annotated[
        float | None,
        typer.Option(
            "--budget",
            parser=parse_usd,
            metavar="USD",
            help="Rent nothing that could cost more by the end of its lifetime.",
        ),
    ] = None,
    replacements: Annotated[
        int,
        typer.Option(
            "--replacements",
            parser=whole_number(0, 1000),
            metavar="N",
            help="So many machines that fail or are slow are replaced.",
        ),
    ] = "2",  # type: ignore[assignment]
    screen: Annotated[
        bool,
        typer.Option("--screen/--no-screen", help="Look for slow machines, and replace them."),
    ] = True,
    size: TrialSize = "1GB",  # type: ignore[assignment]
    seconds: TrialSeconds = "5",  # type: ignore[assignment]
    patience: Annotated[
        float,
        typer.Option(
            "--timeout",
            parser=parse_duration,
            metavar="TIME",
            help="How long a machine may take to run, then to answer, and to answer in screening.",
        ),
    ] = "5min",  # type: ignore[assignment]
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="The plan's catalog, where that is a file of yours.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print requests and price, and ask nobody.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Where its record goes. Default: tonnage-launch-N, here.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Rent what a plan says, install Tonnage and Ray, replace slow machines; or take all down.

    The fleet is left ready, for tonnage cluster down to end it; with -- COMMAND it is ended after
    that, however it went. Whatever fails before, all is ended.
    """
    from tonnage.provision.aws.requests import Account
    from tonnage.provision.cost import PriceError
    from tonnage.provision.export import ExportError

    made, chosen = chosen_of(f"PLAN {plan}", plan, candidate)
    if lifetime < LEAST_LIFETIME_SECONDS:
        raise core.UsageError("--lifetime: give ten minutes at least, like 2h")
    if chosen.seconds.high > lifetime:
        raise core.UsageError(
            f"--lifetime {formatting.duration(lifetime)}: the plan takes up to "
            f"{formatting.duration(chosen.seconds.high)}: give more than {chosen.seconds.high:.0f}s"
        )
    refuse_addresses(ssh_from)
    given = {"image": image, "subnet": subnet, "key": key, "ssh_from": ssh_from}
    given["profile"] = profile
    account = Account(**{name: value for name, value in given.items() if value is not None})
    refuse_unknown("--purchase", [purchase] if purchase else [], PURCHASES)
    is_spot = (purchase or made.settings.get("purchase")) == "spot"
    try:
        order = order_of(made, chosen, is_spot, account, lifetime, catalog)
        if dry_run:
            show_requests(order, cap, as_json)
            return
    except (ExportError, PriceError) as why:
        raise core.UsageError(f"{chosen.nodes} x {chosen.offer} ({chosen.layout}): {why}") from why
    refuse_unknown_account(order)
    if out:
        refuse_files("--output", [out])
        refuse_non_empty("--output", [out])
    place = out or new_directory("tonnage-launch")
    from tonnage.provision.aws.launcher import LaunchRequest
    from tonnage.provision.ssh import SshClient

    program = shlex.split(ssh)
    if not program:
        raise core.UsageError("--ssh: give a command, like ssh")
    asked = LaunchRequest(
        order=order,
        ssh=SshClient(tuple(program), user, place.absolute() / "known_hosts"),
        wheel=wheel_of(wheel, order.rental.offer.arch),
        cap_usd=cap,
        replacements=replacements,
        screens=screen,
        size_bytes=size,
        seconds=seconds,
        patience_seconds=patience,
        is_private=private,
        command=command or [],
    )
    refuse_dear(order, cap)
    record = carried_out(asked, made, place, as_json)
    if as_json:
        print(json.dumps(record.to_json()))


def order_of(
    made: Plan,
    chosen: Candidate,
    spot: bool,
    account: Account,
    lifetime_seconds: float,
    catalog: str | None,
) -> LaunchOrder:
    """What is to be launched.

    Raises:
        UsageError: Its catalog is not known, or has not the plan's prices.
        PriceError, HandoverError: It has no price, or cannot be rented of AWS.
    """
    from tonnage.provision import cost
    from tonnage.provision.aws.requests import LaunchOrder
    from tonnage.provision.aws.teardown import now
    from tonnage.provision.export import ExportError, Rental

    if chosen.provider != "aws":
        raise ExportError(
            f"it is of {chosen.provider}, and only aws is rented: plan with --provider aws"
        )
    (offered,) = catalogs_of([catalog or chosen.catalog], ())
    if offered.name != chosen.catalog:
        raise core.UsageError(f"--catalog {catalog}: the plan is of {chosen.catalog}: give that")
    offer = offer_of(chosen, offered)
    if offer.region is None:
        raise core.UsageError(f"catalog {offered.name} tells no region: plan with another")
    planned = made.settings.get("purchase") == "spot"
    if not cost.matches_plan(cost.find_tariff(offered, offer, chosen, planned), chosen):
        raise core.UsageError(
            f"catalog {offered.name} has another price than the plan: make the plan anew"
        )
    mark = secrets.token_hex(3)
    return LaunchOrder(
        rental=Rental(made.job.name, chosen, offer, spot, mark),
        account=account,
        tariff=cost.find_tariff(offered, offer, chosen, spot),
        ends_at=now().replace(microsecond=0) + timedelta(seconds=lifetime_seconds),
    )


def refuse_addresses(given: str | None) -> None:
    """Refuses what is no range of addresses."""
    if given is None:
        return
    try:
        ipaddress.ip_network(given)
    except ValueError as why:
        raise core.UsageError(
            f"--ssh-from {given}: {why}: give a range of addresses, like 203.0.113.7/32"
        ) from None


def refuse_unknown_account(order: LaunchOrder) -> None:
    """Refuses requests with a placeholder in them."""
    from tonnage.provision.aws.requests import missing_values

    missing = [f"{flag}, {what}" for flag, what in missing_values(order).items()]
    if missing:
        raise core.UsageError(
            f"give {'; and '.join(missing)} (--dry-run shows what would be asked without)"
        )


def most_usd(order: LaunchOrder) -> float:
    """What it costs at most, if it is there for all of its lifetime."""
    from tonnage.provision.aws.teardown import now
    from tonnage.provision.cost import node_usd

    seconds = (order.ends_at - now()).total_seconds()
    return order.rental.candidate.nodes * node_usd(order.tariff, seconds, at_highest_price=True)


def refuse_dear(order: LaunchOrder, cap_usd: float | None) -> None:
    """Refuses what can cost more than the cap."""
    most = most_usd(order)
    if cap_usd is not None and most > cap_usd:
        raise core.UsageError(
            f"--budget {cap_usd:g}: {order.rental.candidate.nodes} x {order.rental.offer.type} "
            f"until the end of --lifetime cost {formatting.cents(most)}: give more, or a shorter "
            "--lifetime, or another --candidate"
        )


def wheel_of(given: Path | None, arch: str | None) -> Path:
    """The wheel for machines of this architecture."""
    if given is None:
        wanted = ARCHITECTURES.get(arch or "", "")
        found = sorted(WHEELS.glob(f"tonnage-*{wanted}.whl"))
        if len(found) != 1:
            of = f" of {arch}" if arch else ""
            raise core.UsageError(
                f"{WHEELS} has {formatting.several(len(found), 'wheel')} for nodes{of}: run make build "
                "on such a machine; or make wheels, and give --wheel FILE"
            )
        return found[0]
    if given.suffix != ".whl" or not given.is_file():
        raise core.UsageError(f"--wheel {given}: there is no such wheel: run make build")
    return given


def price_lines(order: LaunchOrder, cap_usd: float | None) -> list[str]:
    """What it costs, in words."""
    from tonnage.provision.cost import NOT_COUNTED, usd_per_hour

    candidate = order.rental.candidate
    hourly = usd_per_hour(order.tariff)
    usual = "usually " if order.rental.spot else ""
    lines = [
        f"{candidate.nodes} x {candidate.offer} ({candidate.layout}): {usual}"
        f"{formatting.usd(round(candidate.nodes * hourly, 4))} an hour ({formatting.usd(round(hourly, 6))} "
        "a node)",
        f"At most {formatting.cents(most_usd(order))} without replacements until all ends by itself, "
        f"{_moment(order.ends_at)}",
    ]
    if cap_usd is not None and most_usd(order) > cap_usd:
        lines.append(f"That is above --budget {cap_usd:g}: it would be refused")
    return [*lines, formatting.sentence(NOT_COUNTED)]


def show_requests(order: LaunchOrder, cap_usd: float | None, as_json: bool) -> None:
    """Prints what EC2 would be asked, and the price."""
    from tonnage.provision.aws import requests as request
    from tonnage.provision.cost import usd_per_hour

    requests = [{method: arguments} for method, arguments in request.all_requests(order)]
    document: dict[str, Any] = {"region": order.rental.region, "requests": requests}
    if as_json:
        prices = {
            "usd_per_hour": order.rental.candidate.nodes * usd_per_hour(order.tariff),
            "most_usd": most_usd(order),
            "tariff": to_builtins(order.tariff),
        }
        told = {"ends_at": order.ends_at.isoformat(), "give": request.missing_values(order)}
        print(json.dumps(document | {"name": order.name} | prices | told))
        return
    print(json.dumps(document, indent=1))
    for line in price_lines(order, cap_usd):
        print(line, file=sys.stderr)
    for flag, what in request.missing_values(order).items():
        print(f"To launch it give {flag}: {what}.", file=sys.stderr)


def carried_out(asked: LaunchRequest, made: Plan, place: Path, as_json: bool) -> Launch:
    """Launches, shows how to use it, or runs what is to be run; gives the record at its end."""
    refuse_without("aws", "tonnage launch")
    from tonnage.base.records.launch import Launch
    from tonnage.provision.aws.ec2 import Ec2
    from tonnage.provision.aws.launcher import address, describe_teardown, launched_cluster
    from tonnage.provision.aws.status import RECORD
    from tonnage.provision.aws.teardown import LaunchRecordFile, now
    from tonnage.provision.bootstrap import run_command
    from tonnage.provision.ssh import run_foreground

    order, began = asked.order, now().isoformat()
    kept = LaunchRecordFile(
        Launch(
            name=order.name,
            job=made.job.name,
            region=order.rental.region,
            subnet=order.account.subnet,
            candidate=order.rental.candidate,
            spot=order.rental.spot,
            tariff=order.tariff,
            cap_usd=asked.cap_usd,
            began_at=began,
            ends_at=order.ends_at.isoformat(),
            step="asked",
            step_at=began,
            command=asked.command,
        ),
        place / RECORD,
    )
    kept.update()
    for line in [*price_lines(order, asked.cap_usd), f"Its record: {place / RECORD}"]:
        tell(line)
    with launched_cluster(
        asked, Ec2(kept.record.region), kept, tell, stays=not asked.command
    ) as record:
        head = record.rented[0]
        at = address(head, asked.is_private)
        if asked.command:
            tell(f"running on {head.instance}: {formatting.command(asked.command)}")
            code = run_foreground(asked.ssh.command(at, run_command(asked.command)), to_stderr=as_json)
            if code:
                raise core.RunError(f"{asked.command[0]} ended with {code}")
        elif not as_json:
            print("\n".join(ready_lines(asked, record, at, place)), flush=True)
    if asked.command:
        tell(formatting.sentence(describe_teardown(kept.record)))
    return kept.record


def ready_lines(asked: LaunchRequest, record: Launch, at: str, place: Path) -> list[str]:
    """How to use a fleet that is ready, what it costs, and how it is ended."""
    order = asked.order
    hourly = record.tariff.machine_usd_per_hour + record.tariff.volumes_usd_per_hour
    nodes = record.rented
    login = formatting.command([*asked.ssh.program, f"{asked.ssh.user}@{at}"])
    return [
        f"{record.name} is ready: {len(nodes)} x {record.candidate.offer} in {record.region}, Ray "
        f"at {record.address}",
        f"It costs {formatting.usd(round(len(nodes) * hourly, 4))} an hour, "
        f"{formatting.cents(record.cost_usd)} so far; it ends by itself {_moment(order.ends_at)}",
        f"Use it: {login}, and there: tonnage run ... --cluster auto",
        f"End it: tonnage cluster down {place}",
    ]


def tell(line: str) -> None:
    """Shows what is being done."""
    print(line, file=sys.stderr, flush=True)


def _moment(at: datetime) -> str:
    return formatting.moment(at.isoformat(timespec="seconds"))
