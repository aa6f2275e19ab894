"""Plans, runs and calibrations from when `durability` said where a job's data is still say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.stores.disk import ROOT
from tonnage.base.records import RunRecord
from tonnage.base.records.calibration import Calibration
from tonnage.base.records.location import Location
from tonnage.base.records.plan import Plan
from tonnage.model.run_phases import durability_of, locations_of

DATA = ROOT / "tests" / "support" / "recorded" / "artifacts"


def recorded(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((DATA / name).read_text())
    return record


@pytest.mark.parametrize(
    ("settings", "location", "durability"),
    [
        ({"durability": "none"}, "local", "none"),
        ({"durability": "replicated"}, "local", "replicated"),
        ({"durability": "volumes"}, "volumes", "none"),
        ({"durability": "volumes", "objects": True}, "objects", "none"),
        ({"durability": "volumes", "objects": False}, "volumes", "none"),
    ],
)
def test_an_earlier_plan_says_where_its_data_is(
    tmp_path: Path, settings: dict[str, object], location: Location, durability: str
) -> None:
    record = recorded("plan-1.json")
    record["job"]["settings"] = settings | {"map_share": 1.0, "reduce_share": 1.0}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(record))
    job = Plan.read(file).job
    assert (job.input_location, job.output_location) == (location, location)
    assert job.durability == durability


def test_an_earlier_run_on_objects_had_no_copies(tmp_path: Path) -> None:
    record = recorded("run-1.json") | {"durability": "volumes"}
    record["settings"] |= {"inputs": ["s3://bucket/in"], "output": ["s3://bucket/out"]}
    file = tmp_path / "run.json"
    file.write_text(json.dumps(record))
    run = RunRecord.read(file)
    assert durability_of(run) == "none"
    assert locations_of(run) == ("objects", "objects")


@pytest.mark.parametrize(
    ("durability", "location", "is_replicated"),
    [("none", "local", False), ("replicated", "local", True), ("volumes", "objects", False)],
)
def test_an_earlier_calibration_says_where_its_data_was(
    durability: str, location: Location, is_replicated: bool
) -> None:
    calibration = Calibration(
        job="sort", durability=durability, nodes=4, bytes=1, phases=[], spread_source="one run"
    )
    assert calibration.locations == (location, location)
    assert calibration.is_replicated == is_replicated
