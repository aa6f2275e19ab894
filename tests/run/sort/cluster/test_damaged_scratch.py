"""A byte that flips in a node's scratch between the passes of a record sort is found and named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cluster.sorters import SortMachines, directories, driver
from support.data.records import blob
from tonnage.run.sort.cluster.records import SortJob
from tonnage.run.sort.gensort import validate
from tonnage.run.sort.local import Layout
from tonnage.run.two_pass.driver import run_two_pass

pytestmark = pytest.mark.slow

NODES = ("a", "b", "c")
RECORDS = 20_000


@pytest.mark.parametrize("bit", [0, 7])
def test_only_the_damaged_nodes_records_are_sorted_elsewhere(disk: Path, bit: int) -> None:
    (disk / "in").mkdir()
    (disk / "in" / "f").write_bytes(blob(1, RECORDS * Layout().record_bytes))
    given = validate([disk / "in"], layout=Layout())
    want = SortJob(
        inputs=[str(disk / "in")],
        output=directories(disk, "out"),
        scratch=directories(disk, "scratch"),
        layout=Layout(),
        memory_bytes=16 << 20,
        connections=1,
        patience_seconds=5.0,
        command=["test"],
    )
    with driver(dies="pass_two", before=True):
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    (device,) = (disk / "b" / "scratch").glob("tonnage-*/round-00000.device")
    content = bytearray(device.read_bytes())
    content[100] ^= 1 << bit
    device.write_bytes(content)
    record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost["a"] is None and lost["c"] is None
    assert "round-00000.device" in str(lost["b"])
    assert "the block at offset 0 is not as it was written" in str(lost["b"])
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    assert {each["node"] for each in listed} == {"a", "c"}
    found = validate([disk / "a" / "out", disk / "c" / "out"], layout=Layout())
    assert (found["unordered"], found["records"]) == (0, RECORDS)
    assert found["checksum"] == given["checksum"]
