"""Which node holds which input, how it is split, and how much each node of a cluster sorts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.data.measurements import measurement
from support.data.runs import network
from tonnage.base import core
from tonnage.base.records import ClusterMeasurement, ClusterNode
from tonnage.cli.run.cluster import load_capacities, weights
from tonnage.run.two_pass.job_dir import holders_from_json, holders_to_json
from tonnage.run.two_pass.lost_peers import blamed_peers
from tonnage.run.two_pass.sizing import ALIGNMENT, MAX_BYTES
from tonnage.run.two_pass.splits import FileId, cut_splits, find_holders

SIZES = st.lists(st.integers(0, 50_000_000), max_size=6)


@given(SIZES, st.integers(1, 5000), st.integers(1, 50))
def test_splits_are_the_files_cut_at_records(sizes: list[int], record: int, nodes: int) -> None:
    files = [FileId(f"f{place}", place, size * record, 1, 1) for place, size in enumerate(sizes)]
    names = tuple(f"n{number:02}" for number in range(nodes))
    splits = cut_splits(dict.fromkeys(files, names), record)
    for each in files:
        own = [split for split in splits if split.path == each.path]
        ends = [0] + [split.offset + split.bytes for split in own]
        assert ends == [split.offset for split in own] + [each.bytes]
        assert all(0 < split.bytes <= max(MAX_BYTES, record) for split in own)
        assert all(split.offset % record == split.bytes % record == 0 for split in own)
    small = [split for split in splits if split.offset % ALIGNMENT]
    assert small == [] or record * ALIGNMENT > 1 << 20
    assert holders_from_json(holders_to_json(dict.fromkeys(files, names))) == dict.fromkeys(
        files, names
    )


def test_a_file_is_the_same_one_if_all_that_is_seen_of_it_agrees() -> None:
    one = FileId("/in", 7, 100, 1, 2)
    others = [
        one._replace(path="/other"),
        one._replace(inode=8),
        one._replace(bytes=200),
        one._replace(mtime_ns=3),
        one._replace(ctime_ns=3),
    ]
    held = find_holders({"a": [one], "b": [one, others[0]], "c": others})
    assert held[one] == ("a", "b") and held[others[0]] == ("b", "c")
    assert all(held[other] == ("c",) for other in others[1:])


def test_who_a_network_blames_is_called_by_its_name() -> None:
    why = "endpoint 1 (127.0.0.1:7): not reached in 5 s: endpoint 9 (127.0.0.1:8) has gone"
    assert (
        blamed_peers(why, ["a", "b", "c"]) == ["b"] and blamed_peers("a disk is full", ["a"]) == []
    )


def test_capacities_are_each_nodes_slowest_disk_rate(disk: Path) -> None:
    rates = {
        "a": {"ro": [300.0, 310.0, 320.0], "wo": [200.0], "headroom": [1.0]},
        "b": {"ro": [50.0], "wo": [100.0], "rw": [90.0]},
    }
    nodes = [
        ClusterNode(node=name, ok=name != "c", measurement=measurement(name, of_node))
        for name, of_node in (rates | {"c": {"ro": [1.0]}}).items()
    ]
    whole = ClusterMeasurement(
        id="f", kind="disk", began_at="", command=[], settings={}, nodes=nodes
    )
    whole.write(disk / "fleet.json")
    assert weights(load_capacities([disk / "fleet.json"])) == {"a": 200.0, "b": 50.0}
    assert weights([network({"a": 1.0, "b": 2.0})]) is None
    ClusterMeasurement(id="g", kind="disk", began_at="", command=[], settings={}).write(
        disk / "none" / "fleet.json"
    )
    with pytest.raises(
        core.UsageError, match="no finished measurement of nodes' disks, network or"
    ):
        load_capacities([disk / "none" / "fleet.json"])
