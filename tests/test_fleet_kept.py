"""A fleet's directory: what earlier commands left there, whole or not."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tonnage import engine
from tonnage.fleet.kept import Kept, kept


def on_file(out: Path, *nodes: str) -> AbstractContextManager[Kept]:
    """The directory, for a command on these nodes."""
    return kept(out, "ops", {}, nodes, command=["test"], labels={}, one_at_a_time=False)


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
        pytest.raises(engine.Refused, match=r"holds something else \(mine\.json\)"),
        on_file(tmp_path),
    ):
        pass
