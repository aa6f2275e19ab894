"""`tonnage catalog refresh aws`: answers of AWS as a catalog, and errors."""

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber

from support.aws.moto_server import FAMILIES, KEYS, PRICES, product, server, used
from support.cli.command import Tonnage
from support.data.copies import replace
from tonnage.catalog import find_offer, load_catalog, unknown_figures
from tonnage.catalog.providers.aws_fetch import (
    Clients,
    RefreshError,
    RefreshSummary,
    connect,
    refresh_aws,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OFFER = {
    "InstanceType": "x1.large",
    "CurrentGeneration": True,
    "VCpuInfo": {"DefaultVCpus": 2, "DefaultCores": 1},
    "MemoryInfo": {"SizeInMiB": 8192},
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64", "i386"]},
    "InstanceStorageSupported": False,
    "NetworkInfo": {
        "NetworkPerformance": "Up to 10 Gigabit",
        "NetworkCards": [{"BaselineBandwidthInGbps": 0.75, "PeakBandwidthInGbps": 10.0}],
    },
    "EbsInfo": {
        "EbsOptimizedInfo": {"BaselineThroughputInMBps": 81.25, "MaximumThroughputInMBps": 593.75}
    },
    "PlacementGroupInfo": {"SupportedStrategies": ["cluster", "spread"]},
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are nobody's, and no others."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server that answers as AWS does."""
    with server() as running:
        yield running


class Answers:
    """AWS with answers made by hand: types, products, spot prices."""

    def __init__(self) -> None:
        self.clients = connect("us-east-1")
        self.ec2, self.pricing = Stubber(self.clients.ec2), Stubber(self.clients.pricing)
        self.families: dict[tuple[str, str], list[str]] = {family: [] for family in FAMILIES}

    def types(self, *described: dict[str, Any]) -> None:
        """The next answer of EC2."""
        self.ec2.add_response("describe_instance_types", {"InstanceTypes": [*described]})

    def products(self, *listed: str, more: str | None = None) -> None:
        """The next page of the price list's machines."""
        page: dict[str, Any] = {"PriceList": [*listed]} | ({"NextToken": more} if more else {})
        self.pricing.add_response("get_products", page)

    def spots(self, *prices: tuple[str, str, float, str]) -> None:
        """The next answer of EC2: type, zone, days ago, price."""
        history = [
            {
                "InstanceType": name,
                "AvailabilityZone": zone,
                "Timestamp": NOW - timedelta(days=days),
                "SpotPrice": usd,
            }
            for name, zone, days, usd in prices
        ]
        self.ec2.add_response("describe_spot_price_history", {"SpotPriceHistory": history})

    def refresh(self, path: Path) -> RefreshSummary:
        """What comes of it all."""
        for listed in self.families.values():
            self.products(*listed)
        with self.ec2, self.pricing:
            return refresh_aws(path, "us-east-1", self.clients, NOW, lambda *_: None)


def test_a_fetched_catalog_has_the_shipped_schema(tmp_path: Path) -> None:
    aws = Answers()
    aws.types(OFFER)
    aws.products(product("x1.large", "0.5000000000"), more="next")
    aws.products(product("x1.huge", "9.0"))
    aws.spots(
        ("x1.large", "a", 9.0, "0.10"),  # before the range begins, and in force then
        ("x1.large", "a", 3.5, "0.30"),
        ("x1.large", "b", 7.0, "0.40"),
    )
    path = tmp_path / "aws-us-east-1-2026-11-21.csv"
    done = aws.refresh(path)
    assert (done.types, done.priced, done.spot_priced) == (1, 1, 1)
    catalog, offer = find_offer([load_catalog(path)], "x1.large")
    assert (catalog.region, catalog.date) == ("us-east-1", "2026-11-21")
    assert offer.on_demand and offer.on_demand.usd_per_hour == 0.5
    assert offer.on_demand.source == "AWS price list, published 2026-11-20"
    assert offer.spot and (offer.spot.low_usd_per_hour, offer.spot.high_usd_per_hour) == (0.1, 0.4)
    assert offer.spot.typical_usd_per_hour == pytest.approx((0.2 + 0.4) / 2)
    assert offer.spot.source == "EC2 DescribeSpotPriceHistory, 7 days"
    assert (offer.arch, offer.vcpus, offer.cores, offer.memory_bytes) == ("x86_64", 2, 1, 8 << 30)
    assert offer.disks == () and offer.placement_groups is True
    assert offer.network.baseline_bytes_per_second == 0.75e9 / 8
    assert offer.volume_link.most_bytes_per_second == 593.75e6
    assert offer.volume_link.baseline_iops is None
    assert unknown_figures(offer) == ["baseline operations of volumes"]
    burst = offer.volume_link.burst
    assert burst and burst.lasts_seconds == 1800


def test_volumes_and_object_storage_have_the_list_s_prices_and_the_shipped_limits(
    tmp_path: Path,
) -> None:
    aws = Answers()
    aws.types(OFFER)
    aws.products()
    aws.spots()
    aws.families = FAMILIES
    done = aws.refresh(tmp_path / "new.csv")
    assert (done.volumes, done.volumes_priced, done.objects_priced) == (6, 5, True)
    assert done.limits_from == "aws-us-east-1-2026"
    catalog = load_catalog(tmp_path / "new.csv")
    kinds = {kind.name: kind for kind in catalog.volume_kinds}
    shipped = {kind.name: kind for kind in load_catalog("aws-us-east-1-2026").volume_kinds}
    assert [*kinds] == [*shipped], "magnetic volumes and those of other zones are left out"
    for name, kind in kinds.items():
        assert kind.most_bytes == shipped[name].most_bytes
        assert kind.limit_source == f"aws-us-east-1-2026: {shipped[name].limit_source}"
        for mine, other in (
            (kind.operations, shipped[name].operations),
            (kind.throughput, shipped[name].throughput),
        ):
            assert replace(mine, usd_each_month=None) == replace(other, usd_each_month=None)
    found = {
        name: (kind.usd_per_gib_month, kind.operations.usd_each_month)
        for name, kind in kinds.items()
    }
    assert found == {
        "gp3": (0.08, 0.005),
        "gp2": (0.1, None),
        "io2": (0.125, 0.065),
        "io1": (0.125, 0.065),
        "st1": (0.045, None),
        "sc1": (None, None),
    }
    assert kinds["gp3"].throughput.usd_each_month == pytest.approx(0.04 / (1 << 20))
    assert (kinds["gp3"].date, kinds["gp3"].price_source) == (
        *("2026-11-21", "AWS price list, published 2026-11-20"),
    )
    # What the list lacks is not filled in with a price of another time.
    assert kinds["sc1"].date is None and "no price for it" in kinds["sc1"].price_source
    store = catalog.object_store
    assert store and (store.usd_per_gb_month, store.usd_per_1000_puts) == (0.023, 0.005)
    assert store.usd_per_1000_gets == 0.0004 and store.usd_per_gb_to_internet is None
    assert store.usd_per_gb_in_region is None and store.date == "2026-11-21"


def test_a_list_without_volumes_leaves_them_without_prices(tmp_path: Path) -> None:
    aws = Answers()
    aws.types(OFFER)
    aws.products()
    aws.spots()
    # Two prices of one thing, and a unit that nobody knows.
    aws.families["AmazonEC2", "Storage"] = [
        used("EBS:VolumeUsage.gp2", "GB-Mo", {"0": "0.1"}),
        used("EUC1-EBS:VolumeUsage.gp2", "GB-Mo", {"0": "0.2"}),
        used("EBS:VolumeUsage.gp3", "TB-Mo", {"0": "80"}),
    ]
    done = aws.refresh(tmp_path / "new.csv")
    assert (done.volumes, done.volumes_priced, done.objects_priced) == (6, 0, False)
    catalog = load_catalog(tmp_path / "new.csv")
    assert {kind.usd_per_gib_month for kind in catalog.volume_kinds} == {None}
    store = catalog.object_store
    assert store and store.usd_per_1000_gets is None and "no price for it" in store.source


@pytest.mark.parametrize("prefix", ["", "USW2-", "EU-", "APN1-"])
def test_prefixes_of_regions_are_ignored(tmp_path: Path, prefix: str) -> None:
    aws = Answers()
    aws.types(OFFER)
    aws.products()
    aws.spots()
    aws.families["AmazonEC2", "Storage"] = [
        used(f"{prefix}EBS:VolumeUsage.gp2", "GB-Mo", {"0": "0.1"})
    ]
    aws.families["AmazonS3", "API Request"] = [
        used(f"{prefix}Requests-Tier2", "Requests", {"0": "4e-7"})
    ]
    aws.refresh(tmp_path / "new.csv")
    catalog = load_catalog(tmp_path / "new.csv")
    assert [kind.usd_per_gib_month for kind in catalog.volume_kinds if kind.name == "gp2"] == [0.1]
    assert catalog.object_store and catalog.object_store.usd_per_1000_gets == 0.0004


def test_figures_that_aws_does_not_state_stay_unknown(tmp_path: Path) -> None:
    aws = Answers()
    aws.types({"InstanceType": "x1.bare"}, {"InstanceType": "x1.two"}, OFFER)
    # Of two prices none is the price; of zero, and of another unit, neither.
    aws.products(
        product("x1.two", "0.4"),
        product("x1.two", "0.5"),
        product("x1.bare", "0.0000000000"),
        product("x1.large", "12", unit="Quantity"),
    )
    aws.spots()
    done = aws.refresh(tmp_path / "new.csv")
    assert (done.types, done.priced, done.spot_priced) == (3, 0, 0)
    bare, large, _ = load_catalog(tmp_path / "new.csv").offers
    assert bare.type == "x1.bare" and bare.disks is None and bare.memory_bytes is None
    assert large.on_demand is None and large.spot is None


@pytest.mark.parametrize(
    ("words", "cards", "gigabits"),
    [
        ("200 Gigabit", [200.0, 200.0], 200.0),
        ("4x 100 Gigabit", [100.0] * 4, 400.0),
        ("High", [2.0], 2.0),
        ("25 Gigabit", [None], None),
        ("25 Gigabit", [], None),
    ],
)
def test_cards_are_added_up_to_what_is_advertised(
    tmp_path: Path, words: str, cards: list[float | None], gigabits: float | None
) -> None:
    told: list[dict[str, Any]] = [
        {} if each is None else {"BaselineBandwidthInGbps": each} for each in cards
    ]
    aws = Answers()
    aws.types(OFFER | {"NetworkInfo": {"NetworkPerformance": words, "NetworkCards": told}})
    aws.products()
    aws.spots()
    aws.refresh(tmp_path / "new.csv")
    (offer,) = load_catalog(tmp_path / "new.csv").offers
    expected = None if gigabits is None else gigabits * 1e9 / 8
    assert offer.network.baseline_bytes_per_second == expected


def test_disks_of_several_sizes_are_known_together(tmp_path: Path) -> None:
    disks = [{"Count": 1, "SizeInGB": 100, "Type": "ssd"}, {"Count": 2, "SizeInGB": 300}]
    store = {"Disks": disks, "NvmeSupport": "unsupported"}
    aws = Answers()
    aws.types(OFFER | {"InstanceStorageSupported": True, "InstanceStorageInfo": store})
    aws.products()
    aws.spots()
    aws.refresh(tmp_path / "new.csv")
    (offer,) = load_catalog(tmp_path / "new.csv").offers
    (found,) = offer.disks or ()
    assert (found.kind, found.count, found.bytes_each) == ("ssd", 3, None)
    assert offer.local_bytes == 700 * 10**9


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "RequestLimitExceeded",
            r"throttled .* of DescribeInstanceTypes .*; retry in a few minutes",
        ),
        ("AuthFailure", r"rejects these credentials .*AWS_PROFILE"),
        ("UnauthorizedOperation", r"allow ec2:DescribeInstanceTypes"),
        ("InternalError", r"refuses DescribeInstanceTypes \(InternalError\): so it is"),
    ],
)
def test_a_refusal_is_one_line_and_nothing_is_written(tmp_path: Path, code: str, told: str) -> None:
    aws = Answers()
    aws.ec2.add_client_error("describe_instance_types", code, "so it is")
    with pytest.raises(RefreshError, match=told):
        aws.refresh(tmp_path / "new.csv")
    assert [*tmp_path.iterdir()] == []


