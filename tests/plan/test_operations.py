"""`tonnage plan ops`: machines, disks and volumes for so many operations a second."""

from __future__ import annotations

import itertools
import json
import math
import os
import pty
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.offers import MIB, catalog, offer
from tonnage.base.records.operations_plan import OperationsCandidate, OperationsPlan
from tonnage.catalog import (
    Catalog,
    Grant,
    Offer,
    VolumeKind,
    VolumeLink,
    find_offer,
    load_catalog,
    newest_catalogs,
)
from tonnage.catalog.published.disk_rates import DOCUMENTED, reached_share
from tonnage.catalog.published.machine_types import machine_type
from tonnage.cli.plan.ops import parse_operations_rate
from tonnage.measure.random_io.trial import OPERATIONS as MEASURED_OPERATIONS
from tonnage.plan.operations.planner import plan_operations
from tonnage.plan.operations.question import FILL, OPERATIONS, OperationsQuestion
from tonnage.plan.operations.volumes import VOLUME_COUNTS

GIB, TB = 1 << 30, 10**12
MONTH = 730.0
ALL = load_catalog("aws-us-east-1-2014"), *newest_catalogs()
SOLD = VolumeKind(
    name="sold",
    media="ssd",
    usd_per_gib_month=0.08,
    most_bytes=16 << 40,
    least_bytes=GIB,
    largest_operation_bytes=None,
    operations=Grant(included=3_000, most=16_000, usd_each_month=0.005),
    throughput=Grant(included=125 * MIB, most=1000 * MIB, usd_each_month=0.04 / MIB),
    date="2026-01-01",
    price_source="made up",
    limit_source="made up",
    most_iops_per_gib=500,
    most_bytes_per_operation=0.25 * MIB,
)
SIZED = replace(
    SOLD,
    name="sized",
    usd_per_gib_month=0.1,
    largest_operation_bytes=256 << 10,
    operations=Grant(per_gib=3, least=100, most=16_000),
    throughput=Grant(most=250 * MIB),
    most_iops_per_gib=None,
    most_bytes_per_operation=None,
)


def question(
    name: str = "read4k", rate: float = 1e5, data: int = TB, **changes: object
) -> OperationsQuestion:
    return OperationsQuestion(operation=OPERATIONS[name], rate=rate, data_bytes=data, **changes)  # type: ignore[arg-type]


def linked(name: str, usd: float, iops: float, rate: float = 1e9, most: int = 28) -> Offer:
    """An offer without local disks, whose link to volumes carries so much."""
    link = VolumeLink(baseline_bytes_per_second=rate, baseline_iops=iops, most_volumes=most)
    return replace(offer(name, usd, local_bytes=0), volume_link=link)


def answers(asked: OperationsQuestion, *catalogs: Catalog) -> list[OperationsCandidate]:
    return plan_operations(asked, catalogs).candidates


def only(kind: VolumeKind, *offers: Offer) -> Catalog:
    return catalog(list(offers), [kind])


# Local disks.


def test_local_disks_give_the_measured_operations_up_to_the_documented() -> None:
    aws = load_catalog("aws-us-east-1-2026")
    # iotune measured 385,400 and 240,628 a second; AWS documents 400,000 and 220,000.
    (disks,) = find_offer([aws], "i4i.4xlarge")[1].disks or ()
    assert (disks.read_iops, disks.write_iops, disks.measured) == (385_400, 220_000, True)
    found = {
        name: next(
            each
            for each in answers(question(name, 1e6, 10 * TB), aws)
            if each.offer == "i4i.4xlarge" and each.loses_data
        )
        for name in ("read4k", "write4k")
    }
    # 3,750 GB each, of which 98 % hold data: three for the data, as many for the operations.
    read, write = found["read4k"], found["write4k"]
    assert (read.nodes, read.nodes_for_operations, read.nodes_for_data) == (3, 3, 3)
    assert (write.nodes, write.nodes_for_operations, write.nodes_limit) == (5, 5, "operations")
    assert read.operations_per_second == 3 * 385_400
    assert read.room_bytes == int(3 * 3_750_000_000_000 * FILL)
    assert read.usd_per_hour == pytest.approx(3 * 1.373)
    assert read.usd_per_month == pytest.approx(3 * 1.373 * MONTH)
    assert read.evidence == "measured" and read.low_operations_per_second is None
    assert read.operations_per_usd == pytest.approx(385_400 * 3600 / 1.373)


