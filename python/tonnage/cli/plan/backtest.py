"""``tonnage backtest``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tonnage.base import core, formatting
from tonnage.cli.options.planning import (
    BUILT_IN,
    CatalogNames,
    load_catalogs,
    load_profiles,
    shipped_catalogs,
)
from tonnage.cli.options.types import Argument, Json, Option, Switch, whole_number
from tonnage.cli.options.validate import refuse_unknown, usage_errors
from tonnage.cli.output import print_result

if TYPE_CHECKING:
    from tonnage.plan.backtest.runs import Backtest
    from tonnage.plan.backtest.training_sets import TrainingSet

MOST_TRAINED = 100
RECORDS = "records"
USUAL_RUNS = (1, 2, 3)
USUAL_NEXT = (1, 2, 3, 4, 5)
USUAL_SETS = 20


def backtest(
    *,
    runs: Annotated[
        str,
        Argument(
            "RUNS",
            "records: sorts whose set-up, time and cost are public; a CSV file with a row for "
            "each run: job, machine_type, nodes, seconds; provider, framework, data_label, "
            "data_bytes, price_hour, disks (local or volumes), outcome and repetition where known; "
            "or a directory of event logs with a file runs.csv: log, machine_type, nodes.",
        ),
    ],
    train: Annotated[
        list[int] | None,
        Option(
            "N...",
            "How many runs of each job are known. Default: 1 2 3, with --next 1 2 3 4 5.",
            parser=whole_number(1, MOST_TRAINED),
        ),
    ] = None,
    training_sets: Annotated[
        Path | None,
        Option(
            "FILE",
            "Which runs are known: a CSV file with job, strategy, draw, rank, machine_type and "
            "nodes. Default: 20 draws at random.",
        ),
    ] = None,
    strategies: Annotated[
        list[str] | None, Option("NAME...", "Only these strategies of the training sets.")
    ] = None,
    catalog: CatalogNames = None,
    profile: Annotated[
        list[str] | None,
        Option(
            "NAME_OR_DIR...",
            "Event logs: measured capacities of their machines. Default: "
            f"{' and '.join(BUILT_IN)}.",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        Option(
            "objects|volumes|local",
            "Event logs: where the input was. Default: as the logs say.",
            flag="--from",
        ),
    ] = None,
    choose_next: Annotated[
        bool,
        Switch(
            "--next",
            "Know the first run of each set, choose each next one by what is predicted from those "
            "before, and print the regret after each; runs at random are compared.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Plan other people's runs, and compare the plans with what the runs took.

    Each published sort is planned as it was run: its machines, their number, where its data was.
    Nothing is fitted to the times that are predicted.

    Of a table of runs, all but some of each job are hidden and predicted from those: other numbers
    of machines, and other machine types; simpler laws predict them, too. Of a directory of event
    logs, each run is planned from each other one of the same application.

    Examples:
        tonnage backtest records
        tonnage backtest runs.csv --train 1 3
        tonnage backtest runs.csv --next
        tonnage backtest event-logs/
    """
    of_logs = {"--catalog": catalog, "--profile": profile, "--from": from_}
    of_tables = {
        "--train": train,
        "--training-sets": training_sets,
        "--strategies": strategies,
        "--next": choose_next,
    }
    if Path(runs).is_dir():
        _refuse(of_tables, "a table of runs")
        _backtest_logs(Path(runs), catalog, profile, from_, as_json)
        return
    _refuse(of_logs, "a directory of event logs")
    if runs == RECORDS:
        _refuse(of_tables, "a table of runs")
        _backtest_records(as_json)
    elif strategies and training_sets is None:
        raise core.UsageError(
            "--strategies chooses among training sets; specify their file with --training-sets, or "
            "remove it"
        )
    elif Path(runs).exists():
        usual = USUAL_NEXT if choose_next else USUAL_RUNS
        counts = sorted(set(train or usual))
        backtest, sets = _table(Path(runs), counts, training_sets, strategies)
        if choose_next:
            _backtest_next(backtest, sets, counts, as_json)
        else:
            _backtest_runs(backtest, sets, counts, as_json)
    else:
        raise core.UsageError(
            f"RUNS {runs} is not valid{formatting.did_you_mean(runs, [RECORDS])}; use {RECORDS}, "
            "a CSV file of runs, or a directory of event logs"
        )


