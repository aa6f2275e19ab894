"""Arguments of the Python API that cannot be used are refused, in the API's own words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonnage
from support.cli.command import Tonnage
from tonnage import AggregateReduction, Cluster, Input, MapReduce, aggregates, counts


class Rows(AggregateReduction):
    """Counts rows."""

    rows = aggregates.Sum()

    def local(self, rows: Any, into: Any) -> Any:
        into.rows.add(len(rows))
        return into


@pytest.fixture
def points(disk: Path) -> Path:
    np.save(disk / "points.npy", np.zeros((10, 2)))
    return disk / "points.npy"


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("assignment", "random", "'random' is not one of selective, sequential"),
        ("workers", 0, "0 is not a whole number of at least 1"),
        ("workers", 1.5, "1.5 is not a whole number of at least 1"),
        ("threads", -3, "-3 is not a whole number of at least 1"),
        ("measured", 0, "0 is not a whole number of at least 1"),
        ("chunk_bytes", 0, "0 is not a whole number of at least 1"),
        ("memory", "much", "'much' is not a size; write it like 256MiB"),
        ("memory", -1, "-1 is not a size; write it like 256MiB"),
        ("dtype", "x9", "x9 is not a NumPy type"),
    ],
)
def test_arguments_of_reduce(points: Path, setting: str, value: Any, message: str) -> None:
    arguments: dict[str, Any] = {setting: value}
    if setting == "dtype":
        arguments["format"] = "rows"
    with pytest.raises(tonnage.UsageError) as refused:
        tonnage.reduce(Rows(), points, **arguments)
    assert str(refused.value).startswith(f"{setting}: {message}")
    assert "--" not in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("workers", 0, "workers: 0 is not a whole number of at least 1"),
        ("memory", "much", "memory: 'much' is not a size"),
        ("memory", "1MiB", "memory: 1048576 bytes are not enough"),
        ("format", "xml", "output_format: xml is not one of parquet, arrow, csv, json"),
        ("input_format", "xml", "input_format: xml is not one of auto, parquet"),
        ("output", "s3://bucket/out", "output: s3://bucket/out: only a cluster writes to object"),
        ("scratch", [], "scratch: specify at least one directory"),
    ],
)
def test_arguments_of_map_reduce(points: Path, setting: str, value: Any, message: str) -> None:
    places = {"output": points.parent / "out", "scratch": points.parent / "scratch"}
    arguments: dict[str, Any] = places | {setting: value}
    with pytest.raises(tonnage.UsageError) as refused:
        MapReduce(reduce=counts()).run(
            Input(points, format="lines") if setting != "input_format" else points, **arguments
        )
    assert str(refused.value).startswith(message)
    assert "--" not in str(refused.value)
    assert {*points.parent.iterdir()} <= {points, places["scratch"]}


def test_a_reduction_on_a_cluster_has_no_output_to_protect(points: Path) -> None:
    cluster = Cluster(points.parent / "job", durability="replicated")
    with pytest.raises(tonnage.UsageError, match=r"cluster: .* apply only to MapReduce"):
        tonnage.reduce(Rows(), points, cluster=cluster)


def test_a_column_that_does_not_exist(tonnage: Tonnage, disk: Path) -> None:
    (disk / "a.csv").write_text("x,y\n1,2\n")
    done = tonnage.run("run", "reduce", "histogram", disk / "a.csv", "--columns", "nosuch")
    assert done.returncode == 2
    assert "--columns: there is no column nosuch; the columns are x, y" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("inputs", 5, "5 is neither a path nor a list of paths"),
        ("inputs", None, "None is neither a path"),
        ("inputs", b"a", "b'a' is neither a path"),
        ("inputs", ["a", 5], "5 is not a path"),
        ("dtype", 5, "5 is not a string"),
        ("endpoint", 5, "5 is not a string"),
        ("cluster", "auto", "'auto' is not a tonnage.Cluster"),
        ("memory", float("nan"), "nan is not a size"),
    ],
)
def test_values_of_a_wrong_type_are_refused_by_parameter(name: str, value: Any, why: str) -> None:
    arguments: dict[str, Any] = {"inputs": "in", name: value}
    with pytest.raises(tonnage.UsageError, match=re.escape(f"{name}: {why}")):
        tonnage.reduce(Rows(), **arguments)
