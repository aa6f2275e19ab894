"""Facts that others published about machine types, and how offers get them."""

import re

import pytest

from support.data.copies import replace
from tonnage.catalog import Catalog, Disks, catalog_names, find_offer, load_catalog, newest_catalogs
from tonnage.catalog.offer import Offer
from tonnage.catalog.published import (
    core_speeds,
    disk_rates,
    machine_types,
    network_bursts,
    start_times,
    volume_links,
)
from tonnage.catalog.published.core_speeds import core_speed, family_of
from tonnage.catalog.published.disk_rates import OPERATION_BYTES
from tonnage.catalog.published.fill_in import fill_in
from tonnage.catalog.published.machine_types import machine_type
from tonnage.catalog.published.rows import TABLES, key_of, read
from tonnage.model.profiles.repository import index_profiles, read_profiles

SOURCES = {
    "machine_types.csv": machine_types.SOURCE,
    "core_speeds.csv": core_speeds.SOURCE,
    "burstable_vcpus.csv": machine_types.SOURCE,
    "disk_rates.csv": disk_rates.MEASURED,
    "start_times.csv": start_times.SOURCE,
    "network_bursts.csv": network_bursts.SOURCE,
    "volume_links.csv": volume_links.SOURCES["aws"],
}


def offer(name: str) -> Offer:
    return find_offer(newest_catalogs(), name)[1]


@pytest.mark.parametrize("table", SOURCES)
def test_a_table_has_each_type_once_and_says_its_source_and_licence(table: str) -> None:
    keys = [(*key_of(row["provider"], row["type"]), row.get("asked_at", "")) for row in read(table)]
    assert len(keys) == len({*keys})
    assert {provider for provider, *_ in keys} <= {"aws", "gcp", "azure"}
    (line,) = (
        line
        for line in (TABLES.parent / "README.md").read_text().splitlines()
        if line.startswith(f"| {table}")
    )
    licence = line.split("|")[4]
    assert any(name in licence for name in ("MIT", "Apache-2.0", "CC BY-SA 4.0"))
    version = re.search(r"(?:@|moto )([^,]+)", SOURCES[table])
    assert version and version[1] in line


def test_hyper_threads_are_not_cores() -> None:
    # 16 threads of 8 cores sort 33.8 million strings a second together.
    found = core_speed("aws", "i4i.4xlarge")
    assert found is not None and found.source == core_speeds.SOURCE
    assert found.sorting == pytest.approx(33_820.7 / 8)
    # A core of Graviton has one thread, and sorts nearly as much.
    arm = core_speed("aws", "c7g.4xlarge")
    assert arm is not None and 0.8 < arm.sorting / found.sorting < 1


def test_a_type_that_nobody_measured_is_as_fast_as_its_family() -> None:
    assert family_of("aws", "m7i.large") == "m7i"
    assert family_of("gcp", "n2-standard-8") == "n2"
    assert family_of("azure", "d8ds_v5") == family_of("azure", "d16ds_v5") == "dds_v5"
    measured = {key_of(row["provider"], row["type"]) for row in read("core_speeds.csv")}
    catalog = load_catalog("aws-us-east-1-2026")
    (kind, *_) = (
        each.type
        for each in catalog.offers
        if key_of("aws", each.type) not in measured and core_speed("aws", each.type)
    )
    family = [
        float(row["sorting"]) / int(row["cores"])
        for row in read("core_speeds.csv")
        if row["provider"] == "aws" and row["type"].startswith(kind.split(".")[0] + ".")
    ]
    found = core_speed("aws", kind)
    assert found is not None and found.source.startswith("the median of its family")
    assert min(family) <= found.sorting <= max(family)
    assert core_speed("aws", "nosuch.large") is None


def test_documented_operations_are_what_disks_carry_at_least() -> None:
    both = 0
    for row in read("disk_rates.csv"):
        known = machine_type(row["provider"], row["type"])
        if known is None or known.read_iops is None or known.write_iops is None:
            continue
        both += 1
        assert float(row["read_mb_per_s"]) * 1e6 >= known.read_iops * OPERATION_BYTES, row
        assert float(row["write_mb_per_s"]) * 1e6 >= known.write_iops * OPERATION_BYTES, row
    assert both > 150


def test_offers_have_the_rates_of_their_disks() -> None:
    measured, documented = offer("i4i.4xlarge"), offer("m7gd.4xlarge")
    assert measured.local_read_bytes_per_second == pytest.approx(3_087.63e6)
    assert measured.local_write_bytes_per_second == pytest.approx(2_289.28e6)
    (disks,) = documented.disks or ()
    assert disks.read_bytes_per_second == 268_333 * OPERATION_BYTES
    assert disks.rate_source == disk_rates.DOCUMENTED
    assert offer("d3en.12xlarge").local_read_bytes_per_second is None  # Rotating disks.
    assert offer("m5.large").local_read_bytes_per_second is None  # No disks.


def test_machines_know_how_many_volumes_can_be_attached() -> None:
    for name, most in (("d3en.12xlarge", 3), ("g5.48xlarge", 9), ("inf1.24xlarge", 11)):
        assert offer(name).volume_link.most_volumes == most
    link = offer("c3-standard-8").volume_link
    assert (link.most_volumes, link.volume_kinds) == (128, ("pd-balanced", "pd-ssd"))
    assert link.baseline_bytes_per_second == 240 << 20
    hyperdisks = offer("n4-standard-16").volume_link
    assert (hyperdisks.most_volumes, hyperdisks.volume_kinds) == (32, ("hyperdisk-balanced",))
    assert offer("c4-standard-4").volume_link.most_volumes is None


