"""``tonnage backtest``."""

from __future__ import annotations

from typing import Annotated

from tonnage.base import core, formatting
from tonnage.cli.options.planning import BUILT_IN
from tonnage.cli.options.types import Argument, Json
from tonnage.cli.output import print_result

RECORDS = "records"


def backtest(
    *,
    runs: Annotated[
        str, Argument("RUNS", "records: sorts whose set-up, time and cost are public.")
    ],
    as_json: Json = False,
) -> None:
    """Plan other people's runs, and compare the plans with what the runs took.

    Each published sort is planned as it was run: its machines, their number, where its data was.
    Nothing is fitted to the times that are predicted.

    Examples:
        tonnage backtest records
        tonnage backtest records --json
    """
    from tonnage.catalog import catalog_names, load_catalog
    from tonnage.cli.output.planning.backtest import backtest_lines, backtest_values
    from tonnage.model.profiles.repository import index_profiles, read_profiles
    from tonnage.plan.backtest.predict import predict
    from tonnage.plan.backtest.published_sorts import published_sorts

    if runs != RECORDS:
        raise core.UsageError(
            f"RUNS {runs} is not valid{formatting.did_you_mean(runs, [RECORDS])}; use {RECORDS}"
        )
    catalogs = [load_catalog(name) for name in catalog_names()]
    known = index_profiles([each for name in BUILT_IN for each in read_profiles(name)])
    found = [predict(each, catalogs, known) for each in published_sorts()]
    print_result(backtest_values(found), backtest_lines(found), as_json)
