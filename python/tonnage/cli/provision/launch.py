"""``tonnage launch``."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tonnage.base import core, formatting
from tonnage.cli.options.cluster import CandidateNumber
from tonnage.cli.options.files import new_directory
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.optional_dependencies import refuse_missing_extra
from tonnage.cli.options.plan_file import select_candidate
from tonnage.cli.options.types import (
    Argument,
    Count,
    Json,
    Option,
    Size,
    Switch,
    Time,
    duration,
    parse_measurable,
    parse_usd,
)
from tonnage.cli.options.validate import (
    refuse_files,
    refuse_non_empty,
    refuse_unknown,
    usage_errors,
)
from tonnage.cli.output.launch import price_lines, print_requests, ready_lines
from tonnage.cli.provision.launch_order import (
    address_range,
    find_wheel,
    order_from_plan,
    refuse_missing_account,
    refuse_over_budget,
)

if TYPE_CHECKING:
    from tonnage.base.records.launch import Launch
    from tonnage.base.records.plan import Plan
    from tonnage.provision.aws.launcher import LaunchRequest
    from tonnage.provision.aws.requests import Account

MIN_LIFETIME_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class AccountOptions:
    image: Annotated[
        str | None, Option("AMI", "ID of an Ubuntu 24.04 image. Required, except with --dry-run.")
    ] = None
    subnet: Annotated[
        str | None,
        Option(
            "ID",
            "Subnet for all nodes; it determines their availability zone. Required, except with "
            "--dry-run.",
        ),
    ] = None
    key: Annotated[
        str | None,
        Option(
            "NAME", "Name of your EC2 key pair. Required, except with --dry-run.", flag="--key-pair"
        ),
    ] = None
    ssh_from: Annotated[
        str | None,
        Option(
            "CIDR",
            "Addresses that may connect to the nodes by SSH: one, like 203.0.113.7, or a range, "
            "like 203.0.113.0/24. Required, except with --dry-run.",
        ),
    ] = None
    open_to_the_world: Annotated[
        bool,
        Switch("--open-to-the-world", "Let --ssh-from be all addresses: 0.0.0.0/0 or ::/0."),
    ] = False
    instance_profile: Annotated[
        str | None,
        Option("NAME", "Instance profile; its role gives jobs on the nodes access to S3 buckets."),
    ] = None

    @property
    def account(self) -> Account:
        from tonnage.provision.aws.requests import Account

        given = asdict(self)
        is_open = given.pop("open_to_the_world")
        given["ssh_from"] = self.ssh_from and address_range(self.ssh_from, is_open)
        given["profile"] = given.pop("instance_profile")
        return Account(**{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class NodeAccess:
    ssh: Annotated[
        str,
        Option("COMMAND", "SSH command with its options, like 'ssh -i KEY.pem -J BASTION'."),
    ] = "ssh"
    user: Annotated[str, Option("NAME", "SSH user of the image.")] = "ubuntu"
    private: Annotated[
        bool, Switch("--private", "Connect to nodes at their private addresses.")
    ] = False
    wheel: Annotated[
        Path | None,
        Option(
            "FILE",
            "Tonnage wheel to install on the nodes. Default: the wheel that make build created.",
        ),
    ] = None

    @property
    def program(self) -> tuple[str, ...]:
        program = shlex.split(self.ssh)
        if not program:
            raise core.UsageError("--ssh is empty; use a command, like ssh")
        return tuple(program)


@dataclass(frozen=True, kw_only=True)
class RentOptions:
    purchase: Annotated[
        str | None, Option("HOW", "on-demand or spot. Default: as in the plan.")
    ] = None
    lifetime: Annotated[
        float, Time("The nodes terminate themselves after this time, even if this machine is gone.")
    ] = default("2h")
    budget: Annotated[
        float | None,
        Option(
            "USD",
            "Maximum total cost over --lifetime; a launch that could exceed it is refused.",
            parse_usd,
        ),
    ] = None
    replacements: Annotated[
        int, Count("Maximum number of failed or slow nodes to replace.", 0, 1000)
    ] = default("2")
    screen: Annotated[
        bool, Switch("--screen/--no-screen", "Test the nodes, and replace slow ones.")
    ] = True
    size: Annotated[
        int, Size("Maximum amount of data that each disk test reads and writes.", parse_measurable)
    ] = default("1GB")
    seconds: Annotated[
        float, Time("Maximum duration of each disk test.", duration(0.1, 1_000_000))
    ] = default("5")
    timeout: Annotated[
        float, Time("Timeout for each of: node start, SSH response, test report.")
    ] = default("5min")


def launch(
    *,
    plan: Annotated[Path, Argument("PLAN", "A plan from tonnage plan --json.")],
    command: Annotated[
        list[str] | None,
        Argument(
            "[-- COMMAND...]",
            "The command to run on the head node, after --; the cluster is terminated when it "
            "ends.",
        ),
    ] = None,
    candidate: CandidateNumber = None,
    rent: RentOptions,
    account: AccountOptions,
    access: NodeAccess,
    catalog: Annotated[
        str | None,
        Option("NAME", "The catalog that the plan used, if it was a CSV file of your own."),
    ] = None,
    dry_run: Annotated[
        bool,
        Switch("--dry-run", "Print the AWS requests and the price, without using the network."),
    ] = False,
    out: Annotated[
        Path | None,
        Option(
            "DIR",
            "Directory for the launch's record. Default: a new tonnage-launch-N in the current "
            "directory.",
            flag="--output",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Rent the AWS machines of a plan, install Tonnage and Ray, and replace slow nodes.

    The cluster runs until you run tonnage cluster down, or until its lifetime ends. With
    -- COMMAND, it is terminated after the command, whether that succeeds or fails. If the launch
    fails, everything it rented is terminated.

    Examples:
        tonnage launch plan.json --dry-run
        tonnage launch plan.json --image ami-1 --subnet subnet-1 --key-pair mine \\
            --ssh-from 203.0.113.7/32 --budget 50USD
    """
    from tonnage.plan.resources.machines import PURCHASES
    from tonnage.provision.cost import PriceError
    from tonnage.provision.export import ExportError

    made, chosen = select_candidate(f"PLAN {plan}", plan, candidate)
    if rent.lifetime < MIN_LIFETIME_SECONDS:
        raise core.UsageError("--lifetime is too short; use at least 10min, like 2h")
    if chosen.seconds.high > rent.lifetime:
        raise core.UsageError(
            f"--lifetime {formatting.duration(rent.lifetime)} is too short: the planned job may "
            f"take {formatting.duration(chosen.seconds.high)}; use more than "
            f"{chosen.seconds.high:.0f}s"
        )
    refuse_unknown("--purchase", [rent.purchase], PURCHASES)
    is_spot = (rent.purchase or made.settings.get("purchase")) == "spot"
    prefix = f"{chosen.nodes} x {chosen.offer} ({chosen.layout}): "
    with usage_errors(ExportError, PriceError, prefix=prefix):
        order = order_from_plan(made, chosen, is_spot, account.account, rent.lifetime, catalog)
        if dry_run:
            print_requests(order, rent.budget, as_json)
            return
    refuse_missing_account(order)
    if out:
        refuse_files("--output", [out])
        refuse_non_empty("--output", [out])
    place = out or new_directory("tonnage-launch")
    from tonnage.provision.aws.launcher import LaunchRequest
    from tonnage.provision.ssh import SshClient

    request = LaunchRequest(
        order=order,
        ssh=SshClient(access.program, access.user, place.absolute() / "known_hosts"),
        wheel=find_wheel(access.wheel, order.rental.offer.arch),
        cap_usd=rent.budget,
        replacements=rent.replacements,
        screens=rent.screen,
        size_bytes=rent.size,
        seconds=rent.seconds,
        patience_seconds=rent.timeout,
        is_private=access.private,
        command=command or [],
    )
    refuse_over_budget(order, rent.budget)
    record = _launch(request, made, place, as_json)
    if as_json:
        print(json.dumps(record.to_json()))


