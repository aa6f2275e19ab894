"""`tonnage plan ... --emit`: what rents a candidate is valid, rents just that, or is refused."""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
import yaml
from botocore.validate import ParamValidator

from support.aws.moto_server import KEYS, server
from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.offers import distribution, profile
from support.stores.disk import ROOT
from tonnage.base.records.plan import AttachedVolumes, Candidate, Range, SpaceFit
from tonnage.catalog import catalog_names, find_offer, load_catalog
from tonnage.cli.plan.emit import document_text
from tonnage.model.jobs.reduce import reduce_job
from tonnage.provision.export import EXPORTERS, ExportError, Rental, ray

pytestmark = pytest.mark.slow

STUDY = ("plan", "sort", "--data", "100TB", "--from", "local", "--catalog", "aws-us-east-1-2014")
NEW = ("plan", "sort", "--data", "1TB", "--from", "local", "--catalog", "aws-us-east-1-2026")
PYTHONS = {
    "ray": Path(sys.executable),
    "skypilot": ROOT / ".tools" / "skypilot" / "bin" / "python",
}
GIB = 1 << 30


read = functools.cache(load_catalog)


def rental(
    catalog: str,
    offer: str,
    nodes: int = 4,
    *,
    own_disks: bool = False,
    volumes: AttachedVolumes | None = None,
    placement: bool = False,
    spot: bool = False,
) -> Rental:
    """A candidate of a shipped offer; what it takes and costs is nobody's business here."""
    found = find_offer([read(catalog)], offer)[1]
    nothing = Range(low=0.0, median=0.0, high=0.0)
    candidate = Candidate(
        catalog=catalog,
        provider=found.provider,
        offer=offer,
        layout="as it is",
        placement=placement,
        nodes=nodes,
        seconds=nothing,
        cost_usd=nothing,
        usd_per_hour=0.0,
        phases=[],
        capacity=SpaceFit(needed_bytes=0, have_bytes=0),
        evidence="advertised",
        deadline_probability=None,
        own_disks=own_disks,
        volumes=volumes,
    )
    return Rental("sort", candidate, found, spot)


GP3 = AttachedVolumes(kind="gp3", count=2, gib_each=135)
EIGHT = AttachedVolumes(kind="gp2", count=8, gib_each=1)


def variety() -> Iterator[Rental]:
    """Every ninetieth offer of every catalog in every layout, one node and many."""
    for name in catalog_names():
        offers = read(name).offers[::90]
        for offer, own, volumes, placement, nodes in itertools.product(
            offers, (False, True), (None, GP3, EIGHT), (False, True), (1, 178)
        ):
            if not own or offer.local_bytes:
                yield rental(
                    name,
                    offer.type,
                    nodes,
                    own_disks=own,
                    volumes=volumes,
                    placement=placement,
                    spot=nodes > 1,
                )


@pytest.fixture(scope="module")
def handed() -> dict[str, list[tuple[Rental, dict[str, Any]]]]:
    """What of the variety can be handed over, as each kind."""
    found: dict[str, list[tuple[Rental, dict[str, Any]]]] = {kind: [] for kind in EXPORTERS}
    for each in variety():
        for kind, hand_over in EXPORTERS.items():
            try:
                found[kind].append((each, hand_over(each).document))
            except ExportError as why:
                # It says what to do, in one line.
                assert "; " in str(why) and "\n" not in str(why)
    return found


