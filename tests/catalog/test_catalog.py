"""Catalogs: the shipped ones, pitfalls of their sources, refusals, filtering and comparing."""

import csv
import json
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli.command import Tonnage
from support.data.copies import replace
from tonnage.catalog import (
    CatalogError,
    Grant,
    Offer,
    OfferFilter,
    catalog_names,
    cautions,
    compare_catalogs,
    filter_offers,
    find_offer,
    load_catalog,
    newest_catalogs,
    previous_catalog,
    unknown_figures,
)
from tonnage.catalog.load import SNAPSHOTS
from tonnage.catalog.providers.aws import ROUNDED
from tonnage.catalog.providers.aws_fetch import COLUMNS, write_rows

GIB, GIGABIT = 1 << 30, 1e9 / 8
AWS_2014, AWS, AZURE, GCP = (
    *("aws-us-east-1-2014", "aws-us-east-1-2026", "azure-us-east-2025", "gcp-us-central1-2026"),
)


def offer(catalog: str, name: str) -> Offer:
    """An offer of a shipped catalog."""
    return find_offer([load_catalog(catalog)], name)[1]


def table(directory: Path, rows: list[dict[str, object]], name: str = "offers.csv") -> Path:
    """A catalog of AWS with these rows over a plain one."""
    plain = {"instance_type": "a.large", "vcpu": 2, "memory_gib": 4, "spec_source": "a test"}
    write_rows(directory / name, [plain | row for row in rows])
    return directory / name


# What the shipped catalogs hold.


@pytest.mark.parametrize(
    ("name", "offers", "priced", "spot_priced", "with_local_disks"),
    [
        (AWS_2014, 37, 37, 0, 33),
        (AWS, 1402, 1361, 881, 557),
        (AZURE, 922, 922, 912, 586),
        (GCP, 522, 522, 518, 92),
    ],
)
def test_every_row_of_the_shipped_catalogs_loads(
    name: str, offers: int, priced: int, spot_priced: int, with_local_disks: int
) -> None:
    catalog = load_catalog(name)
    rows = list(csv.DictReader((SNAPSHOTS / f"{name}.csv").open(newline="")))
    assert [each.type for each in catalog.offers] == [next(iter(row.values())) for row in rows]
    assert len(catalog.offers) == offers
    assert sum(each.on_demand is not None for each in catalog.offers) == priced
    assert sum(each.spot is not None for each in catalog.offers) == spot_priced
    disks = [each for each in catalog.offers if each.on_demand and each.local_bytes]
    assert len(disks) == with_local_disks
    assert catalog.sources and all(each.spec_source for each in catalog.offers)
    assert all(each.on_demand.source and each.on_demand.date for each in disks if each.on_demand)


def test_names_are_those_of_tables_of_offers_and_the_newest_is_of_each_provider() -> None:
    assert catalog_names() == [AWS_2014, AWS, AZURE, GCP]
    assert [catalog.name for catalog in newest_catalogs()] == [AWS, AZURE, GCP]
    found = [(each.provider, each.region, each.date) for each in map(load_catalog, catalog_names())]
    assert found == [
        ("aws", "us-east-1", "2014-12-07"),
        ("aws", "us-east-1", "2026-07-06"),
        ("azure", "eastus", "2025-05-28"),
        ("gcp", "us-central1", "2026-07-30"),
    ]


def test_figures_are_in_the_units_of_their_names() -> None:
    found = offer(AWS, "i4i.4xlarge")
    (disks,) = found.disks or ()
    assert (disks.count, disks.bytes_each, disks.kind) == (1, 3_750_000_000_000, "nvme")
    assert found.memory_bytes == 128 * GIB and (found.vcpus, found.cores) == (16, 8)
    assert found.network.baseline_bytes_per_second == 9.375 * GIGABIT
    assert found.volume_link.baseline_bytes_per_second == 625e6
    assert found.volume_link.most_iops == 40_000
    assert found.placement_groups is True


# What was paid for records of the past follows from the catalogs.


def test_the_first_record_of_the_study_costs_what_it_says() -> None:
    price = offer(AWS_2014, "i2.8xlarge").on_demand
    # It says $299.45, of seconds that it rounds to 888.
    assert price and 178 * 888 * price.usd_per_hour / 3600 == pytest.approx(299.45, abs=0.01)
    # As a fact of that time, the bill was of whole hours.
    assert load_catalog(AWS_2014).billing.granularity_seconds == 3600


def test_the_third_record_of_the_study_costs_what_it_says() -> None:
    catalog, found = find_offer([load_catalog(AWS_2014)], "r3.4xlarge")
    (gp2,) = catalog.volume_kinds
    assert found.on_demand and found.volume_link.extra and gp2.usd_per_gib_month
    volume = 135 * gp2.usd_per_gib_month / catalog.billing.hours_per_month
    usd = found.on_demand.usd_per_hour + found.volume_link.extra.usd_per_hour + 8 * volume
    assert usd == pytest.approx(1.65)


