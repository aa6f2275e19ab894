"""What is known of the machines of runs, from the shipped catalogs."""

import pytest

from support.data.offers import catalog, offer
from tonnage.catalog import CatalogError, catalog_names, load_catalog
from tonnage.plan.past_runs.run_machines import LOCAL_SSD, Machines


@pytest.fixture(scope="module")
def machines() -> Machines:
    return Machines([load_catalog(name) for name in sorted(catalog_names()) if "aws" in name])


def test_data_on_volumes_is_behind_the_link_of_the_machine(machines: Machines) -> None:
    offers = [
        machines.offer("aws", "i2.2xlarge"),
        machines.offer("aws", "i2.2xlarge", "volumes"),
        machines.offer("aws", "r3.large", "volumes"),
        machines.offer("aws", "m4.xlarge", "volumes"),
    ]
    rates = machines.clusters((each, 1) for each in offers).disk_bytes_per_second
    assert rates[0] > 900e6
    assert list(rates[1:]) == [125e6, 50e6, 93.75e6]


def test_data_is_on_no_local_disks_of_unknown_size() -> None:
    unknown = offer("unknown", local_bytes=None, link=3e8)
    known = offer("known", local_bytes=10**12, link=3e8)
    its = Machines([catalog([unknown, known])]).clusters([(unknown, 1), (known, 1)])
    assert list(its.disk_bytes_per_second) == [3e8, LOCAL_SSD]


def test_types_of_a_family_are_told_apart(machines: Machines) -> None:
    offers = [machines.offer("aws", name) for name in ("m4.large", "m4.xlarge", "c4.large")]
    its = machines.clusters((each, 2) for each in offers)
    assert its.families[0] == its.families[1] != its.families[2]
    assert len(set(its.machine_types)) == 3
    with pytest.raises(CatalogError, match=r"no catalog has m4\.huge of aws"):
        machines.offer("aws", "m4.huge")