def test_documented_operations_have_a_low_end() -> None:
    aws = load_catalog("aws-us-east-1-2026")
    known = machine_type("aws", "m6id.4xlarge")
    assert known is not None and known.write_iops
    one = next(
        each
        for each in answers(question("write4k", 1e4), aws)
        if each.offer == "m6id.4xlarge" and each.loses_data
    )
    assert one.evidence == "documented"
    assert one.operations_per_second == one.nodes * known.write_iops
    share = reached_share(True)
    assert 0.5 < share.low < 0.9 and share.families >= 20 and reached_share(False).low < 1
    assert one.low_operations_per_second == pytest.approx(one.operations_per_second * share.low)
    # Google's figures in the measured table are the documented ones.
    gcp = load_catalog("gcp-us-central1-2026")
    (disks,) = find_offer([gcp], "z3-highmem-88-highlssd")[1].disks or ()
    assert (disks.measured, disks.iops_source) == (False, DOCUMENTED)


def test_large_operations_follow_from_bytes_a_second() -> None:
    own = offer("n", 1.0, local_bytes=TB, disk_rates=(2e9, 1e9), link=None)
    read, write = (
        answers(question(name, 1000, 0), catalog([own])) for name in ("read4m", "write4m")
    )
    assert read[0].operations_per_second / read[0].nodes == pytest.approx(2e9 / (4 << 20))
    assert (read[0].nodes, write[0].nodes) == (3, 5)
    # Their operations of 4 KiB are unknown.
    assert answers(question("read4k", 1000, 0), catalog([own])) == []


# Volumes.


def test_operations_are_bought_where_that_is_cheaper_than_more_volumes() -> None:
    # One node, whose link carries all: 16 volumes include 48,000, none is bought.
    (one,) = answers(question(rate=48_000), only(SOLD, linked("n", 10.0, 1e5)))
    assert one.volumes is not None and (one.nodes, one.volumes.count) == (1, 16)
    assert one.volumes.operations_each == 3_000
    # The size that the data need, rounded up, at 0.08 USD.
    assert one.volumes.gib_each == math.ceil(TB / 16 / GIB / FILL)
    assert one.volumes.usd_per_month == pytest.approx(16 * one.volumes.gib_each * 0.08)
    # 60,000 need 750 more of each of 16: cheaper than another node.
    (more,) = answers(question(rate=60_000), only(SOLD, linked("n", 10.0, 1e5)))
    assert more.volumes is not None and (more.nodes, more.volumes.count) == (1, 16)
    assert more.volumes.operations_each == 3_750
    # Where at most one volume can be attached, and nodes are cheap, nodes are added instead.
    (many,) = answers(question(rate=60_000), only(SOLD, linked("n", 0.001, 1e5, most=2)))
    assert (many.nodes, many.nodes_limit) == (20, "price")
    assert many.volumes is not None and many.volumes.operations_each == 3_000


def test_the_link_limits_a_nodes_volumes() -> None:
    (one,) = answers(question(rate=1e5), only(SOLD, linked("n", 1.0, 20_000)))
    assert (one.nodes, one.nodes_limit, one.nodes_for_operations) == (5, "link", 5)
    assert one.operations_per_second == pytest.approx(1e5)
    (large,) = answers(question("read4m", 1000), only(SOLD, linked("n", 1.0, 20_000, rate=1e9)))
    assert large.nodes == math.ceil(1000 * (4 << 20) / 1e9)
    unknown = replace(linked("n", 1.0, 1.0), volume_link=VolumeLink(baseline_bytes_per_second=1e9))
    assert answers(question(), only(SOLD, unknown)) == []
    assert answers(question("read4m", 100), only(SOLD, unknown))