def test_the_workers_of_cloudsort_cost_what_it_says() -> None:
    price = offer(AWS, "i4i.4xlarge").on_demand
    assert price and round(40 * price.usd_per_hour * 5378 / 3600, 2) == 82.04


# The traps.


def test_a_blank_is_never_zero() -> None:
    # The four types of 2014 that have no disks have blanks for the disks' size.
    assert offer(AWS_2014, "t2.micro").disks == ()
    unknown = offer(AWS, "g2.2xlarge")
    assert unknown.disks is None and unknown.local_bytes is None
    assert unknown.network.baseline_bytes_per_second is None
    assert {"local disks", "baseline network bandwidth"} <= {*unknown_figures(unknown)}
    unpriced = offer(AWS, "mac2.metal")
    assert unpriced.on_demand is None and "on-demand price" in unknown_figures(unpriced)


def test_prices_of_dedicated_tenancy_stay_flagged() -> None:
    flagged = [
        each for each in load_catalog(AWS).offers if each.on_demand and each.on_demand.caution
    ]
    assert len(flagged) == 63 and all(".metal" in each.type for each in flagged)
    assert "6 to 10 % too high" in cautions(flagged[0])[0]
    assert cautions(offer(AWS, "i3.metal")) == []


def test_up_to_is_a_burst_and_the_baseline_lasts() -> None:
    network = offer(AWS, "m5d.large").network
    assert network.words == "Up to 10 Gigabit"
    assert network.baseline_bytes_per_second == 0.75 * GIGABIT
    assert network.peak_bytes_per_second == 10 * GIGABIT
    for catalog in map(load_catalog, catalog_names()):
        for each in catalog.offers:
            lasts, at_most = (
                each.network.baseline_bytes_per_second,
                each.network.peak_bytes_per_second,
            )
            assert lasts is None or at_most is None or lasts <= at_most
    # A limit without a promise, and words, are no baseline.
    assert offer(GCP, "n2-standard-80").network.baseline_bytes_per_second is None
    assert offer(GCP, "n2-standard-80").network.peak_bytes_per_second == 32 * GIGABIT
    assert offer(AWS_2014, "i2.8xlarge").network.baseline_bytes_per_second is None
    assert offer(AWS_2014, "i2.8xlarge").network.peak_bytes_per_second == 10 * GIGABIT
    assert offer(AWS_2014, "r3.4xlarge").network.peak_bytes_per_second is None


def test_a_spot_average_outside_its_range_is_dropped() -> None:
    spots = [each.spot for each in load_catalog(AWS).offers if each.spot]
    assert sum(spot.typical_usd_per_hour is None for spot in spots) == 85 + 35
    for spot in spots:
        typical = spot.typical_usd_per_hour
        assert typical is None or spot.low_usd_per_hour <= typical <= spot.high_usd_per_hour
    assert "range" in cautions(offer(AWS, "z1d.large"))[0]
    assert "source of the spot price" in unknown_figures(offer(AWS, "z1d.large"))


def test_a_spot_average_that_is_a_rounded_saving_is_marked() -> None:
    """Nearly all of the shipped ones are; those that were fetched from AWS are averages."""
    found = [each for each in load_catalog(AWS).offers if each.spot]
    averages = [each for each in found if each.spot and each.spot.typical_usd_per_hour]
    marked = [each for each in averages if each.spot and each.spot.caution]
    assert len(marked) == 759 and len(averages) == 761
    assert {each.spot.caution for each in marked if each.spot} == {ROUNDED}


def test_what_azure_did_not_know_is_unknown() -> None:
    # Zeros of throughput, kB/s for MB/s, operations for MB/s.
    assert offer(AZURE, "Basic_A0").volume_link.baseline_bytes_per_second is None
    assert offer(AZURE, "Basic_A0").volume_link.baseline_iops is None
    assert offer(AZURE, "Standard_NC24rs_v3").volume_link.baseline_bytes_per_second is None
    assert (offer(AZURE, "Standard_DC48ds_v3").disks or ())[0].read_bytes_per_second is None
    large = offer(AZURE, "Standard_L8s_v3")
    assert large.volume_link.baseline_bytes_per_second == 290e6
    assert large.local_bytes == 1788 * GIB and large.all_disks_known
    # Of many it is not told whether they have NVMe disks.
    small = offer(AZURE, "Basic_A0")
    assert small.local_bytes == 20 * GIB and not small.all_disks_known
    assert "nvme disks" in unknown_figures(small)
    # Of this one it is published that its disk is not an NVMe one.
    assert offer(AZURE, "Standard_D2s_v3").all_disks_known


