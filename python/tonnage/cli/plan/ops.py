"""``tonnage plan ops``."""

from __future__ import annotations

import datetime
import json
import math
import re
from typing import Annotated

import typer

from tonnage.base import core
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.planning import CatalogNames, load_catalogs, require_offer
from tonnage.cli.options.types import MAX_NODES, Count, Json, Option, Size, Switch, parse_usd
from tonnage.cli.options.validate import refuse_unknown
from tonnage.cli.output import print_result
from tonnage.cli.output.planning.operations import (
    explanation_lines,
    print_operations_plan,
    why_no_candidate,
)
from tonnage.cli.plan.plan import ALL_KINDS, ARCHITECTURES

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
LARGEST_RATE = 1e12


def parse_operations_rate(text: str) -> float:
    """``500k/s``, ``1.5M/s`` or plain operations a second."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)\s*(?:/s)?\s*", text.lower())
    rate = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not 1 <= rate <= LARGEST_RATE:
        raise typer.BadParameter(
            f"{text!r} is not a rate of operations; use a value like 500k/s, 1.5M/s or 200"
        )
    return rate


def plan_ops(
    *,
    operation: Annotated[
        str,
        Option(
            "OPERATION",
            "read4k, write4k (4 KiB), read4m or write4m (4 MiB), at random places, as measure ops "
            "measures them.",
        ),
    ],
    rate: Annotated[
        float,
        Option(
            "RATE",
            "Operations a second of all machines together, like 500k/s.",
            parse_operations_rate,
        ),
    ],
    data: Annotated[
        int | None,
        Size("Size of the data that the machines store together, like 10TB. Default: any."),
    ] = None,
    budget: Annotated[
        float | None, Option("USD", "Maximum cost of a month, like 3000USD.", parse_usd)
    ] = None,
    max_nodes: Annotated[int, Count("Largest cluster to consider.", 1, MAX_NODES)] = default(
        "1000"
    ),
    nodes: Annotated[
        int | None,
        Count(
            "Consider only clusters of exactly this many nodes, whatever --max-nodes is.",
            1,
            MAX_NODES,
        ),
    ] = None,
    catalog: CatalogNames = None,
    provider: Annotated[
        list[str] | None,
        Option("NAME...", "Only offers of these providers: aws, gcp, azure. Default: all."),
    ] = None,
    arch: Annotated[
        str | None,
        Option("NAME", "Only offers of this architecture: x86_64 or arm64. Default: both."),
    ] = None,
    include: Annotated[
        list[str] | None,
        Option(
            "KIND...",
            "Also kinds of offers that are left out otherwise: gpu (accelerators), burstable "
            "(cores on credits), previous (generations), metal (without a hypervisor), hpc (a "
            "fast network among themselves only), all.",
        ),
    ] = None,
    every: Annotated[bool, Switch("--all", "Print all rows, not the best of each family.")] = False,
    explain: Annotated[
        str | None,
        Option("OFFER", "Show how this offer's candidates are computed: TYPE, or PROVIDER/TYPE."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find machines whose disks or volumes give so many operations a second, cheapest first.

    Each candidate is an offer with a number of nodes, and its local disks or volumes attached to
    it. Local disks have the operations that others measured, or the documented ones; volumes what
    is provisioned for them, within the limits of the volumes and of the machine's link to them.

    Examples:
        tonnage plan ops --operation read4k --rate 500k/s --data 10TB
        tonnage plan ops --operation write4k --rate 50k/s --data 2TB --budget 2000USD
        tonnage plan ops --operation read4m --rate 5k/s --explain i3en.6xlarge
    """
    from msgspec import structs

    from tonnage.catalog import OFFER_KINDS
    from tonnage.plan.operations.planner import plan_operations
    from tonnage.plan.operations.question import OPERATIONS, OperationsQuestion

    refuse_unknown("--operation", [operation], OPERATIONS)
    refuse_unknown("--arch", [arch], ARCHITECTURES)
    refuse_unknown("--include", include or (), (*OFFER_KINDS, ALL_KINDS))
    catalogs = load_catalogs(catalog, provider or ())
    asked = include or []
    made = plan_operations(
        OperationsQuestion(
            operation=OPERATIONS[operation],
            rate=rate,
            data_bytes=data or 0,
            min_nodes=nodes or 1,
            max_nodes=nodes or max_nodes,
            most_usd_per_month=math.inf if budget is None else budget,
            arch=arch,
            include=frozenset(kind for kind in OFFER_KINDS if kind in asked or ALL_KINDS in asked),
            today=datetime.date.today(),
        ),
        catalogs,
    )
    if explain is not None:
        offer = require_offer("--explain", catalogs, explain)
        some = [
            each
            for each in made.candidates
            if (each.provider, each.offer) == (offer.provider, offer.type)
        ]
        if not some:
            raise core.UsageError(f"--explain {explain}: {why_no_candidate(made, offer.type)}")
        print_result(
            structs.replace(made, candidates=some, excluded=[]),
            explanation_lines(made, some),
            as_json,
        )
    elif as_json:
        print(json.dumps(made.to_json()))
    elif not made.candidates:
        raise core.UsageError(why_no_candidate(made))
    else:
        print_operations_plan(made, every)