def _launch(request: LaunchRequest, made: Plan, place: Path, as_json: bool) -> Launch:
    """Launches; then prints how to use the cluster, or runs the command. Returns the record."""
    refuse_missing_extra("aws", "tonnage launch")
    from tonnage.base.records.launch import Launch
    from tonnage.provision.aws.ec2 import Ec2
    from tonnage.provision.aws.launcher import address, describe_teardown, launched_cluster
    from tonnage.provision.aws.status import RECORD
    from tonnage.provision.aws.teardown import LaunchRecordFile, now
    from tonnage.provision.bootstrap import run_command
    from tonnage.provision.ssh import run_foreground

    order, began = request.order, now().isoformat()
    file = LaunchRecordFile(
        Launch(
            name=order.name,
            job=made.job.name,
            region=order.rental.region,
            subnet=order.account.subnet,
            candidate=order.rental.candidate,
            spot=order.rental.spot,
            tariff=order.tariff,
            cap_usd=request.cap_usd,
            began_at=began,
            ends_at=order.ends_at.isoformat(),
            step="asked",
            step_at=began,
            command=request.command,
        ),
        place / RECORD,
    )
    file.update()
    for line in [*price_lines(order, request.cap_usd), f"Record: {place / RECORD}"]:
        _progress(line)
    with launched_cluster(
        request, Ec2(file.record.region), file, _progress, stays=not request.command
    ) as record:
        head = record.rented[0]
        at = address(head, request.is_private)
        if request.command:
            _progress(f"running on {head.instance}: {formatting.command(request.command)}")
            code = run_foreground(
                request.ssh.command(at, run_command(request.command)), to_stderr=as_json
            )
            if code:
                raise core.RunError(f"{request.command[0]} failed with exit code {code}")
        elif not as_json:
            print("\n".join(ready_lines(request, record, at, place)), flush=True)
    if request.command:
        _progress(formatting.sentence(describe_teardown(file.record)))
    return file.record


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