@pytest.mark.parametrize(
    ("catalog", "name", "arch"),
    [
        (AWS, "m1.small", "x86_64"),
        (AWS, "mac2.metal", "arm64_mac"),
        (AWS, "c7g.large", "arm64"),
        (AWS_2014, "c1.medium", "x86_64"),
        (GCP, "t2a-standard-1", "arm64"),
        (GCP, "c4a-highmem-1", "arm64"),
        (GCP, "n4-highcpu-4", "x86_64"),
        (GCP, "c4n-highmem-16", None),
        (AZURE, "Standard_E32ps_v5", "arm64"),
        (AZURE, "D2pds_v6", "arm64"),
        (AZURE, "Standard_E16a_v4", "x86_64"),
    ],
)
def test_architectures(catalog: str, name: str, arch: str | None) -> None:
    assert offer(catalog, name).arch == arch


# Volumes, object storage, bills.


def test_baselines_of_volumes_follow_from_their_size() -> None:
    kinds = {kind.name: kind for kind in load_catalog(AWS).volume_kinds}
    assert list(kinds) == ["gp3", "gp2", "io2", "io1", "st1", "sc1"]
    gp3, gp2, st1 = kinds["gp3"], kinds["gp2"], kinds["st1"]
    assert gp3.operations.baseline(GIB) == 3000 and gp3.bytes_per_second(GIB) == 125 * 1024**2
    assert (gp3.usd_per_gib_month, gp3.operations.usd_each_month) == (0.08, 0.005)
    assert gp3.throughput.usd_each_month == pytest.approx(0.04 / 1024**2)
    assert gp2.operations.baseline(10 * GIB) == 100 and gp2.operations.baseline(200 * GIB) == 600
    assert gp2.operations.baseline(16384 * GIB) == 16_000
    assert gp2.bytes_per_second(100 * GIB) == 300 * 256 * 1024
    assert gp2.bytes_per_second(334 * GIB) == 250 * 1024**2
    assert st1.bytes_per_second(1024 * GIB) == 40 * 1024**2
    assert st1.bytes_per_second(16384 * GIB) == 500 * 1024**2


def test_bursts_of_volumes_have_a_bucket() -> None:
    kinds = {kind.name: kind for kind in load_catalog(AWS).volume_kinds}
    gp2, st1, sc1 = kinds["gp2"], kinds["st1"], kinds["sc1"]
    # Half an hour of 3,000 operations a second, of 128 MiB at most.
    assert (gp2.operations.burst, gp2.operations.credit) == (3000, 1800 * 3000)
    assert gp2.throughput.burst == 128 * 1024**2
    for kind, mib in ((st1, 250), (sc1, 80)):
        assert kind.throughput.burst_per_gib == mib * 1024**2 / 1024
        assert kind.throughput.credit_per_gib == GIB, "as much as the volume holds"
    # AWS' own table: a volume of 5 TiB is read once, at its most, in 2.91 and in 5.83 hours.
    for kind, hours in ((st1, 2.91), (sc1, 5.83)):
        most = kind.throughput.most
        assert most and 5 * 1024 * GIB / most / 3600 == pytest.approx(hours, abs=0.005)
    for name in ("gp3", "io1", "io2"):
        assert kinds[name].operations.burst is None and kinds[name].throughput.burst_per_gib is None
    (old,) = load_catalog(AWS_2014).volume_kinds
    assert old.operations.burst == 3000 and old.operations.credit is None, "not confirmed"


def test_the_burst_of_a_link_to_volumes_lasts_half_an_hour_a_day() -> None:
    burst = offer(AWS, "m5.large").volume_link.burst
    assert burst and (burst.lasts_seconds, burst.every_seconds) == (1800, 86_400)
    for each in load_catalog(AWS).offers:
        link = each.volume_link
        baseline, most = link.baseline_bytes_per_second, link.most_bytes_per_second
        assert (link.burst is not None) == (baseline is not None and (most or 0) > baseline)


def test_an_unverified_price_is_unknown() -> None:
    io2 = next(kind for kind in load_catalog(AWS).volume_kinds if kind.name == "io2")
    assert io2.usd_per_gib_month == 0.125 and io2.operations.usd_each_month is None
    assert io2.bytes_per_second(GIB) is None, "operations have to be bought"


@given(
    size=st.floats(1, 1e15),
    included=st.none() | st.floats(0, 1e6),
    per_gib=st.none() | st.floats(0, 1e3),
    most=st.none() | st.floats(1, 1e6),
)
def test_grants_never_exceed_the_most(
    size: float, included: float | None, per_gib: float | None, most: float | None
) -> None:
    lasting = Grant(included=included, per_gib=per_gib, most=most).baseline(size)
    assert (lasting is None) == (included is None and per_gib is None)
    assert lasting is None or most is None or lasting <= most


def test_missing_object_storage_is_none() -> None:
    store = load_catalog(AWS).object_store
    assert store and store.usd_per_gb_in_region == 0 and store.usd_per_1000_puts == 0.005
    assert store.source.endswith("check") and store.date is None
    assert load_catalog(AWS_2014).object_store is None