def test_sized_volumes_grow_with_their_operations() -> None:
    (one,) = answers(question(rate=30_000, data=0), only(SIZED, linked("n", 100.0, 1e5)))
    assert one.volumes is not None and one.nodes == 1
    assert one.volumes.count * one.volumes.gib_each == pytest.approx(10_000, abs=16)
    # A large operation counts as 16 of 256 KiB.
    (large,) = answers(question("write4m", 100, 0), only(SIZED, linked("n", 100.0, 1e5)))
    assert large.volumes is not None
    assert large.volumes.count * (large.volumes.operations_each or 0) >= 1600


def test_provisioned_operations_need_gibibytes_and_throughput_needs_operations() -> None:
    one_volume = linked("n", 100.0, 1e5, most=2)
    (small,) = answers(question(rate=16_000, data=0), only(SOLD, one_volume))
    assert small.volumes is not None and small.volumes.gib_each == 32
    (large,) = answers(question("read4m", 238, 0), only(SOLD, one_volume))
    assert large.volumes is not None and large.volumes.bytes_per_second_each == 952 * MIB
    assert large.volumes.operations_each == 3808
    (free,) = answers(question(rate=3_000, data=0), only(SOLD, one_volume))
    assert free.volumes is not None and free.volumes.gib_each == 1


def test_volumes_without_a_price_for_their_operations_are_not_planned() -> None:
    unpriced = replace(SOLD, operations=Grant(most=64_000), throughput=Grant(most=1e9))
    for name in OPERATIONS:
        assert answers(question(name, 100), only(unpriced, linked("n", 1.0, 1e5))) == []
    rotating = replace(
        SOLD, media="hdd", operations=Grant(per_gib=0.75), throughput=Grant(per_gib=0.12 * MIB)
    )
    assert answers(question(rate=100), only(rotating, linked("n", 1.0, 1e5))) == []
    (large,) = answers(question("read4m", 10), only(rotating, linked("n", 1.0, 1e5)))
    assert large.volumes is not None


def cheapest_by_trying(
    asked: OperationsQuestion, kind: VolumeKind, usd: float, iops: float
) -> float:
    """Dollars an hour of the cheapest number of nodes and volumes, each tried."""
    best = math.inf
    block = asked.operation.block_bytes
    counted = math.ceil(block / (kind.largest_operation_bytes or block))
    for nodes, count in itertools.product(range(1, asked.max_nodes + 1), VOLUME_COUNTS):
        volumes = nodes * count
        operations, rate = asked.rate * counted / volumes, asked.rate * block / volumes
        if asked.rate * counted / nodes > iops or asked.rate * block / nodes > 1e9:
            continue
        gib = max(asked.data_bytes / volumes / GIB / FILL, 1.0)
        extra = 0.0
        if kind is SOLD:
            faster = max(rate - 125 * MIB, 0)
            if faster:
                operations = max(operations, rate / (0.25 * MIB))
            more = math.ceil(max(operations - 3_000, 0))
            if 3_000 + more > 16_000 or rate > 1000 * MIB:
                continue
            gib = max(gib, (3_000 + more) / 500) if more else gib
            extra = more * 0.005 + math.ceil(faster / MIB) * 0.04
        else:
            if operations > 16_000 or rate > 250 * MIB:
                continue
            gib = max(gib, operations / 3) if operations > 100 else gib
        price = math.ceil(gib) * (kind.usd_per_gib_month or 0) + extra
        best = min(best, nodes * usd + volumes * price / MONTH)
    return best


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from([*OPERATIONS]),
    rate=st.floats(10, 2e5),
    data=st.integers(0, 50 * TB),
    usd=st.floats(0.01, 10),
    iops=st.floats(2e3, 1e5),
    kind=st.sampled_from([SOLD, SIZED]),
)
def test_no_number_of_nodes_and_volumes_is_cheaper(
    name: str, rate: float, data: int, usd: float, iops: float, kind: VolumeKind
) -> None:
    asked = question(name, rate, data, max_nodes=60)
    found = answers(asked, only(kind, linked("n", usd, iops)))
    best = cheapest_by_trying(asked, kind, usd, iops)
    if math.isinf(best):
        assert found == []
    else:
        # Whole GiB, operations and MiB/s are bought: a cent between the numbers that are tried.
        assert best * (1 - 1e-9) <= found[0].usd_per_hour <= best * 1.02 + 0.01