def test_the_price_list_is_allowed_apart(tmp_path: Path) -> None:
    aws = Answers()
    aws.types(OFFER)
    aws.pricing.add_client_error("get_products", "AccessDeniedException")
    with pytest.raises(RefreshError, match="allow pricing:GetProducts"):
        aws.refresh(tmp_path / "new.csv")


def test_a_region_without_types_is_refused(tmp_path: Path) -> None:
    aws = Answers()
    aws.types()
    aws.products()
    aws.spots()
    with pytest.raises(RefreshError, match="us-east-1; check the region name"):
        aws.refresh(tmp_path / "new.csv")


def test_missing_credentials_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    clients: Clients = connect("us-east-1", endpoint)
    with pytest.raises(RefreshError, match=r"credentials are missing or incomplete .*AWS_PROFILE"):
        refresh_aws(tmp_path / "new.csv", "us-east-1", clients, NOW, lambda *_: None)


def test_an_invalid_endpoint_is_refused() -> None:
    with pytest.raises(RefreshError, match="nowhere"):
        connect("us-east-1", "nowhere")


def test_the_command_asks_a_server(tonnage: Tonnage, tmp_path: Path, endpoint: str) -> None:
    path = tmp_path / "aws-us-east-1-2026-11-21.csv"
    done = tonnage.run(
        *("catalog", "refresh", "aws", "--endpoint-url", endpoint, "--output", str(path), "--json"),
        check=True,
    )
    document = json.loads(done.stdout)
    catalog = load_catalog(path)
    assert document["types"] == len(catalog.offers) > 500
    assert document["priced"] == len(PRICES) and document["path"] == str(path)
    assert {each.type for each in catalog.offers if each.on_demand} == {*PRICES}
    _, offer = find_offer([catalog], "i4i.4xlarge")
    _, shipped = find_offer([load_catalog("aws-us-east-1-2026")], "i4i.4xlarge")
    # The shipped one was made from the same table.
    assert (offer.disks, offer.memory_bytes, offer.network, offer.volume_link) == (
        *(shipped.disks, shipped.memory_bytes, shipped.network, shipped.volume_link),
    )
    shown = tonnage.run("catalog", "show", "i4i.4xlarge", "--catalog", path, check=True).stdout
    assert "AWS price list, published 2026-11-20" in shown
    planned = tonnage.run(
        *("plan", "sort", "--data", "10TB", "--from", "volumes", "--catalog", path, "--json"),
        check=True,
    )
    candidates = json.loads(planned.stdout)["candidates"]
    assert {each["offer"] for each in candidates} == {*PRICES}
    assert any("gp3" in each["layout"] for each in candidates), "volumes can be planned with"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupt_leaves_nothing(tonnage: Tonnage, tmp_path: Path, number: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asking = subprocess.Popen(
            [tonnage.path, "catalog", "refresh", "aws", "--endpoint-url", endpoint],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        with asking, silent.accept()[0] as connection:
            connection.recv(1)
            time.sleep(0.5)  # It has asked, and sleeps until an answer comes.
            asking.send_signal(number)
            _, said = asking.communicate(timeout=60)
    assert asking.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    assert said == "tonnage: interrupted; unfinished output was removed\n"
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_an_unreachable_server_is_reported(tonnage: Tonnage, tmp_path: Path) -> None:
    done = tonnage.run(
        *(
            "catalog",
            "refresh",
            "aws",
            "--endpoint-url",
            "http://127.0.0.1:9",
            "--output",
            "new.csv",
        ),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (1, "")
    *progress, last = done.stderr.splitlines()
    assert "cannot reach AWS" in last
    # How long it is tried is drawn at random: it may end before there is progress to be shown.
    assert all("attempts of DescribeInstanceTypes so far" in line for line in progress)
    assert [*tmp_path.iterdir()] == []
