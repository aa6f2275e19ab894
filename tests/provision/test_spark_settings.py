"""`tonnage plan APPLICATION --emit spark|emr|dataproc|kubernetes`: settings for chosen machines."""

from __future__ import annotations

import json
from pathlib import Path

import botocore.session
import pytest
import yaml
from botocore.validate import ParamValidator

from support.cli.command import Tonnage
from support.data.applications import GB, application, stage
from support.data.copies import replace
from support.data.offers import offer
from tonnage.base.records.plan import Plan
from tonnage.catalog import load_catalog
from tonnage.provision.export import ExportError, TooLittleMemory
from tonnage.provision.export.spark import LEAST_HEAP_MIB, MASTER_MIB, Executors

AWS = "aws-us-east-1-2026"
GIB = 1 << 30


@pytest.fixture
def nightly(tmp_path: Path) -> str:
    moved = {"read_bytes": {"objects": 900 * GB}, "shuffle_written_bytes": GB}
    scan = stage(0, 0, 3_600, 4_000, peak_memory_bytes=2 * GB, **moved)
    file = tmp_path / "nightly.json"
    application(scan, seconds=3_600.0).write(file)
    return str(file)


@pytest.mark.parametrize(
    ("vcpus", "gib", "count", "cores"),
    [(4, 16, 1, 4), (8, 64, 2, 4), (16, 128, 4, 4), (48, 384, 12, 4), (7, 32, 2, 3)],
)
def test_executors_share_cores_and_memory(vcpus: int, gib: int, count: int, cores: int) -> None:
    its = Executors.of(replace(offer("m"), vcpus=vcpus, memory_bytes=gib * GIB))
    assert (its.count, its.cores) == (count, cores)
    used = its.count * (its.heap_mib + its.overhead_mib)
    assert 0.79 * gib * 1024 < used <= 0.8 * gib * 1024 + 2
    assert its.overhead_mib >= max(0.0999 * its.heap_mib, 384)


@pytest.mark.parametrize(("gib", "for_system"), [(4, 1), (8, 2), (12, 2), (16, 2), (64, 2)])
def test_the_system_and_the_application_master_have_memory_beside_executors(
    gib: int, for_system: int
) -> None:
    its = Executors.of(replace(offer("m"), vcpus=2, memory_bytes=gib * GIB))
    used = its.count * (its.heap_mib + its.overhead_mib)
    assert used + MASTER_MIB + for_system * 1024 <= gib * 1024
    assert its.heap_mib >= LEAST_HEAP_MIB


def test_machines_without_memory_for_an_executor_are_refused() -> None:
    for gib, vcpus in ((2, 1), (4, 16)):
        small = replace(offer("m"), vcpus=vcpus, memory_bytes=gib * GIB)
        with pytest.raises(TooLittleMemory, match=str(LEAST_HEAP_MIB)):
            Executors.of(small)
    with pytest.raises(ExportError, match="unknown"):
        Executors.of(replace(offer("m"), memory_bytes=None))


def emitted(tonnage: Tonnage, nightly: str, kind: str, *options: str) -> str:
    nodes = ("--nodes", "4", "--from", "objects")
    command = ("plan", nightly, "--emit", kind, *nodes, *options)
    return tonnage.run(*command, check=True).stdout


def test_properties_are_those_of_all_machines(tonnage: Tonnage, nightly: str) -> None:
    text = emitted(tonnage, nightly, "spark", "--provider", "aws")
    lines = dict(line.split(" ", 1) for line in text.splitlines())
    assert int(lines["spark.executor.instances"]) % 4 == 0
    assert lines.keys() >= {"spark.executor.cores", "spark.executor.memory"}


def test_emr_accepts_the_request(tonnage: Tonnage, nightly: str) -> None:
    document = json.loads(emitted(tonnage, nightly, "emr", "--provider", "aws"))
    session = botocore.session.Session()
    model = session.get_service_model("emr").operation_model("RunJobFlow").input_shape
    judge = ParamValidator()
    assert judge.validate({"Name": 1}, model).has_errors()
    report = judge.validate(document, model)
    assert not report.has_errors(), report.generate_report()
    (core,) = [
        group
        for group in document["Instances"]["InstanceGroups"]
        if group["InstanceRole"] == "CORE"
    ]
    assert core["InstanceCount"] == 4
    properties = document["Configurations"][0]["Properties"]
    assert properties["spark.dynamicAllocation.enabled"] == "false"


