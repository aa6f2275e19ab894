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
from tonnage.provision.export import ExportError
from tonnage.provision.export.spark import LEAST_HEAP_MIB, Executors

GIB = 1 << 30


@pytest.fixture
def nightly(tmp_path: Path) -> str:
    scan = stage(0, 0, 3_600, 4_000, read_bytes={"objects": 900 * GB}, shuffle_written_bytes=GB)
    file = tmp_path / "nightly.json"
    application(scan, seconds=3_600.0).write(file)
    return str(file)


@pytest.mark.parametrize(
    ("vcpus", "gib", "count", "cores"),
    [(1, 4, 1, 1), (4, 16, 1, 4), (8, 64, 2, 4), (16, 128, 4, 4), (48, 384, 12, 4), (7, 32, 2, 3)],
)
def test_executors_share_cores_and_memory(vcpus: int, gib: int, count: int, cores: int) -> None:
    its = Executors.of(replace(offer("m"), vcpus=vcpus, memory_bytes=gib * GIB))
    assert (its.count, its.cores) == (count, cores)
    used = its.count * (its.heap_mib + its.overhead_mib)
    assert 0.79 * gib * 1024 < used <= 0.8 * gib * 1024 + 2
    assert its.overhead_mib >= max(0.0999 * its.heap_mib, 384)


def test_machines_without_memory_for_an_executor_are_refused() -> None:
    small = replace(offer("m"), vcpus=2, memory_bytes=GIB * 7 // 8)
    with pytest.raises(ExportError, match=str(LEAST_HEAP_MIB)):
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
    assert properties == {f"spark:{name}": value for name, value in lines.items()}
    executor = yaml.safe_load(emitted(tonnage, nightly, "kubernetes", *cloud))["spec"]["executor"]
    assert str(executor["instances"]) == lines["spark.executor.instances"]
    assert executor["memory"] == lines["spark.executor.memory"]
    machine = cluster["workerConfig"]["machineTypeUri"]
    assert executor["nodeSelector"] == {"node.kubernetes.io/instance-type": machine}


def test_only_applications_of_spark_have_settings(tonnage: Tonnage, nightly: str) -> None:
    done = tonnage.run("plan", "sort", "--data", "1TB", "--emit", "spark")
    assert done.returncode == 2 and "application of Spark" in done.stderr
    done = tonnage.run("plan", nightly, "--emit", "emr", "--provider", "gcp")
    assert done.returncode == 2 and "plan with those of aws" in done.stderr