# All catalogs.


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from([*OPERATIONS]),
    rate=st.floats(100, 2e6),
    data=st.integers(0, 200 * TB),
    most=st.integers(1, 2_000),
)
def test_every_candidate_keeps_every_limit(name: str, rate: float, data: int, most: int) -> None:
    if name.endswith("4m"):
        rate /= 200
    asked = question(name, rate, data, max_nodes=most)
    offers = {(one.name, each.type): each for one in ALL for each in one.offers}
    kinds = {(one.name, each.name): each for one in ALL for each in one.volume_kinds}
    found = answers(asked, *ALL)
    costs = [float(f"{each.usd_per_hour:.8g}") for each in found]
    assert costs == sorted(costs)
    for each in found:
        own, block = offers[each.catalog, each.offer], asked.operation.block_bytes
        assert each.operations_per_second >= rate * (1 - 1e-9) and each.nodes <= most
        assert each.room_bytes >= data * (1 - 1e-9) - 1
        assert each.nodes >= max(each.nodes_for_operations, each.nodes_for_data)
        if each.volumes is None:
            continue
        link, kind = own.volume_link, kinds[each.catalog, each.volumes.kind]
        assert link.baseline_bytes_per_second is not None
        assert rate * block <= each.nodes * link.baseline_bytes_per_second * (1 + 1e-9)
        if block < MIB:
            assert rate <= each.nodes * (link.baseline_iops or 0) * (1 + 1e-9)
        assert each.volumes.count < (link.most_volumes or 1000)
        assert link.volume_kinds is None or kind.name in link.volume_kinds
        size = each.volumes.gib_each * GIB
        assert (kind.least_bytes or 0) <= size <= (kind.most_bytes or math.inf)
        has = each.volumes.operations_each or 0
        assert has <= (kind.operations.most or math.inf)
        if kind.most_iops_per_gib and has > (kind.operations.included or 0):
            assert has <= each.volumes.gib_each * kind.most_iops_per_gib * (1 + 1e-9)


def test_more_is_never_cheaper() -> None:
    def costs(rate: float, data: int) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = {}
        for each in answers(question(rate=rate, data=data), *newest_catalogs()):
            storage = each.volumes.kind if each.volumes else each.storage
            found[each.offer, storage] = each.usd_per_hour
        return found

    # Fewer operations that are bought can only be rounded differently.
    for less, more in (((1e5, TB), (1.1e5, TB)), ((1e5, TB), (1e5, 2 * TB))):
        cheap, dear = costs(*less), costs(*more)
        assert dear and all(cheap[which] <= usd * 1.001 for which, usd in dear.items())


def test_nodes_and_budget_limit_what_is_found() -> None:
    aws = load_catalog("aws-us-east-1-2026")
    four = answers(question(rate=1e5, min_nodes=4, max_nodes=4), aws)
    assert {each.nodes for each in four} == {4}
    assert any(each.nodes_limit == "request" for each in four)
    cheap = plan_operations(question(rate=1e5, most_usd_per_month=500), [aws])
    assert max(each.usd_per_month for each in cheap.candidates) <= 500
    assert any(each.why == "more expensive than the budget" for each in cheap.excluded)
    everything = question(rate=1e5, include=frozenset({"gpu", "burstable", "previous", "metal"}))
    assert len(answers(everything, aws)) > len(answers(question(rate=1e5), aws))