# What is refused.


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"price_od_hour": "-0.1"}, "row 2, price_od_hour: -0.1 is negative"),
        ({"price_od_hour": "0"}, "row 2, price_od_hour: the price is 0"),
        ({"price_od_hour": "nan"}, "row 2, price_od_hour: 'nan' is not a number"),
        ({"price_od_hour": "inf"}, "row 2, price_od_hour: 'inf' is not a number"),
        ({"price_od_hour": "free"}, "row 2, price_od_hour: 'free' is not a number"),
        ({"spot_min_hour": "-1"}, "row 2, spot_min_hour: -1 is negative"),
        ({"memory_gib": "1e305"}, "row 2, memory_gib: '1e305' is not a number"),
        ({"memory_gib": "-4"}, "row 2, memory_gib: -4 is negative"),
        ({"disk_count": "1.5"}, "row 2, disk_count: 1.5 is not a whole number"),
        ({"price_od_hour": "1_0"}, "row 2, price_od_hour: '1_0' is not a number"),
        ({"price_od_hour": "0.1"}, "row 2, price_od_source: is blank"),
        ({"vcpu": "many"}, "row 2, vcpu: 'many' is not a number; leave unknown"),
        ({"ebs_base_iops": "inf"}, "row 2, ebs_base_iops: 'inf' is not a number"),
        ({"placement_cluster": "yes"}, "row 2, placement_cluster: 'yes' is neither"),
        ({"instance_type": " "}, "row 2, instance_type: is blank"),
        ({"spec_source": ""}, "row 2, spec_source: is blank"),
        ({"spot_min_hour": "2", "spot_max_hour": "1"}, "row 2, spot_min_hour: 2.0 is above"),
    ],
)
def test_a_bad_figure_is_reported_with_row_and_column(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    file = table(tmp_path, [change])
    with pytest.raises(CatalogError) as why:
        load_catalog(file)
    assert str(why.value).startswith(f"{file}, {told}")


def test_a_missing_price_leaves_the_offer_without_one(tmp_path: Path) -> None:
    (found,) = load_catalog(table(tmp_path, [{}])).offers
    assert found.on_demand is None and found.spot is None and found.disks is None
    assert {"on-demand price", "spot price", "local disks"} <= {*unknown_figures(found)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "\n",
            "not a catalog of offers: column instance_type or machine_type or vm_size or machine",
        ),
        ("name,price\na,1\n", "not a catalog of offers"),
        ("instance_type,vcpu\na,1\n", "row 1: missing column ecu"),
        (",".join([*COLUMNS, "colour"]) + "\n", "row 1: unknown column colour"),
        (",".join([*COLUMNS, "vcpu"]) + "\n", "row 1: repeated column vcpu"),
        (",".join(COLUMNS) + "\n", "the file has a header but no offers"),
        (
            ",".join(COLUMNS) + "\na.large,2\n",
            f"row 2 has 2 columns, but the header has {len(COLUMNS)}",
        ),
    ],
)
def test_a_table_of_another_schema_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "offers.csv").write_text(text)
    with pytest.raises(CatalogError) as why:
        load_catalog(tmp_path / "offers.csv")
    assert told in str(why.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "offers.csv: the file is empty"),
        (b"\xff\xfe\x00", "offers.csv: not UTF-8"),
        (b'instance_type\na\n"b\n', "offers.csv, row 3: not valid CSV"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "offers.csv").write_bytes(content)
    with pytest.raises(CatalogError) as why:
        load_catalog(tmp_path / "offers.csv")
    assert told in str(why.value) and len(str(why.value).splitlines()) == 1


def test_another_kind_of_file_has_its_own_error(tmp_path: Path) -> None:
    lab = tmp_path / "lab.toml"
    lab.write_text('[lab]\nname = "x"\n[[machine]]\ndisks = [{ size = "4GiB", fs = "xfs" }]\n')
    with pytest.raises(
        CatalogError, match=r"lab\.toml: not a catalog of offers: column .*CSV file"
    ):
        load_catalog(lab)
    with pytest.raises(CatalogError, match="Is a directory; specify a CSV file"):
        load_catalog(tmp_path)


