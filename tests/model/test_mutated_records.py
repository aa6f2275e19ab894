"""One wrong value in a record is refused as it is read, or does not break what uses the record.

Some fields of records are free-form, and only their readers know what belongs there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from model.profiles.test_calibration import ALL, reduced, two_nodes
from model.profiles.test_profiles import disks, network, shuffled, store
from model.profiles.test_profiles import measurement_of as measured
from support.data.mutations import mutations
from support.data.networks import network as cluster_network
from support.data.reductions import record as reduction
from tonnage.base.records import ClusterMeasurement, Measurement, ReductionRecord, RunRecord
from tonnage.base.records.base import Record, RecordError
from tonnage.measure.net.shuffle_analysis import analyse_shuffle
from tonnage.model.analysis.analyse import analyse
from tonnage.model.analysis.reduction_sweep import summarise_sweep
from tonnage.model.jobs.mapreduce import job_from_run
from tonnage.model.jobs.reduce import job_from_reduction
from tonnage.model.profiles.build import build_profile
from tonnage.model.profiles.offer_matching import OfferError


def profile_of(measurements: Sequence[Measurement] = (), **more: Any) -> None:
    build_profile(measurements, {}, name="p", made_at="2026-01-01T00:00:00Z", assigned=ALL, **more)


def use_measurement(found: Measurement) -> None:
    profile_of([found])
    analyse([found])


def use_cluster(found: ClusterMeasurement) -> None:
    if measured_nodes := [node.measurement for node in found.nodes if node.measurement]:
        analyse(measured_nodes, clusters=[found])
    analyse_shuffle(found)


def use_run(found: RunRecord) -> None:
    profile_of(runs=[found])
    with suppress(ValueError):  # The record is not of a cluster: a line of its own.
        job_from_run(found)


def use_reduction(found: ReductionRecord) -> None:
    profile_of(runs=[found])
    job_from_reduction(found)
    summarise_sweep([found])


STORE = {"bucket": "b", "endpoint": "http://store:9000"}
LAYOUT = {"layout": "raid0", "devices": ["/dev/a", "/dev/b"], "size_bytes": 1 << 30}
CASES: dict[str, tuple[Record, Callable[[Any], None]]] = {
    "disk": (disks({"rw": [5e8]}), use_measurement),
    "layout": (disks({"rw": [5e8]}, kind="layouts", settings=LAYOUT), use_measurement),
    "store": (
        measured([store("get", 1 << 23, 8, 1e8)], kind="object", settings=STORE),
        use_measurement,
    ),
    "endpoints": (network({0: 1e8, 1: 9e7}), use_measurement),
    "machines": (shuffled("node-0", {(2, 1): 1e8}), use_measurement),
    "cluster": (cluster_network({"a": (1e8, 1e8), "b": (1e8, 1e8)}), use_cluster),
    "sort": (two_nodes(settings={"inputs": ["in"], "output": ["out"]}), use_run),
    "reduction": (reduced(), use_reduction),
    "sweep": (reduction(["in"], 1 << 30, 2.0, 1 << 23, 4), use_reduction),
}


@pytest.mark.parametrize("case", CASES)
def test_one_wrong_value_is_refused_or_breaks_nothing(case: str) -> None:
    record, use = CASES[case]
    use(record)
    refused = 0
    for mutation in mutations(record.to_json()):
        try:
            found = type(record).from_json(json.loads(json.dumps(mutation.document)))
        except RecordError:
            refused += 1
            continue
        try:
            use(found)
        except OfferError:
            pass  # It names the machine's offer, which has to be that of the test.
        except Exception as why:
            raise AssertionError(f"{mutation.name}: {why!r}") from why
    assert refused > 20