def test_azures_premium_volumes_need_a_type_that_takes_them() -> None:
    azure = load_catalog("azure-us-east-2025")
    found = {each.offer for each in answers(question(rate=1e4), azure) if each.volumes}
    assert "D2pls_v5" in {name.removeprefix("Standard_") for name in found}
    assert "Standard_F1" not in found and "Standard_D2_v5" not in found


# The command.

ASKED = ("plan", "ops", "--operation", "read4k", "--rate", "500k/s", "--data", "10TB")


def test_operations_are_those_that_are_measured() -> None:
    for name, each in OPERATIONS.items():
        measured = MEASURED_OPERATIONS[name]
        assert (each.writes, each.block_bytes) == (measured.writes, measured.block_bytes)


@pytest.mark.parametrize(
    ("text", "rate"), [("500k/s", 5e5), ("1.5M/s", 1.5e6), ("200", 200), ("2 g / s", None)]
)
def test_rates_are_read(text: str, rate: float | None) -> None:
    if rate is None:
        with pytest.raises(Exception, match="not a rate of operations"):
            parse_operations_rate(text)
    else:
        assert parse_operations_rate(text) == rate


@pytest.mark.slow
def test_the_table_shows_several_ideas(tonnage: Tonnage) -> None:
    told = tonnage.run(*ASKED, check=True).stdout
    assert "Not included: the cores that issue the operations" in told
    assert "The prices of aws-us-east-1-2026 are of 2026-07-06, more than 90 days ago." in told
    assert "Local disks lose their data when a machine stops or fails." in told
    assert "The cheapest that keeps them is number" in told
    rows = [line.split() for line in told.splitlines() if line[:4].strip().isdigit()]
    assert len({row[1].split(".")[0] for row in rows}) == len(rows) == 10
    every = tonnage.run(*ASKED, "--provider", "aws", "--all", check=True).stdout
    assert len(every.splitlines()) > 1_000


@pytest.mark.slow
def test_json_is_a_record_and_explains_an_offer(tonnage: Tonnage) -> None:
    made = OperationsPlan.from_json(json.loads(tonnage.run(*ASKED, "--json", check=True).stdout))
    assert (made.operation, made.operations_per_second, made.bytes) == ("read4k", 5e5, 10 * TB)
    told = tonnage.run(*ASKED, "--explain", "aws/i3en.6xlarge", check=True).stdout
    assert "1 x i3en.6xlarge (local, 2 x nvme)" in told and "measured by iotune" in told
    assert "for the operations: a node's link to its volumes carries no more" in told
    said = tonnage.run(*ASKED, "--explain", "aws/i3en.6xlarge", "--json", check=True).stdout
    only_one = OperationsPlan.from_json(json.loads(said)).candidates
    assert only_one == [each for each in made.candidates if each.offer == "i3en.6xlarge"]


@pytest.mark.slow
def test_lines_fit_eighty_columns(tonnage: Tonnage) -> None:
    ours, its = pty.openpty()
    told = b""
    environment = os.environ | {"COLUMNS": "80"}
    with subprocess.Popen([tonnage.path, *ASKED], stdout=its, env=environment):
        os.close(its)
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # The end of a terminal is an error on Linux.
                break
            told += part
    os.close(ours)
    lines = told.decode().replace("\r\n", "\n").splitlines()
    rows = [line for line in lines if line.startswith("     ") or line[:5].strip().isdigit()]
    assert len(rows) >= 20 and max(map(len, rows)) <= 80
    assert all("…" not in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--rate", "5x"), "'5x' is not a rate of operations; use a value like 500k/s"),
        (("--operation", "read"), "--operation read is not valid (did you mean read4m?)"),
        (("--rate", "900G/s", "--nodes", "1"), "no offer is usable. Most common reason: "),
        (("--explain", "m5.large", "--nodes", "1"), "--explain m5.large: it has no local disks"),
        (("--passes", "3"), "No such option: --passes"),
        (("--include", "old"), "--include old is not valid"),
    ],
)
def test_the_command_refuses_in_a_line(
    tonnage: Tonnage, arguments: tuple[str, ...], told: str
) -> None:
    done = tonnage.run(*ASKED, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and told in done.stderr
