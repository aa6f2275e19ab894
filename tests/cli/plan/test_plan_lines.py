"""Any line of `tonnage plan` ends with a plan that can be read back, or one line and exit 2."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tonnage.base.records.plan import Explanation, Plan
from tonnage.catalog.load import SNAPSHOTS
from tonnage.cli import commands

EVERY = 150
"""Each so manieth offer of the shipped catalogs is planned with."""
NO_NUMBER = re.compile(r"\b(inf|infinity|nan)\b", re.IGNORECASE)
SIZES = ("1kB", "1GB", "3TB", "1PB", "1EB", "8EB", "0", "7", "-1TB", "1e30", "nan", "1XB")
NUMBERS = ("0", "1", "0.5", "1e-9", "1e6", "1e9", "1e300", "-1", "inf", "nan", "many", "1,5")
TIMES = ("0", "1ms", "0.001s", "1s", "2h", "100000d", "1000000d", "-5s", "inf", "nan", "2 years")
COUNTS = ("0", "1", "2", "999", "10000", "100000", "100001", "-1", "1.5", "1e3", "many")
VALUES: dict[str, tuple[str, ...]] = {
    "--deadline": TIMES,
    "--startup": TIMES,
    "--budget": ("0", "0.001", "50USD", "1e6", "1000000000000", "9" * 60, "-5", "inf", "fifty"),
    "--max-nodes": COUNTS,
    "--nodes": COUNTS,
    "--egress": NUMBERS,
    "--map-share": NUMBERS,
    "--reduce-share": NUMBERS,
    "--local-share": NUMBERS,
    "--core-seconds": NUMBERS,
    "--reduction": ("kmeans", "pca", "histogram"),
    "--passes": ("0", "1", "50", "1000", "1001", "-1", "1.5"),
    "--chunk-size": SIZES,
    "--from": ("objects", "volumes", "local", "tape"),
    "--to": ("objects", "volumes", "local", "tape"),
    "--durability": ("none", "replicated", "eternal"),
    "--objective": ("cost", "time", "both"),
    "--billing": ("seconds", "hours"),
    "--network": ("scaled", "baseline", "infinite"),
    "--purchase": ("on-demand", "spot"),
    "--provider": ("aws", "gcp", "azure", "lab"),
    "--arch": ("x86_64", "arm64", "mips"),
    "--include": ("burstable", "all", "toys"),
    "--explain": ("t4g.nano", "e2-micro", "i4i.4xlarge", "Standard_B2ts_v2", "m9.none"),
    "--candidate": ("0", "1", "2", "1000000"),
}
SWITCHES = (
    "--any-memory",
    "--ignore-cores",
    "--measured",
    "--placement",
    "--survey",
    "--all",
    "--every-size",
    "--json",
)
OPTIONS = {
    flag: st.sampled_from(values).map(lambda value, flag=flag: (flag, value))
    for flag, values in VALUES.items()
}
LINES = st.tuples(
    st.sampled_from(("sort", "mapreduce", "reduce")),
    st.sampled_from(SIZES),
    st.lists(st.sampled_from(sorted(OPTIONS)), max_size=4, unique=True).flatmap(
        lambda flags: st.tuples(*(OPTIONS[flag] for flag in flags))
    ),
    st.sets(st.sampled_from(SWITCHES), max_size=2),
)
SEEN = (
    "sort --data 1TB --egress 1",
    "sort --data 1EB --egress 1e9 --any-memory --json",
    f"sort --data 1TB --budget {'9' * 60}",
    "sort --data 1TB --budget 1000000000000 --json",
    "sort --data 1PB --max-nodes 100000 --json",
    "sort --data 1TB --nodes 100000 --deadline 2h --json",
    "sort --data 1GB --explain t4g.nano --include burstable --json",
    "sort --data 1GB --explain t4g.nano --include burstable --from local",
    "sort --data 1GB --explain i4i.4xlarge --nodes 1 --from local --network infinite --startup 0",
    "mapreduce --data 1GB --explain e2-micro --include burstable --json",
    "reduce --data 1GB --explain Standard_B2ts_v2 --include burstable --json",
    "reduce --data 8EB --passes 1000 --core-seconds 1e6 --json",
    "mapreduce --data 8EB --map-share 1e6 --reduce-share 1e6 --any-memory --json",
    "reduce --data 8EB --chunk-size 1 --objective time --json",
    "sort --data 1kB --startup 0 --objective time --json",
    "sort --data 1TB --startup 100000d --json",
    "sort --data 1TB --deadline 0.001s --json",
)
"""Lines that once failed, or are near to those."""


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Parts of the three providers' catalogs: planning with all of them takes seconds."""
    folder = tmp_path_factory.mktemp("catalogs")
    named = "|".join(VALUES["--explain"])
    found = []
    for name in ("aws-us-east-1-2026", "gcp-us-central1-2026", "azure-us-east-2025"):
        header, *rows = (SNAPSHOTS / f"{name}.csv").read_text().splitlines()
        some = [row for at, row in enumerate(rows) if at % EVERY == 0 or re.search(named, row)]
        found.append(folder / f"{name}.csv")
        found[-1].write_text("\n".join([header, *some]) + "\n")
        for part in ("volumes", "objects"):
            (folder / f"{name}.{part}.csv").write_bytes(
                (SNAPSHOTS / f"{name}.{part}.csv").read_bytes()
            )
    return [str(each) for each in found]


def ends_well(line: list[str]) -> None:
    printed, errors = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        code, message = commands.call(["plan", *line])
    what, out = shlex.join(line), printed.getvalue()
    assert not errors.getvalue(), what
    if code:
        assert code == 2 and message and "\n" not in message, (what, message)
    elif "--json" in line:
        # JSON itself has no infinite numbers, and each of a record has its bounds.
        record = Explanation if "--explain" in line else Plan
        if "--survey" not in line:
            record.from_json(json.loads(out))
    else:
        assert not NO_NUMBER.search(out), what


@given(LINES)
@settings(max_examples=40, deadline=None)
def test_any_line_is_planned_or_refused(
    catalogs: list[str],
    line: tuple[str, str, tuple[tuple[str, str], ...], set[str]],
) -> None:
    job, data, options, switches = line
    given_options = [text for option in options for text in option]
    ends_well([job, "--data", data, *given_options, *sorted(switches), "--catalog", *catalogs])


@pytest.mark.parametrize("line", SEEN)
def test_a_line_that_once_failed_is_planned_or_refused(catalogs: list[str], line: str) -> None:
    ends_well([*shlex.split(line), "--catalog", *catalogs])


def test_egress_is_paid_for(catalogs: list[str]) -> None:
    costs = []
    for more in ([], ["--egress", "1"]):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            line = ["sort", "--data", "1TB", *more, "--provider", "aws", "--json"]
            assert commands.call(["plan", *line, "--catalog", *catalogs]) == (0, "")
        found = Plan.from_json(json.loads(printed.getvalue()))
        costs.append(found.candidates[0].cost_usd.median)
    assert costs[1] > costs[0] + 80  # Some 9 cents a GB.
