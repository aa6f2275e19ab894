"""Descriptions of small labs that tests use, and what they become."""

from pathlib import Path

from tonnage.provision.lab.config import LabConfig, parse
from tonnage.provision.lab.nodes import Node, lab_nodes
from tonnage.provision.lab.throttling import (
    Controller,
)

LINK, SLOW_LINK = 40, 20
READ, WRITE, SLOW_DISK, IOPS = 60, 40, 30, 200
CPUS = 0.5

FILE = f"""
[lab]
name = "test-lab"

[[machine]]
type = "fast"
price_usd_per_hour = 1.0
cpus = {CPUS}
link_mb_per_s = {LINK}
disks = [{{ size = "320MiB", read_mb_per_s = {READ}, write_mb_per_s = {WRITE} }}]

[[machine]]
type = "slow.2x"
count = 1
price_usd_per_hour = 0.25
link_mb_per_s = {SLOW_LINK}
disks = [{{ size = "64MiB", read_mb_per_s = {SLOW_DISK}, write_iops = {IOPS}, fs = "ext4" }},
         {{ size = "16MiB", fs = "none" }}]
"""
TINY = """
[lab]
name = "test-tiny"
[[machine]]
type = "a"
count = 2
price_usd_per_hour = 1
cpus = 1
link_mb_per_s = 10
disks = [{ size = "16MiB", read_mb_per_s = 10, write_mb_per_s = 10, fs = "ext4" }]
"""

FIRST = {
    "cpu": Controller("cpu", 1, Path("/cg/cpu")),
    "io": Controller("io", 1, Path("/cg/blkio")),
}
SECOND = {name: Controller(name, 2, Path("/cg")) for name in ("cpu", "io")}


def described(text: str = FILE) -> LabConfig:
    return parse(text, "lab.toml")


def nodes(text: str = FILE, network: int = 0) -> list[Node]:
    return lab_nodes(described(text), network, Path("/room/test-lab"))
