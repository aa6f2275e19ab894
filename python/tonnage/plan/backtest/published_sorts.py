"""Published sorts: what was sorted on which machines, and in what time, for what money.

Facts from the papers and pages that each row names (`published_sorts.csv`). What a row does not say
and an engine's own authors publish is in `ENGINES`: nothing there comes from the time that is to be
predicted.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tonnage.base.records.durability import Durability
from tonnage.base.records.location import Location

TABLE = Path(__file__).parent / "published_sorts.csv"
RUNS: Mapping[str, Path] = {"Hadoop": Path(__file__).parent / "scout_terasort.csv"}
"""Public runs of an engine's sort (`plan.past_runs.run_table`)."""
LOCATIONS: Mapping[str, Location] = {"local": "local", "ebs": "volumes", "s3": "objects"}
"""The table's words; data elsewhere cannot be planned."""


@dataclass(frozen=True, kw_only=True)
class PublishedSort:
    """A sort of so many bytes; ``usd`` is ``None`` if nobody rented the machines."""

    name: str
    year: int
    engine: str
    provider: str
    machine_type: str
    nodes: int
    bytes: int
    read_from: str
    written_to: str
    durability: Durability
    seconds: float
    usd: float | None
    source: str


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What an engine's authors publish of it.

    ``cores`` says why its cores did not limit it; ``requests`` where the bytes of its requests to
    object storage are from, and their number of prefixes.
    """

    cores: str
    get_bytes: int | None = None
    put_bytes: int | None = None
    prefixes: int = 1
    requests: str | None = None


@dataclass(frozen=True, kw_only=True)
class Workers:
    """The machines of a record that sorted; the others were rented, too."""

    nodes: int
    source: str


@dataclass(frozen=True, kw_only=True)
class MachineFacts:
    """Bytes a second of a machine that its catalog does not know."""

    network: float
    disk_read: float
    disk_write: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The disks that a record's source states."""

    name: str
    source: str


LAYOUTS: Mapping[str, Layout] = {
    "Themis CloudSort": Layout(
        name="local + 8 x gp2",
        source="its layout is local + 8 x gp2 (Themis on EC2, section 5.3)",
    ),
}
"""Of other records the layout is the planner's choice."""
WORKERS: Mapping[str, Workers] = {
    "Spark Daytona GraySort": Workers(
        nodes=206,
        source="206 of its 207 machines sorted: 6,592 virtual cores, 32 each (databricks.com, "
        "2014-11-05)",
    ),
}
MIB, MB, GIGABIT = 1 << 20, 10**6, 1e9 / 8
MACHINES: Mapping[str, MachineFacts] = {
    "r3.4xlarge": MachineFacts(
        network=2 * GIGABIT,
        disk_read=507 * MB,
        disk_write=483 * MB,
        source="r3.4xlarge has 2 Gbit/s (TUM-DIS/cloudspecs@0ee54cf), and its disk is as fast as "
        "one of i2, of the same year (scylladb/scylla-machine-image@f25b2c5)",
    ),
}
ENGINES: Mapping[str, Engine] = {
    "Themis": Engine(cores="only phases that are bound by I/O (Themis on EC2, section 3.3.4)"),
    "Spark": Engine(
        cores="disks and network were saturated (databricks.com, 2014-11-05)",
    ),
    "Ray": Engine(
        cores="82 % of the theoretical performance of disks and network (arXiv 2203.05072)",
        get_bytes=16 * MIB,
        put_bytes=100 * MB,
        prefixes=40,
        requests="gets of 16 MiB and puts of 100 MB, in 40 buckets, of whose prefixes one each "
        "counts (exoshuffle/cloudsort@91775e1: s3_utils.py, sortlib.pyx)",
    ),
}
"""Engines whose cores are known not to limit them; of others nobody published what they take."""


def published_sorts() -> list[PublishedSort]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [
            PublishedSort(
                name=row["record"],
                year=int(row["year"]),
                engine=row["engine"],
                provider=row["provider"],
                machine_type=row["machine_type"],
                nodes=int(row["nodes"]),
                bytes=int(row["data_bytes"]),
                read_from=row["input"],
                written_to=row["output"],
                durability="replicated" if row["replicas"] == "2" else "none",
                seconds=float(row["seconds"]),
                usd=float(row["usd"]) if row["usd"] else None,
                source=row["source"],
            )
            for row in csv.DictReader(file)
        ]
