"""Data of a study on machines that are threads here: written, measured, removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cluster.machines import Machines
from tonnage.base import core
from tonnage.run.sort import input_generator
from tonnage.run.sort.gensort import RECORD_BYTES, validate
from tonnage.run.sort.input_generator import data_generator
from tonnage.run.sort.local import Layout

NODES = ("a", "b")


def test_each_record_is_written_once_and_removed(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_generator, "FILE_RECORDS", 300)
    directories = [f"{disk}/{{node}}/one", f"{disk}/{{node}}/two"]
    cluster, progress = Machines(*NODES), list[int]()
    with data_generator(cluster, cluster.machines) as generator:
        generator.generate({"a": 1000, "b": 500}, directories, progress.append)
        files = sorted(disk.glob("*/*/records-*"))
        assert len(files) == 6
        assert sum(file.stat().st_size for file in files) == progress[-1] == 1500 * RECORD_BYTES
        found = validate(files, layout=Layout())
        assert (found["records"], found["duplicate_keys"]) == (1500, 0)
        assert set(generator.space([f"{disk}/{{node}}"])["b"]) == {f"{disk}/{{node}}"}
        with pytest.raises(core.UsageError, match=r"^dir: .*: a: the directory does not exist"):
            generator.space([f"{disk}/nowhere"])
        assert generator.remove([f"{disk}/{{node}}"]) == {}
    assert list(disk.iterdir()) == []


def test_what_fails_on_a_node_is_told_of_it(disk: Path) -> None:
    cluster = Machines(*NODES)
    (disk / "b").write_text("no directory")
    with (
        data_generator(cluster, cluster.machines) as generator,
        pytest.raises(core.RunError, match=r"^b: .*/b/in: Not a directory"),
    ):
        generator.generate({"a": 10, "b": 10}, [f"{disk}/{{node}}/in"])