def test_an_unreadable_file_is_not_reported_as_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = table(tmp_path, [{}])

    def refusing(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(path: object, *args: Any, **options: Any) -> Any:
            if path == file:
                raise PermissionError(13, "Permission denied")
            return real(path, *args, **options)

        return wrapped

    # The file itself, and the directory that it is in.
    for what, name in ((os, "open"), (os, "stat")):
        with monkeypatch.context() as changed, pytest.raises(CatalogError) as why:
            changed.setattr(what, name, refusing(getattr(what, name)))
            load_catalog(file)
        assert str(why.value).startswith(
            f"{file}: no permission to read this file; use sudo, or make a readable copy"
        )


def test_an_offer_of_two_providers_needs_its_full_name(tmp_path: Path) -> None:
    own = load_catalog(table(tmp_path, [{"instance_type": "n2-standard-80"}]))
    both = [load_catalog(GCP), own]
    with pytest.raises(CatalogError, match="specify gcp/n2-standard-80 or aws/n2-standard-80"):
        find_offer(both, "n2-standard-80")
    assert find_offer(both, "aws/n2-standard-80")[0] is own
    with pytest.raises(CatalogError, match=r"did you mean aws/n2-standard-80\?"):
        find_offer([own], "asw/n2-standard-80")


@pytest.mark.parametrize(
    ("part", "column", "value", "told"),
    [
        ("volumes", "price_gb_month", "-0.1", "row 2, price_gb_month: -0.1 is negative"),
        ("volumes", "price_gb_month", "0", "row 2, price_gb_month: the price is 0"),
        ("volumes", "price_iops_month", "nan", "row 2, price_iops_month: 'nan' is not a number"),
        ("volumes", "iops_credit", "inf", "row 2, iops_credit: 'inf' is not a number"),
        ("volumes", "mib_credit_per_tib", "-1", "row 2, mib_credit_per_tib: -1 is negative"),
        ("volumes", "max_size_gib", "1e300", "row 2, max_size_gib: '1e300' is not a number"),
        ("volumes", "min_size_gib", "1e6", "row 2, min_size_gib: is above max_size_gib"),
        ("volumes", "volume_type", "", "row 2, volume_type: is blank"),
        ("volumes", "volume_type", "gp2", "row 3, volume_type: gp2 occurs already in row 2"),
        ("volumes", "limit_evidence", "", "row 2, limit_evidence: is blank"),
        ("objects", "price_1000_gets", "-1", "row 2, price_1000_gets: -1 is negative"),
        ("objects", "source", "", "row 2, source: is blank"),
    ],
)
def test_a_bad_figure_of_a_companion_table_is_reported(
    tmp_path: Path, part: str, column: str, value: str, told: str
) -> None:
    file = table(tmp_path, [{}])
    other = file.with_suffix(f".{part}.csv")
    with (SNAPSHOTS / f"{AWS}.{part}.csv").open(newline="") as shipped:
        first, *rest = csv.DictReader(shipped)
    write_rows(other, [first | {column: value}, *rest], tuple(first))
    with pytest.raises(CatalogError) as why:
        load_catalog(file)
    assert str(why.value).startswith(f"{other}, {told}")


def test_a_catalog_has_one_object_storage_at_most(tmp_path: Path) -> None:
    file = table(tmp_path, [{}])
    header, row = (SNAPSHOTS / f"{AWS}.objects.csv").read_text().splitlines()
    file.with_suffix(".objects.csv").write_text("\n".join([header, row, row]))
    with pytest.raises(CatalogError, match="row 3, name: a second object store"):
        load_catalog(file)


def test_an_unknown_catalog_is_refused() -> None:
    with pytest.raises(CatalogError, match="Is a directory"):
        load_catalog(SNAPSHOTS)
    for name in ("", "a" * 5000):
        with pytest.raises(CatalogError, match=r"unknown catalog .*; use one of"):
            load_catalog(name)
    with pytest.raises(CatalogError, match="did you mean aws-us-east-1-2026"):
        load_catalog("aws-us-east-1-2025")


def test_a_repeated_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"row 3, instance_type: .* already in row 2"):
        load_catalog(table(tmp_path, [{}, {}]))


# A written catalog reads back.


@given(
    memory=st.integers(1, 1 << 25),
    disks=st.none() | st.tuples(st.integers(0, 60), st.integers(1, 30_000)),
    gigabits=st.none() | st.floats(0.01, 10_000),
    usd=st.none() | st.floats(1e-4, 1e4),
)
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory,
    memory: int,
    disks: tuple[int, int] | None,
    gigabits: float | None,
    usd: float | None,
) -> None:
    count, size = disks or (None, None)
    row: dict[str, object] = {
        "memory_gib": memory / 1024,
        "disk_count": count,
        "disk_gb_each": size if count else None,
        "net_baseline_gbps": gigabits,
        "price_od_hour": usd,
        "price_od_source": "a test",
    }
    file = table(tmp_path_factory.mktemp("catalog"), [row], "aws-eu-west-1-2026-11-21.csv")
    catalog = load_catalog(file)
    (found,) = catalog.offers
    assert (catalog.provider, catalog.region) == ("aws", "eu-west-1")
    assert found.memory_bytes == memory << 20
    assert found.local_bytes == (None if disks is None else disks[0] * disks[1] * 10**9)
    baseline = found.network.baseline_bytes_per_second
    assert baseline == (None if gigabits is None else pytest.approx(gigabits * GIGABIT))
    assert (found.on_demand and found.on_demand.usd_per_hour) == usd


# Choosing and comparing.


