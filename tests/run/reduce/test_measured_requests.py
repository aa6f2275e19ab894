"""Tuning of requests starts with the number that sufficed when the store was measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from support.cli.command import Tonnage
from support.stores.s3 import BUCKET, Bucket


def test_what_measure_object_kept_is_begun_with(tonnage: Tonnage, s3: Bucket, disk: Path) -> None:
    url, endpoint = f"s3://{BUCKET}/", ("--endpoint-url", s3.endpoint)
    trials = ("--operation", "get", "--chunk-size", "1MiB", "--requests", "3", "--repetitions", "1")
    short = ("--objects", "1", "--object-size", "2MiB", "--seconds", "0.2")
    measured = ("measure", "object", url, *endpoint, *trials, *short, "--output", disk / "store")
    tonnage.run(*measured, check=True)
    s3.put("points/a", np.arange(3000.0).tobytes())
    run = ("run", "reduce", "kmeans", f"{url}points/", "--k", "2", "--dtype", "3f8", *endpoint)
    told = tonnage.run(*run, "--capacities", disk / "store", "--json", check=True)
    tuning = json.loads(told.stdout)["tuning"]
    assert tuning["threads"] == 3 and "; 3 concurrent requests" in tuning["why"], tuning

    both = tonnage.run(*run, "--capacities", disk / "store", "--requests", "2")
    assert both.returncode == 2 and "--capacities works only with --requests auto" in both.stderr
    (disk / "in").mkdir()
    tonnage.run(
        "measure",
        "disk",
        "--dir",
        disk / "in",
        "--size",
        "4MiB",
        "--seconds",
        "0.1",
        "--output",
        disk / "d",
        check=True,
    )
    other = tonnage.run(*run, "--capacities", disk / "d")
    assert other.returncode == 2 and "no finished measurement of object reads" in other.stderr, (
        other.stderr
    )
    (disk / "rows").write_bytes(np.arange(300.0).tobytes())
    local = ("run", "reduce", "histogram", disk / "rows", "--dtype", "3f8")
    refused = tonnage.run(*local, "--capacities", disk / "store")
    assert (
        refused.returncode == 2
        and "applies only to s3:// input, but there is none" in refused.stderr
    )