def judged(kind: str, texts: Sequence[str], home: Path) -> list[dict[str, Any]]:
    """What Ray or SkyPilot makes of documents."""
    done = subprocess.run(
        [
            PYTHONS[kind],
            ROOT / "tests" / "support" / "export_validators" / "validate.py",
            kind,
            home / "judged.json",
        ],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        env=os.environ
        | {"HOME": str(home), "PYTHONPATH": "", "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: list[dict[str, Any]] = json.loads((home / "judged.json").read_text())
    return found


def test_ray_takes_its_clusters_which_have_just_the_nodes(
    handed: dict[str, list[tuple[Rental, dict[str, Any]]]], tmp_path: Path
) -> None:
    clusters = handed["ray"]
    assert {each.candidate.provider for each, _ in clusters} == {"aws", "gcp", "azure"}
    texts = [document_text("ray", document) for _, document in clusters]
    for (each, document), found in zip(clusters, judged("ray", texts, tmp_path), strict=True):
        assert found["version"] == ray.VERSION
        made, candidate = found["made"], each.candidate
        types = made["available_node_types"]
        workers = types.get("worker", {"min_workers": 0, "max_workers": 0})
        assert workers["min_workers"] == workers["max_workers"] == candidate.nodes - 1
        assert made["max_workers"] == candidate.nodes - 1 and made["head_node_type"] == "head"
        assert len({json.dumps(node["node_config"]) for node in types.values()}) == 1
        # What was written is what was read.
        assert made["setup_commands"] == document["setup_commands"]
        assert candidate.offer in json.dumps(types["head"]["node_config"])
        assert made["file_mounts"] == {"~/tonnage-wheels": "target/wheels"}


def test_skypilot_takes_its_tasks(
    handed: dict[str, list[tuple[Rental, dict[str, Any]]]], tmp_path: Path
) -> None:
    tasks = handed["skypilot"]
    assert {each.candidate.provider for each, _ in tasks} == {"aws", "gcp", "azure"}
    assert any(each.candidate.own_disks for each, _ in tasks)
    texts = [document_text("skypilot", document) for _, document in tasks]
    for (each, document), found in zip(tasks, judged("skypilot", texts, tmp_path), strict=True):
        assert found == {
            "num_nodes": each.candidate.nodes,
            "cloud": each.candidate.provider,
            "region": each.offer.region,
            "instance_type": each.candidate.offer,
            "setup": document["setup"],
        }


def test_a_judge_refuses_what_is_wrong(tmp_path: Path) -> None:
    whole = rental("aws-us-east-1-2026", "i4i.4xlarge", own_disks=True)
    for kind, place in (("ray", "provider"), ("skypilot", "resources")):
        document = EXPORTERS[kind](whole).document
        document[place] = "somewhere"
        home = tmp_path / kind
        home.mkdir()
        with pytest.raises(AssertionError):
            judged(kind, [document_text(kind, document)], home)


@pytest.mark.real
def test_botocore_takes_the_requests(
    handed: dict[str, list[tuple[Rental, dict[str, Any]]]],
) -> None:
    model = botocore.session.get_session().get_service_model("ec2")
    run, group = (
        model.operation_model(name).input_shape for name in ("RunInstances", "CreatePlacementGroup")
    )
    judge = ParamValidator()
    assert judge.validate({"MinCount": 1}, run).has_errors()
    assert len(handed["aws"]) > 100
    for each, document in handed["aws"]:
        assert not judge.validate(document["run_instances"], run).has_errors()
        placed = document.get("create_placement_group")
        assert (placed is not None) is each.candidate.placement
        assert placed is None or not judge.validate(placed, group).has_errors()
    for each, document in handed["ray"]:
        if each.candidate.provider == "aws":
            node = document["available_node_types"]["head"]["node_config"]
            whole = node | {"MinCount": 1, "MaxCount": 1}
            assert not judge.validate(whole, run).has_errors()


@pytest.mark.parametrize(
    ("catalog", "offer", "own", "volumes"),
    [
        ("aws-us-east-1-2014", "r3.4xlarge", False, EIGHT),
        ("aws-us-east-1-2026", "i4i.4xlarge", True, GP3),
        ("aws-us-east-1-2026", "m6g.large", False, None),
    ],
)
def test_ec2_gives_what_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    catalog: str,
    offer: str,
    own: bool,
    volumes: AttachedVolumes | None,
) -> None:
    # The server knows no placement groups and no disks by virtual name: botocore judges those.
    wanted = rental(catalog, offer, 3, own_disks=own, volumes=volumes)
    handed = EXPORTERS["aws"](wanted)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with server() as endpoint:
        ec2 = boto3.client("ec2", region_name=handed.document["region"], endpoint_url=endpoint)
        # The server is new, but not what it knows.
        urllib.request.urlopen(f"{endpoint}/moto-api/reset", data=b"").close()
        ec2.create_key_pair(KeyName="mine")
        has = {
            "REPLACE-ImageId": ec2.describe_images()["Images"][0]["ImageId"],
            "REPLACE-KeyName": "mine",
            "REPLACE-SubnetId": ec2.describe_subnets()["Subnets"][0]["SubnetId"],
        }
        assert handed.replace.keys() == has.keys()
        text = json.dumps(handed.document)
        for name, value in has.items():
            text = text.replace(name, value)
        assert "REPLACE" not in text
        document = json.loads(text)
        ec2.run_instances(**document["run_instances"])
        nodes = [
            each
            for reservation in ec2.describe_instances()["Reservations"]
            for each in reservation["Instances"]
        ]
        disks = [
            (each["VolumeType"], each["Size"])
            for each in ec2.describe_volumes()["Volumes"]
            if each["Attachments"][0]["Device"] not in {node["RootDeviceName"] for node in nodes}
        ]
    assert [node["InstanceType"] for node in nodes] == [offer] * 3
    attached = [(volumes.kind, volumes.gib_each)] * volumes.count * 3 if volumes else []
    assert disks == attached


def test_disks_of_a_node_are_asked_for() -> None:
    old = rental("aws-us-east-1-2014", "i2.8xlarge", own_disks=True, volumes=EIGHT)
    devices = EXPORTERS["aws"](old).document["run_instances"]["BlockDeviceMappings"]
    assert [each.get("VirtualName") for each in devices[:8]] == [
        f"ephemeral{at}" for at in range(8)
    ]
    assert len({each["DeviceName"] for each in devices}) == 16
    # NVMe disks are there without.
    new = rental("aws-us-east-1-2026", "i4i.4xlarge", own_disks=True)
    assert "BlockDeviceMappings" not in EXPORTERS["aws"](new).document["run_instances"]


def test_a_link_to_volumes_is_asked_for_where_it_is_optional() -> None:
    for offer, asked in (("r3.4xlarge", True), ("r3.8xlarge", None)):
        request = EXPORTERS["aws"](rental("aws-us-east-1-2014", offer, volumes=EIGHT)).document
        assert request["run_instances"].get("EbsOptimized") is asked
    without = EXPORTERS["aws"](rental("aws-us-east-1-2014", "r3.4xlarge")).document
    assert "EbsOptimized" not in without["run_instances"]


ONLY_ON = {"aws": "aws", "emr": "aws", "dataproc": "gcp"}


@pytest.mark.parametrize("kind", EXPORTERS)
def test_all_that_is_to_be_replaced_is_told(kind: str) -> None:
    for catalog, offer in (
        ("aws-us-east-1-2026", "i4i.4xlarge"),
        ("gcp-us-central1-2026", "n2-standard-8"),
        ("azure-us-east-2025", "Standard_L8s_v3"),
    ):
        wanted = rental(catalog, offer)
        if ONLY_ON.get(kind, wanted.candidate.provider) != wanted.candidate.provider:
            continue
        handed = EXPORTERS[kind](wanted)
        text = json.dumps(handed.document)
        for name in handed.replace:
            assert name.startswith("REPLACE-") and name in text
            text = text.replace(name, "")
        assert "REPLACE" not in text


class Node:
    """A machine whose disks are simulated: how tools list them, and what commands change."""

    def __init__(self, directory: Path, disks: Sequence[tuple[str, int, str]]) -> None:
        """``disks``: name, bytes, and the rest of the entry of one in use."""
        self.directory = directory
        tools = directory / "tools"
        tools.mkdir(parents=True)
        (directory / "disks").write_text("".join(f"{n} {s} {more}\n" for n, s, more in disks))
        table = directory / "disks"
        programs = {
            "lsblk": f"""for last; do :; done
                case "$*" in
                    *SIZE*) awk -v d="$last" '$1 == d {{print $2}}' {table} ;;
                    *MOUNTPOINT*) awk -v d="$last" '$1 == d {{print $1, $3, $4}}' {table} ;;
                    *) awk '{{print $1}}' {table} ;;
                esac""",
            "findmnt": "echo /mnt",
            "sudo": '"$@"',
            **{name: f'echo {name} "$@" >> {directory}/done' for name in ("mkfs.ext4", "mount")},
        }
        for name, body in programs.items():
            (tools / name).write_text(f"#!/bin/sh\n{body}\n")
            (tools / name).chmod(0o755)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Runs a script on this machine, in a tree of its own."""
        for place in ("/tonnage/", "/run/", "/dev/disk/azure/"):
            (self.directory / place.strip("/")).mkdir(parents=True, exist_ok=True)
            script = script.replace(place, f"{self.directory}{place}")
        return subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": f"{self.directory}/tools:{os.environ['PATH']}"},
            timeout=60,
        )

    @property
    def mounted(self) -> dict[str, str]:
        """Which disk is where."""
        done = self.directory / "done"
        lines = done.read_text().splitlines() if done.exists() else []
        words = [line.split() for line in lines if line.startswith("mount ")]
        return {Path(each[-1]).name: each[-2] for each in words}


ROOT_DISK = ("/dev/nvme0n1", 8 * GIB, "ext4 /")


def test_each_blank_disk_is_mounted_and_no_other(tmp_path: Path) -> None:
    wanted = rental("aws-us-east-1-2026", "i4i.8xlarge", own_disks=True, volumes=GP3)
    assert wanted.local_disks == 2
    disks = [
        ROOT_DISK,
        ("/dev/nvme10n1", 3_750_000_000_000, ""),
        ("/dev/nvme2n1", 135 * GIB, ""),
        ("/dev/nvme1n1", 3_750_000_000_000, ""),
        ("/dev/nvme3n1", 135 * GIB, ""),
        ("/dev/loop0", 135 * GIB, ""),
        ("/dev/sdz", 1_000_000_000, "xfs"),
    ]
    node = Node(tmp_path, disks)
    done = node.run(wanted.mount())
    assert done.returncode == 0, done.stderr
    assert node.mounted == {
        "local-0": "/dev/nvme1n1",
        "local-1": "/dev/nvme10n1",
        "volume-0": "/dev/nvme2n1",
        "volume-1": "/dev/nvme3n1",
    }
    made = (tmp_path / "done").read_text()
    assert made.count("mkfs.ext4") == 4
    # A second time nothing is done.
    assert node.run(wanted.mount()).returncode == 0
    assert (tmp_path / "done").read_text() == made


def test_disks_that_hold_nothing_of_the_job_are_left(tmp_path: Path) -> None:
    wanted = rental("aws-us-east-1-2026", "i4i.4xlarge", volumes=GP3)
    disks = [ROOT_DISK, ("/dev/nvme1n1", 3_750_000_000_000, "")]
    disks += [(f"/dev/nvme{at}n1", 135 * GIB, "") for at in (2, 3)]
    node = Node(tmp_path, disks)
    assert node.run(wanted.mount()).returncode == 0
    assert node.mounted.keys() == {"volume-0", "volume-1"}


def test_a_node_with_other_disks_than_planned_is_refused(tmp_path: Path) -> None:
    wanted = rental("aws-us-east-1-2026", "i4i.8xlarge", own_disks=True)
    node = Node(tmp_path, [ROOT_DISK, ("/dev/nvme1n1", 3_750_000_000_000, "")])
    done = node.run(wanted.mount())
    assert done.returncode == 1
    assert "Planned: 2 local disks, 0 volumes; found: 1, 0" in done.stderr


@pytest.mark.parametrize(
    ("offer", "disks", "mounted"),
    [
        ("Standard_L8s_v3", [("/dev/nvme1n1", 10**12, "")], "/dev/nvme1n1"),
        ("Standard_D8ds_v5", [], "/mnt"),
    ],
)
def test_azures_temporary_disk_counts_without_others(
    tmp_path: Path, offer: str, disks: list[tuple[str, int, str]], mounted: str
) -> None:
    wanted = rental("azure-us-east-2025", offer, own_disks=True)
    assert wanted.local_disks == 1
    assert Node(tmp_path / "bare", [ROOT_DISK]).run(wanted.mount()).returncode == 1
    node = Node(tmp_path / "whole", [ROOT_DISK, *disks])
    link = tmp_path / "whole" / "dev" / "disk" / "azure" / "resource-part1"
    link.parent.mkdir(parents=True)
    link.touch()
    done = node.run(wanted.mount())
    assert done.returncode == 0, done.stderr
    assert node.mounted == {"local-0": mounted}


def test_the_wheel_is_installed(tmp_path: Path) -> None:
    wheels = tmp_path / "tonnage-wheels"
    wheels.mkdir()
    info = "tonnage-0.1.0.dist-info"
    with zipfile.ZipFile(wheels / "tonnage-0.1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tonnage.py", "print('carried')\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tonnage\nVersion: 0.1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    here = os.environ | {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": "",
    }
    script = rental("aws-us-east-1-2026", "i4i.4xlarge").install()
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=here)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run(
        [tmp_path / "tonnage" / "bin" / "python", "-m", "tonnage"],
        capture_output=True,
        text=True,
        env=here,
    )
    assert ran.stdout == "carried\n"


@pytest.mark.real
def test_the_best_candidate_is_handed_over_or_another(tonnage: Tonnage, tmp_path: Path) -> None:
    plan = json.loads(tonnage.run(*NEW, "--json", check=True).stdout)["candidates"]
    done = tonnage.run(*NEW, "--emit", "ray", check=True)
    best = yaml.safe_load(done.stdout)
    assert best["max_workers"] == plan[0]["nodes"] - 1
    config = best["available_node_types"]["head"]["node_config"]
    assert config["InstanceType"] == plan[0]["offer"]
    volumes = plan[0]["volumes"]
    assert [each["Ebs"]["VolumeSize"] for each in config["BlockDeviceMappings"]] == [
        volumes["gib_each"]
    ] * volumes["count"]
    assert "Replace REPLACE-ImageId: the id of an image of Ubuntu" in done.stderr
    file = tmp_path / "request.json"
    third = tonnage.run(*NEW, "--emit", "aws", "--candidate", "3", "--output", file, check=True)
    assert third.stdout == ""
    request = json.loads(file.read_text())["run_instances"]
    assert request["InstanceType"] == plan[2]["offer"]
    assert request["MinCount"] == request["MaxCount"] == plan[2]["nodes"]
    told = json.loads(tonnage.run(*NEW, "--emit", "ray", "--json", check=True).stdout)
    assert told["document"] == best and told["candidate"] == plan[0]
    assert "REPLACE-ImageId" in told["replace"] and told["notes"]


def test_the_table_tells_which_candidate_is_the_nth(tonnage: Tonnage) -> None:
    lines = tonnage.run(*NEW, check=True).stdout.splitlines()
    rows = [words for words in map(str.split, lines) if words[0].isdigit()][:3]
    offers = [offer for _, offer, *_ in rows]
    assert [number for number, *_ in rows] == ["1", "2", "3"]
    done = tonnage.run(*NEW, "--emit", "aws", "--candidate", "2", check=True)
    assert json.loads(done.stdout)["run_instances"]["InstanceType"] == offers[1]


def test_a_plan_on_gcp_is_handed_over(tonnage: Tonnage, tmp_path: Path) -> None:
    # No catalog has what GCP's object storage costs: a job that pays for no requests.
    replace(reduce_job(1), requests=[]).write(tmp_path / "job.json")
    known = profile(
        {"n2-standard-8": [distribution("object get", 5e8), distribution("cpu", 1.0)]},
        provider="gcp",
    )
    known.write(tmp_path / "known" / "p.json")
    arguments = ("plan", str(tmp_path / "job.json"), "--data", "1TB", "--catalog")
    arguments += ("gcp-us-central1-2026", "--profile", str(tmp_path / "known"))
    done = tonnage.run(*arguments, "--emit", "skypilot", check=True)
    assert yaml.safe_load(done.stdout)["resources"]["infra"] == "gcp/us-central1"
    refused = tonnage.run(*arguments, "--emit", "aws")
    assert refused.returncode == 2
    assert "--emit aws: " in refused.stderr and "plan for provider aws" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*NEW, "--emit", "terraform"), "terraform is not valid; use one of ray, aws, skypilot"),
        (
            (*NEW, "--emit", "skypilot"),
            "SkyPilot does not support attaching volumes; choose another",
        ),
        (
            (*NEW, "--emit", "ray", "--candidate", "1000000"),
            "--candidate 1000000 does not exist; the plan has",
        ),
        ((*NEW, "--candidate", "2"), "--candidate needs --emit"),
        ((*NEW, "--output", "plan.yaml"), "--output needs --emit"),
        ((*NEW, "--emit", "ray", "--survey"), "--emit ray and --survey print different things"),
        (
            (*NEW, "--emit", "ray", "--explain", "m5.large"),
            "--emit ray and --explain print different things",
        ),
        (
            (*NEW, "--emit", "ray", "--output", "/dev/null/plan.yaml"),
            "--output /dev/null/plan.yaml: Not a directory",
        ),
        (
            (*STUDY, "--placement", "--emit", "skypilot"),
            "plan without placement, or export for ray",
        ),
        (
            (*STUDY, "--no-placement", "--emit", "skypilot"),
            "SkyPilot does not support requesting local disks",
        ),
        ((*STUDY, "--deadline", "1s", "--emit", "ray"), "nearest: 250 x i2.8xlarge"),
    ],
)
def test_refuses_and_says_what_mends_it(
    tonnage: Tonnage, arguments: tuple[str, ...], said: str
) -> None:
    done = tonnage.run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr and done.stdout == ""
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1


def test_spare_machines_are_asked_for_as_each_has_it(tonnage: Tonnage) -> None:
    aws, gcp, azure = "aws-us-east-1-2026", "gcp-us-central1-2026", "azure-us-east-2025"
    for catalog, of_node in (
        (aws, lambda node: node["InstanceMarketOptions"]["MarketType"] == "spot"),
        (gcp, lambda node: node["scheduling"][0]["preemptible"]),
        (azure, lambda node: node["azure_arm_parameters"]["priority"] == "Spot"),
    ):
        offer = read(catalog).offers[0].type
        document = EXPORTERS["ray"](rental(catalog, offer, spot=True)).document
        assert of_node(document["available_node_types"]["worker"]["node_config"])
        task = EXPORTERS["skypilot"](rental(catalog, offer, spot=True)).document
        assert task["resources"]["use_spot"] is True
    asked = tonnage.run(*NEW, "--purchase", "spot", "--emit", "aws", check=True).stdout
    assert json.loads(asked)["run_instances"]["InstanceMarketOptions"] == {"MarketType": "spot"}