def test_offers_are_chosen_and_the_undecided_counted() -> None:
    wanted = OfferFilter(least_local_bytes=10**12, arch="arm64", most_usd_per_hour=1.0)
    for catalog in newest_catalogs():
        found = filter_offers(catalog.offers, wanted)
        for each in found.offers:
            assert (each.local_bytes or 0) >= 10**12 and each.arch == "arm64"
            assert each.on_demand and each.on_demand.usd_per_hour <= 1
    everything = filter_offers(load_catalog(AWS).offers, OfferFilter())
    assert len(everything.offers) == 1402 and everything.undecided == {}
    priced = filter_offers(load_catalog(AWS).offers, OfferFilter(most_usd_per_hour=1e6))
    assert len(priced.offers) == 1361 and priced.undecided == {"on-demand price": 41}
    # What is known of Azure's disks may be enough, though not all is known.
    azure = filter_offers(load_catalog(AZURE).offers, OfferFilter(least_local_bytes=10**12))
    assert any(not each.all_disks_known for each in azure.offers)
    assert azure.undecided["local disks"] > 0
    assert filter_offers(load_catalog(GCP).offers, OfferFilter(provider="aws")).offers == ()
    assert filter_offers(load_catalog(AWS).offers, OfferFilter(least_vcpus=897)).offers == ()


def test_a_catalog_differs_from_a_later_one() -> None:
    found = compare_catalogs(load_catalog(AWS_2014), load_catalog(AWS))
    assert found.gone == ("cc2.8xlarge", "cg1.4xlarge", "hi1.4xlarge", "hs1.8xlarge")
    assert len(found.new) == 1402 - 33 and found.costlier == ()
    large = next(each for each in found.cheaper if each.type == "m3.large")
    assert (large.before_usd_per_hour, large.after_usd_per_hour) == (0.140, 0.133)
    assert large.by_share == pytest.approx(-0.05)
    (one,) = (each for each in found.changed if each.name == "cr1.8xlarge")
    disks = next(each for each in one.figures if each.figure == "local disks")
    assert (disks.before, disks.after, disks.by_share) == (240 * 10**9, None, None)
    assert found.new_volumes == tuple(
        f"volume {name}" for name in ("gp3", "io1", "io2", "sc1", "st1")
    )
    gp2, objects = found.changed_storage
    assert (gp2.name, objects.name) == ("volume gp2", "object storage")
    assert {each.figure: (each.before, each.after) for each in gp2.figures} == {
        "most operations": (3000, 16_000),
        "most throughput": (128 << 20, 250 << 20),
        "largest size": (1 << 40, 16 << 40),
    }
    assert all(each.before is None for each in objects.figures)


def test_a_catalog_does_not_differ_from_itself() -> None:
    for catalog in map(load_catalog, catalog_names()):
        same = compare_catalogs(catalog, catalog)
        assert not any((same.new, same.gone, same.costlier, same.cheaper, same.changed))
        assert not any((same.new_volumes, same.gone_volumes, same.changed_storage))


def test_changes_have_names() -> None:
    before = load_catalog(AWS)
    changed = tuple(
        replace(each, on_demand=None, vcpus=99.0) if each.type == "i4i.4xlarge" else each
        for each in before.offers
    )
    (found,) = compare_catalogs(before, replace(before, offers=changed)).changed
    figures = {each.figure: (each.before, each.after) for each in found.figures}
    assert found.name == "i4i.4xlarge" and figures == {
        "on-demand price": (1.373, None),
        "vCPUs": (16.0, 99.0),
    }
    kinds = tuple(
        replace(each, usd_per_gib_month=0.1) if each.name == "gp3" else each
        for each in before.volume_kinds
    )
    difference = compare_catalogs(before, replace(before, volume_kinds=kinds))
    (volume,) = difference.changed_storage
    assert volume.name == "volume gp3" and volume.figures[0].by_share == pytest.approx(0.25)
    assert difference.changed == ()
    with pytest.raises(CatalogError, match="of the same provider"):
        compare_catalogs(before, load_catalog(GCP))


def test_a_difference_goes_forward_only_within_a_region_and_with_time() -> None:
    before, after = load_catalog(AWS_2014), load_catalog(AWS)
    assert compare_catalogs(before, after).is_forward
    assert compare_catalogs(after, after).is_forward
    assert not compare_catalogs(after, before).is_forward
    assert not compare_catalogs(before, replace(after, region="eu-west-1")).is_forward


def test_the_catalog_before_is_of_the_same_provider_and_region() -> None:
    newest = load_catalog(AWS)
    assert previous_catalog(newest) == load_catalog(AWS_2014)
    for name in (AWS_2014, AZURE, GCP):
        assert previous_catalog(load_catalog(name)) is None
    refreshed = replace(newest, name="mine", date="2026-12-01")
    assert previous_catalog(refreshed) == newest
    assert previous_catalog(replace(refreshed, region="eu-west-1")) is None
    # The same content under another name is the same catalog; other content is not.
    assert previous_catalog(replace(newest, name="copy")) == load_catalog(AWS_2014)
    assert previous_catalog(replace(newest, offers=newest.offers[1:])) == newest


# The command.


def output_of(tonnage: Tonnage, *arguments: str) -> str:
    """The output of ``tonnage catalog``."""
    return tonnage.run("catalog", *arguments, check=True).stdout


