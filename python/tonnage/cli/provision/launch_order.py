"""The order of a launch: from a plan, checked against catalog, account and budget."""

from __future__ import annotations

import ipaddress
import secrets
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import core, formatting
from tonnage.cli.options.planning import load_catalogs
from tonnage.cli.options.validate import usage_errors
from tonnage.cli.plan.emit import offer_of

if TYPE_CHECKING:
    from tonnage.base.records.launch import Tariff
    from tonnage.base.records.plan import Candidate, Plan
    from tonnage.provision.aws.requests import Account, LaunchOrder

WHEELS = Path("target/wheels")
"""Where ``make build`` puts the wheel."""
ARCHITECTURES = {"x86_64": "x86_64", "arm64": "aarch64"}
"""The catalogs' architectures, as wheels call them."""


def order_from_plan(
    made: Plan,
    chosen: Candidate,
    spot: bool,
    account: Account,
    lifetime_seconds: float,
    catalog: str | None,
) -> LaunchOrder:
    from tonnage.catalog.own_prices import OwnPrices, with_own_prices
    from tonnage.provision import cost
    from tonnage.provision.aws.requests import LaunchOrder
    from tonnage.provision.aws.teardown import now
    from tonnage.provision.export import ExportError, Rental

    if chosen.provider != "aws":
        raise ExportError(
            f"machines of {chosen.provider} cannot be launched, only those of aws; plan with "
            "--provider aws"
        )
    (listed,) = load_catalogs([catalog or chosen.catalog])
    if listed.name != chosen.catalog:
        raise core.UsageError(
            f"--catalog {catalog}: the plan used {chosen.catalog}; use that catalog"
        )
    own = with_own_prices(listed, OwnPrices.of_settings(made.settings))
    offer = offer_of(chosen, listed)
    if offer.region is None:
        raise core.UsageError(f"catalog {listed.name} has no region; plan with another catalog")

    def tariff(spot: bool) -> Tariff:
        paid = listed if spot else own
        public = bool(made.settings.get("public_addresses"))
        return cost.find_tariff(paid, offer_of(chosen, paid), chosen, spot, public_address=public)

    if not cost.matches_plan(tariff(made.settings.get("purchase") == "spot"), chosen):
        raise core.UsageError(
            f"catalog {listed.name} has a different price from the plan; plan again"
        )
    mark = secrets.token_hex(3)
    return LaunchOrder(
        rental=Rental(made.job.name, chosen, offer, spot, mark),
        account=account,
        tariff=tariff(spot),
        ends_at=now().replace(microsecond=0) + timedelta(seconds=lifetime_seconds),
        costs=cost.planned_bill(made, chosen, tariff(spot), listed),
        public_addresses=made.settings.get("public_addresses") is not False,
    )


def address_range(given: str, is_open: bool) -> str:
    """The range with its length, which AWS requires; that of an address is the address alone."""
    hint = "; use an address or a range of addresses, like 203.0.113.7/32"
    with usage_errors(ValueError, prefix=f"--ssh-from {given}: ", hint=hint):
        allowed = ipaddress.ip_network(given)
    if allowed.prefixlen == 0 and not is_open:
        raise core.UsageError(
            f"--ssh-from {given} lets everybody try to log in; use your own address, like "
            "203.0.113.7/32, or add --open-to-the-world"
        )
    return str(allowed)


def missing_values(order: LaunchOrder) -> dict[str, str]:
    """The flag of each missing value, and its meaning."""
    from tonnage.provision.aws.requests import Account

    rental = order.rental
    flags = {
        "image": ("--image", f"the id of an image of {rental.system} in {rental.region}"),
        "subnet": ("--subnet", "the id of a subnet, whose zone all nodes are in"),
        "key": ("--key-pair", "the name of your key pair"),
        "ssh_from": (
            "--ssh-from",
            "the addresses that may reach the nodes by ssh, for example 203.0.113.7/32",
        ),
    }
    unknown = Account()
    return {
        flag: what
        for field, (flag, what) in flags.items()
        if getattr(order.account, field) == getattr(unknown, field)
    }


def refuse_missing_account(order: LaunchOrder) -> None:
    missing = [f"{flag} ({what})" for flag, what in missing_values(order).items()]
    if missing:
        raise core.UsageError(
            f"a launch also needs {'; '.join(missing)} (--dry-run needs none of these)"
        )


def most_usd(order: LaunchOrder) -> float:
    from tonnage.provision.aws.teardown import now
    from tonnage.provision.cost import node_usd

    seconds = (order.ends_at - now()).total_seconds()
    return order.rental.candidate.nodes * node_usd(order.tariff, seconds, at_highest_price=True)


def refuse_over_budget(order: LaunchOrder, cap_usd: float | None) -> None:
    most = most_usd(order)
    if cap_usd is not None and most > cap_usd:
        raise core.UsageError(
            f"--budget {cap_usd:g}: {order.rental.candidate.nodes} x {order.rental.offer.type} "
            f"until the end of --lifetime could cost {formatting.cents(most)}; raise --budget, "
            "shorten --lifetime, or select another --candidate"
        )


def find_wheel(given: Path | None, arch: str | None) -> Path:
    if given is None:
        wanted = ARCHITECTURES.get(arch or "", "")
        found = sorted(WHEELS.glob(f"tonnage-*{wanted}.whl"))
        if len(found) != 1:
            of = f" with {arch}" if arch else ""
            raise core.UsageError(
                f"{WHEELS} contains {formatting.several(len(found), 'wheel')} for nodes{of}, but "
                "must contain one; run make build on a machine of that architecture, or run make "
                "wheels and add --wheel FILE"
            )
        return found[0]
    if given.suffix != ".whl" or not given.is_file():
        raise core.UsageError(f"--wheel {given}: no such wheel; run make build")
    return given
