"""What a command prints with ``--json`` is a record that other commands read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.stores.disk import ROOT
from support.stores.s3 import BUCKET, Bucket
from tonnage.base.records import ClusterMeasurement, Measurement
from tonnage.cli.output.cluster_measurement import document
from tonnage.cli.output.trials import disk_details

SHORT = ("--repetitions", "1", "--seconds", "0.2")
NETWORK = ("net", "--endpoints", "2")
DISK = ("disk", "--dir", "DISK", "--mode", "ro", "--size", "4MB", "--memory", "64MiB")
STORE = ("object", "STORE", "--requests", "1", "--chunk-size", "1MiB", "--object-size", "1MiB")
RECORDED = ROOT / "tests" / "support" / "recorded" / "artifacts"


def read_by_report(tonnage: Tonnage, document: str, directory: Path) -> None:
    printed = directory / "printed.json"
    printed.write_text(document)
    tonnage.run("report", printed, "--output", directory / "page.html", check=True)


@pytest.mark.parametrize(
    ("command", "added"),
    [(NETWORK, "costs"), (DISK, "warnings"), (STORE, "knees")],
    ids=["net", "disk", "object"],
)
def test_a_printed_measurement(
    command: tuple[str, ...], added: str, s3: Bucket, tonnage: Tonnage, disk: Path, tmp_path: Path
) -> None:
    places = {"DISK": disk, "STORE": f"s3://{BUCKET}/test"}
    args = [places.get(each, each) for each in command]
    if "STORE" in command:
        args += ["--endpoint-url", s3.endpoint]
    done = tonnage.run("measure", *args, *SHORT, "--json", "--output", tmp_path / "out", check=True)
    assert added in json.loads(done.stdout)
    stored = Measurement.read(tmp_path / "out" / "measurement.json")
    assert Measurement.from_json(json.loads(done.stdout)) == stored
    read_by_report(tonnage, done.stdout, tmp_path)


def test_a_printed_cluster_measurement(tonnage: Tonnage, tmp_path: Path) -> None:
    stored = ClusterMeasurement.read(RECORDED / "fleet-1.json")
    printed = document(stored, disk_details)
    assert "warnings" in printed["nodes"][0]
    assert ClusterMeasurement.from_json(printed) == stored
    read_by_report(tonnage, json.dumps(printed), tmp_path)


def test_a_printed_survey_is_a_plan(tonnage: Tonnage, tmp_path: Path) -> None:
    command = ("plan", "sort", "--data", "1TB", "--provider", "aws", "--survey", "--json")
    read_by_report(tonnage, tonnage.run(*command, check=True).stdout, tmp_path)