def test_ls_lists_catalogs_and_offers(tonnage: Tonnage) -> None:
    assert [
        line.split()[0] for line in output_of(tonnage, "ls").splitlines()[1:]
    ] == catalog_names()
    *lines, last = output_of(tonnage, "ls", AWS_2014, "--min-local-disk", "6TB").splitlines()
    assert [line.split()[0] for line in lines] == ["TYPE", "hs1.8xlarge", "i2.8xlarge"]
    assert last == "2 of 37 offers."
    document = json.loads(
        output_of(tonnage, "ls", "--provider", "aws", "--max-price", "9", "--json")
    )
    assert document["undecided"] == {"on-demand price": 41}
    prices = [each["on_demand"]["usd_per_hour"] for each in document["offers"]]
    assert prices == sorted(prices) and prices[-1] <= 9
    catalogs = json.loads(output_of(tonnage, "ls", "--json"))["catalogs"]
    assert [each["offers"] for each in catalogs] == [37, 1402, 922, 522]


def test_show_prints_all_figures_and_unknown_ones(tonnage: Tonnage) -> None:
    shown = output_of(tonnage, "show", "i2.8xlarge", "--catalog", AWS_2014)
    for told in ("$6.82 per hour (2014-12-07, vantage", "8 x 800 GB ssd", "Volume gp2", "3600 s"):
        assert told in shown
    assert "Unknown:               spot price, baseline network bandwidth" in shown
    assert "Object storage:        ? (none in the catalog)" in shown
    document = json.loads(output_of(tonnage, "show", "n2-standard-80", "--json"))
    assert document["offer"]["network"]["baseline_bytes_per_second"] is None
    assert document["catalog"]["name"] == GCP
    assert document["offer"]["volume_link"]["volume_kinds"][0] == "pd-balanced"
    assert "placement groups" in document["offer"]["missing"]


def test_diff_prints_price_changes(tonnage: Tonnage) -> None:
    shown = output_of(tonnage, "diff", AWS_2014, AWS)
    first, second, *lines, last = shown.splitlines()
    assert first == f"From {AWS_2014} (2014-12-07, us-east-1, 37 offers)"
    assert second == f"to   {AWS} (2026-07-06, us-east-1, 1,402 offers)"
    assert "cheaper         m3.large    $0.14 -> $0.133 per hour (−5.0 %)" in lines
    assert (
        "                and 2 more (see --all)" in lines and "gone            hs1.8xlarge" in lines
    )
    assert any(line.startswith("new             1,369 types of 163 families") for line in lines)
    assert last.startswith("1,369 new, 4 gone, 0 more expensive, 12 cheaper, 30 with other changes")
    every = output_of(tonnage, "diff", AWS_2014, AWS, "--all")
    assert "new             i4i.4xlarge\n" in every and "more (see --all)" not in every
    assert "cr1.8xlarge: local disks 240 GB -> ?, peak network 1,250 MB/s -> ?" in every
    same = json.loads(output_of(tonnage, "diff", AWS, AWS, "--json"))
    keys = ["before", "after", "new", "gone", "dearer", "cheaper", "changed"]
    assert [*same][:7] == keys and same["changed"] == [] and same["before"]["date"] == "2026-07-06"


def test_diff_says_which_way_it_goes(tonnage: Tonnage) -> None:
    back = output_of(tonnage, "diff", AWS, AWS_2014)
    assert f"{AWS} is the later one" in back and "more expensive  t2.small" in back
    assert f"only in {AWS_2014}  hi1.4xlarge" in back
    assert "\nnew " not in back and "\ngone " not in back


def test_diff_compares_with_the_catalog_before(tonnage: Tonnage, tmp_path: Path) -> None:
    rows = (SNAPSHOTS / f"{AWS}.csv").read_text().splitlines()
    first, second = rows[1].split(",")[0], rows[2].split(",")[0]
    (tmp_path / "aws-us-east-1-2027.csv").write_text("\n".join([rows[0], *rows[2:]]) + "\n")
    own = output_of(tonnage, "diff", str(tmp_path / "aws-us-east-1-2027.csv"))
    assert own.startswith(f"From {AWS} (") and f"gone            {first}\n" in own
    assert second not in own and "0 new, 1 gone, 0 more expensive, 0 cheaper, 0 with" in own
    newest = output_of(tonnage, "diff")
    assert newest.startswith(f"From {AWS_2014} (")
    assert f"{AZURE}: no earlier catalog of its provider and region is included." in newest
    document = json.loads(output_of(tonnage, "diff", "--json"))
    assert document["without_earlier"] == [AZURE, GCP]
    (found,) = document["differences"]
    assert (found["before"]["name"], found["after"]["name"]) == (AWS_2014, AWS)