def _refuse(given: Mapping[str, object], of: str) -> None:
    for flag, value in given.items():
        if value:
            raise core.UsageError(f"{flag} is for {of}; remove it")


def _backtest_records(as_json: bool) -> None:
    from tonnage.cli.output.planning.backtest import backtest_lines, backtest_values
    from tonnage.model.profiles.repository import index_profiles, read_profiles
    from tonnage.plan.backtest.predict import predict
    from tonnage.plan.backtest.published_sorts import published_sorts

    catalogs = shipped_catalogs()
    known = index_profiles([each for name in BUILT_IN for each in read_profiles(name)])
    found = [predict(each, catalogs, known) for each in published_sorts()]
    print_result(backtest_values(found), backtest_lines(found), as_json)


def _backtest_logs(
    directory: Path,
    catalog_names: list[str] | None,
    profile_names: list[str] | None,
    read_from: str | None,
    as_json: bool,
) -> None:
    from tonnage.base.records.location import LOCATIONS
    from tonnage.catalog import CatalogError
    from tonnage.cli.output.planning.backtest_runs import backtest_lines, backtest_values
    from tonnage.measure.importers.metric import UnreadableFile
    from tonnage.measure.importers.spark.log_files import local_log
    from tonnage.measure.importers.spark.read import read_event_log
    from tonnage.plan.backtest.logged_runs import judge_logged_runs, read_logged_runs

    if read_from is not None:
        refuse_unknown("--from", [read_from], LOCATIONS)
    catalogs = load_catalogs(catalog_names) if catalog_names else shipped_catalogs()
    known = load_profiles(profile_names, catalogs)
    with usage_errors(CatalogError, UnreadableFile, OSError):
        runs = read_logged_runs(directory, catalogs, lambda log: read_event_log(local_log(log)))
    tested = judge_logged_runs(runs, known, read_from)  # type: ignore[arg-type]
    if not tested:
        raise core.UsageError(
            f"{directory}: no application has two runs of which one can be planned from the other, "
            "so there is nothing to compare; tonnage plan LOG --now CLUSTER says why"
        )
    print_result(backtest_values({1: tested}), backtest_lines({1: tested}), as_json)


def _table(
    path: Path,
    counts: Sequence[int],
    training_sets: Path | None,
    strategies: Sequence[str] | None,
) -> tuple[Backtest, list[TrainingSet]]:
    from tonnage.catalog import CatalogError
    from tonnage.plan.backtest.runs import Backtest
    from tonnage.plan.backtest.training_sets import random_sets, read_training_sets
    from tonnage.plan.past_runs.run_machines import Machines
    from tonnage.plan.past_runs.run_table import read_runs

    with usage_errors(CatalogError):
        backtest = Backtest(read_runs(path), Machines(shipped_catalogs()))
        if training_sets:
            sets = read_training_sets(training_sets, backtest.runs, strategies or ())
        else:
            sets = random_sets(backtest.runs, USUAL_SETS, max(counts))
    if not any(len(job.finished) > 1 for job in backtest.jobs.values()):
        raise core.UsageError(f"{path}: no job has two finished runs, so nothing can be predicted")
    return backtest, sets


def _backtest_runs(
    backtest: Backtest, sets: Sequence[TrainingSet], counts: Sequence[int], as_json: bool
) -> None:
    from tonnage.cli.output.planning.backtest_runs import backtest_lines, backtest_values

    found = {count: tested for count in counts if (tested := backtest.test(sets, count))}
    if not found:
        raise core.UsageError(
            "no training set leaves a finished run of a job to predict; know fewer (--train)"
        )
    print_result(backtest_values(found), backtest_lines(found), as_json)


def _backtest_next(
    backtest: Backtest, sets: Sequence[TrainingSet], counts: Sequence[int], as_json: bool
) -> None:
    from tonnage.cli.output.planning.backtest_next import next_lines, next_values
    from tonnage.plan.backtest.chosen_runs import choose_runs

    found = choose_runs(backtest, sets, max(counts))
    if not found:
        raise core.UsageError("no training set begins with a run that finished")
    print_result(next_values(found, counts), next_lines(found, counts), as_json)