@pytest.mark.parametrize("catalog", newest_catalogs(), ids=lambda each: each.provider)
def test_stores_have_limits_and_volumes_that_machines_attach(catalog: Catalog) -> None:
    store = catalog.object_store
    assert store is not None and store.limits is not None
    assert store.limits.gets_per_second and store.limits.puts_per_second and store.limits.source
    kinds = {each.name for each in catalog.volume_kinds}
    assert kinds
    for each in catalog.offers:
        assert {*(each.volume_link.volume_kinds or ())} <= kinds


def test_networks_burst_where_it_was_measured() -> None:
    burst = offer("c6gd.large").network.burst
    assert burst is not None
    assert burst.bytes_per_second == pytest.approx(9.5e9 / 8)
    assert burst.credit_bytes == 348e9
    assert offer("c6gn.large").network.burst is None


def test_a_catalogs_own_figures_win() -> None:
    own = Disks(
        kind="nvme",
        count=1,
        bytes_each=10**12,
        total_bytes=10**12,
        read_bytes_per_second=1e9,
        write_bytes_per_second=2e9,
    )
    kept = fill_in(replace(offer("i4i.4xlarge"), disks=(own,), cores=7.0))
    assert kept.disks == (own,) and kept.cores == 7
    # What is published of a type is never taken for another provider's.
    assert fill_in(replace(offer("i4i.4xlarge"), provider="lab", disks=(own,))).core_speed is None


def test_where_none_are_published_a_machine_has_only_the_disks_that_its_catalog_states() -> None:
    seen = set()
    for each in (each for name in catalog_names() for each in load_catalog(name).offers):
        known = machine_type(each.provider, each.type)
        if known and known.disk_count == 0:
            assert each.disks is None or each.all_disks_known, each.type
            seen.add((each.provider, each.disks is None, bool(each.disks)))
    assert seen >= {(provider, False, False) for provider in ("aws", "azure", "gcp")}
    offers = {each.type: each for each in load_catalog("azure-us-east-2025").offers}
    assert offers["D2ps_v6"].disks == offers["E2ps_v6"].disks == offers["D2pls_v6"].disks == ()
    (stated,) = offers["Standard_E80is_v4"].disks or ()
    assert (stated.kind, stated.total_bytes) == ("temporary", 2400 << 30)


def test_a_catalog_that_states_nothing_of_disks_does_not_become_one_without_them() -> None:
    """Of g2.2xlarge none are published, but AWS listed it with a disk in 2014."""
    unknown = machine_type("aws", "g2.2xlarge")
    assert unknown is not None and unknown.disk_count == 0
    assert find_offer([load_catalog("aws-us-east-1-2014")], "g2.2xlarge")[1].local_bytes
    assert offer("g2.2xlarge").disks is None


def test_networks_of_2014_stay_unknown() -> None:
    found = find_offer([load_catalog("aws-us-east-1-2014")], "i2.4xlarge")[1]
    assert found.network.baseline_bytes_per_second is None
    assert found.network.peak_bytes_per_second is None


def test_public_addresses_have_a_price_since_they_are_charged() -> None:
    prices = {name: load_catalog(name).address for name in catalog_names()}
    assert prices["aws-us-east-1-2014"] is None
    for name in ("aws-us-east-1-2026", "gcp-us-central1-2026", "azure-us-east-2025"):
        address = prices[name]
        assert address and address.usd_per_hour == 0.005 and address.source and address.date


def test_most_offers_with_a_price_have_cores_and_their_speed() -> None:
    for name in catalog_names():
        priced = [each for each in load_catalog(name).offers if each.on_demand]
        known = [each for each in priced if each.cores and each.core_speed]
        assert len(known) > 0.2 * len(priced), name
        assert all(each.cores <= each.vcpus for each in priced if each.cores and each.vcpus), name


def test_the_share_that_disks_reach_follows_from_its_sources() -> None:
    """Both ways at once, i2's disks carry 0.88 and 0.91 of what they carry each way alone."""
    profile = index_profiles(read_profiles("themis-2014"))
    alone = disk_rates.disk_rates("aws", "i2.xlarge")
    assert alone is not None
    both = 1 / (1 / alone.read + 1 / alone.write)
    shares = [
        profile.offers["aws", kind][False].distributions["local both"].modes[0].median
        / (count * both)
        for kind, count in (("i2.8xlarge", 8), ("i2.4xlarge", 4))
    ]
    for way in ("local read", "local write"):
        law = profile.shares.distributions[way]
        assert law.modes[0].median == pytest.approx(sum(shares) / 2, abs=0.001)


def test_azures_temporary_nvme_disks_are_counted_once() -> None:
    offers = {each.type: each for each in load_catalog("azure-us-east-2025").offers}
    (disks,) = offers["D96pds_v6"].disks or ()
    assert (disks.kind, disks.count, disks.total_bytes) == ("nvme", 6, 5280 * 10**9)
    assert disks.read_bytes_per_second == 1_800_000 * 4096
    # Its table lists both: a temporary disk, which is left to the system, and NVMe disks.
    (nvme,) = offers["Standard_L16s_v3"].disks or ()
    assert (nvme.kind, nvme.count, nvme.total_bytes) == ("nvme", 2, 3576 << 30)


def test_azures_operations_are_no_rate() -> None:
    offers = {each.type: each for each in load_catalog("azure-us-east-2025").offers}
    assert offers["Standard_DC1ds_v3"].local_read_bytes_per_second is None
    assert offers["Standard_D2ads_v5"].disks is not None
    assert offers["Standard_D2ads_v5"].disks[0].read_bytes_per_second == 131e6