def test_show_prints_bursts_and_credits(tonnage: Tonnage) -> None:
    lines = dict(line.split(":", 1) for line in output_of(tonnage, "show", "m5.large").splitlines())
    assert "for 30 min, at least once every 24 h (AWS, Amazon EBS-opt" in lines["All volumes"]
    assert "bursts to 3,000 operations/s, 134 MB/s in total," in lines["Volume gp2"]
    assert "on a credit of 5,400,000 operations" in lines["Volume gp2"]
    assert "bursts to 262 MB/s per TiB on a credit of 1,024 GiB" in lines["Volume st1"]
    assert "burst" not in lines["Volume gp3"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["show", "i4i.4xlrge"], "unknown offer i4i.4xlrge (did you mean i4i.4xlarge?) in aws-us-"),
        (["show", "hi1.4xlarge"], "gcp-us-central1-2026; use aws-us-east-1-2014, which has it"),
        (["show", ""], "an argument is empty"),
        (
            ["ls", "--min-memory", "64"],
            "'64' is less than any machine has; add a unit, like 64GiB",
        ),
        (["ls", "--min-local-disk", "1TBB"], "'1TBB' is not a size"),
        (["ls", "--min-network", "10"], "'10' is not a bandwidth"),
        (["ls", "--min-vcpus", "nan"], "'nan' is not a number from 0 to 1000000"),
        (["ls", "--max-price", "free"], "'free' is not an amount of money"),
        (["ls", "--provider", "ibm"], "--provider ibm is not valid; use one of aws, azure, gcp"),
        (["ls", AWS_2014, "--provider", "gcp"], "--provider gcp is not valid; use aws"),
        (["ls", "--arch", "x86"], "--arch x86 is not valid"),
        (["ls", "--sort", "size"], "--sort size is not valid; use one of price, type"),
        (["ls", "aws-2014"], "unknown catalog aws-2014"),
        (["diff", AWS, GCP], "compare catalogs of the same provider"),
        (["diff", GCP], "no earlier catalog of its provider and region is included; specify"),
        (["diff", AWS_2014, AWS, GCP], f"{GCP}: a third catalog; specify at most two"),
        (["refresh", "gcp"], "gcp: this catalog cannot be refreshed; use aws"),
        (
            ["refresh", "aws", "--region", "nowhere"],
            "--region nowhere is not valid; use a region like us-east-1",
        ),
        (["refresh", "aws", "--output", "new.txt"], "use a file name that ends in .csv"),
    ],
)
def test_the_command_refuses_in_a_line(tonnage: Tonnage, arguments: list[str], told: str) -> None:
    done = tonnage.run("catalog", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and told in done.stderr


def test_filters_together_and_catalogs_given_twice(tonnage: Tonnage) -> None:
    wanted = ("--min-vcpus", "4", "--min-memory", "16GiB", "--max-price", "0.6USD")
    found = json.loads(output_of(tonnage, "ls", AWS, AWS, *wanted, "--arch", "arm64", "--json"))
    types = [each["type"] for each in found["offers"]]
    assert len(types) == len({*types}) > 10
    for each in found["offers"]:
        assert each["vcpus"] >= 4 and each["memory_bytes"] >= 16 * GIB
        assert each["arch"] == "arm64" and each["on_demand"]["usd_per_hour"] <= 0.6
    nothing = output_of(tonnage, "ls", "--min-vcpus", "100000")
    assert nothing == "0 of 2,846 offers.\n"


def on_a_terminal(tonnage: Tonnage, columns: int, *arguments: str) -> str:
    """The output of ``tonnage catalog`` on a terminal."""
    ours, its = os.openpty()
    told = []
    environment = os.environ | {"COLUMNS": str(columns)}
    with subprocess.Popen([tonnage.path, "catalog", *arguments], stdout=its, env=environment):
        os.close(its)
        with suppress(OSError):  # The end of a terminal is an error on Linux.
            while part := os.read(ours, 1 << 16):
                told.append(part)
    os.close(ours)
    return b"".join(told).decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit_a_terminal(tonnage: Tonnage, columns: int) -> None:
    listed = ("ls", "--min-local-disk", "1TB", "--arch", "arm64", "--max-price", "1")
    piped = output_of(tonnage, *listed).splitlines()
    assert len(piped[0]) > 120 and "SPOT USD/H" in piped[0]
    *table, left_out, count = on_a_terminal(tonnage, columns, *listed).splitlines()
    assert max(map(len, table)) <= columns and len(table) == len(piped) - 1
    assert "SPOT USD/H" not in table[0]
    assert left_out.startswith("Columns hidden (pipe to see all): SPOT USD/H")
    assert count == piped[-1]
    shown = on_a_terminal(tonnage, columns, "show", "m5.large")
    assert max(map(len, shown.splitlines())) <= columns
    assert shown.split() == output_of(tonnage, "show", "m5.large").split(), "nothing is lost"
    assert max(map(len, on_a_terminal(tonnage, columns, "ls").splitlines())) <= columns


def test_a_catalog_of_ones_own_is_read(tonnage: Tonnage, tmp_path: Path) -> None:
    file = table(tmp_path, [{"price_od_hour": 0.5, "price_od_source": "a bill"}])
    assert "$0.50" in output_of(tonnage, "ls", str(file))
    bad = table(tmp_path, [{"price_od_hour": -1}], "bad.csv")
    done = tonnage.run("catalog", "ls", bad)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tonnage: {bad}, row 2, price_od_hour: -1 is negative\n"