def test_dataproc_and_kubernetes_have_the_same_executors(tonnage: Tonnage, nightly: str) -> None:
    cloud = ("--provider", "gcp")
    lines = dict(
        line.split(" ", 1) for line in emitted(tonnage, nightly, "spark", *cloud).splitlines()
    )
    cluster = yaml.safe_load(emitted(tonnage, nightly, "dataproc", *cloud))["config"]
    assert cluster["workerConfig"]["numInstances"] == 4
    properties = cluster["softwareConfig"]["properties"]
    assert properties.items() > {f"spark:{name}": value for name, value in lines.items()}.items()
    assert {name for name in properties if not name.startswith("spark:")} == {
        "yarn:yarn.nodemanager.resource.memory-mb",
        "yarn:yarn.scheduler.maximum-allocation-mb",
    }
    executor = yaml.safe_load(emitted(tonnage, nightly, "kubernetes", *cloud))["spec"]["executor"]
    assert str(executor["instances"]) == lines["spark.executor.instances"]
    assert executor["memory"] == lines["spark.executor.memory"]
    machine = cluster["workerConfig"]["machineTypeUri"]
    assert executor["nodeSelector"] == {"node.kubernetes.io/instance-type": machine}


def test_only_applications_of_spark_have_settings(tonnage: Tonnage, nightly: str) -> None:
    done = tonnage.run("plan", "sort", "--data", "1TB", "--emit", "spark")
    assert done.returncode == 2 and "application of Spark" in done.stderr
    done = tonnage.run("plan", nightly, "--emit", "emr", "--provider", "gcp")
    assert done.returncode == 2 and "plan with --provider aws\n" in done.stderr


def test_a_plan_that_dataproc_cannot_rent_is_refused_with_all_that_it_needs(
    tonnage: Tonnage, nightly: str
) -> None:
    said = tonnage.run(
        *("plan", nightly, "--emit", "dataproc", "--provider", "aws", "--nodes", "1"),
        *("--deadline", "90d", "--purchase", "spot"),
    )
    flags = "plan with --provider gcp --nodes 2 --purchase on-demand\n"
    assert said.returncode == 2 and said.stderr.endswith(flags)


@pytest.mark.parametrize("kind", ["spark", "emr", "kubernetes"])
def test_where_no_executor_fits_the_first_machines_are_named_on_which_one_does(
    tonnage: Tonnage, tmp_path: Path, kind: str
) -> None:
    """A small job is cheapest on machines of 2 GiB."""
    file = tmp_path / "small.json"
    application(stage(0, 0, 60, 4), seconds=60.0).write(file)
    command = ("plan", str(file), "--provider", "aws", "--from", "objects", "--nodes", "1")
    made = Plan.from_json(json.loads(tonnage.run(*command, "--json", check=True).stdout))
    memory = {each.type: each.memory_bytes or 0 for each in load_catalog(AWS).offers}
    assert memory[made.candidates[0].offer] == 2 * GIB
    first = next(
        number
        for number, each in enumerate(made.candidates, start=1)
        if memory[each.offer] > 3 * GIB
    )
    done = tonnage.run(*command, "--emit", kind, "--candidate", "1")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert f"--candidate {first}, 1 x {made.candidates[first - 1].offer} " in done.stderr
    document = tonnage.run(*command, "--emit", kind, "--candidate", str(first), check=True).stdout
    usual = tonnage.run(*command, "--emit", kind, check=True)
    assert usual.stdout == document and f"Candidate {first}: those before" in usual.stderr
    if kind == "emr":
        (yarn,) = (
            each["Properties"]
            for each in json.loads(document)["Configurations"]
            if each["Classification"] == "yarn-site"
        )
        least = int(yarn["yarn.nodemanager.resource.memory-mb"])
        assert least * 2**20 <= 0.75 * memory[made.candidates[first - 1].offer]
