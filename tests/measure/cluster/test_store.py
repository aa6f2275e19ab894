"""A cluster's directory: complete and incomplete results of earlier commands."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from support.data.measurements import measurement
from tonnage.base import core
from tonnage.base.records import ClusterNode
from tonnage.measure.cluster.store import ClusterMeasurementDir, open_measurement_dir


def on_file(out: Path, *nodes: str) -> AbstractContextManager[ClusterMeasurementDir]:
    """The directory, for a command on these nodes."""
    return open_measurement_dir(
        out, "ops", {}, nodes, command=["test"], labels={}, one_at_a_time=False
    )


@pytest.mark.parametrize(
    "left", [".fleet.json.ab12", ".fleet-begun.json.ab12", "gone/.begun.json.ab12"]
)
def test_a_write_that_was_killed_is_in_nobodys_way(tmp_path: Path, left: str) -> None:
    (tmp_path / left).parent.mkdir(exist_ok=True)
    (tmp_path / left).touch()
    with on_file(tmp_path):
        pass
    (tmp_path / "mine.json").touch()
    with (
        pytest.raises(core.UsageError, match=r"contains other files \(mine\.json\)"),
        on_file(tmp_path),
    ):
        pass


def test_who_had_begun_has_a_row_whoever_is_there_to_go_on(tmp_path: Path) -> None:
    for node in ("gone", "idle", "done"):
        measurement(node, {}).write(tmp_path / node / "begun.json")
    with on_file(tmp_path, "idle", "done") as keep:
        keep.write_row(ClusterNode(node="done", ok=True))
        whole = keep.close()
    assert {row.node: row.why for row in whole.missing} == {
        "gone": "is no longer in the cluster",
        "idle": "was not included in this run",
    }
    assert [row.node for row in whole.nodes if row.ok] == ["done"]
    assert all(row.measurement for row in whole.nodes)
