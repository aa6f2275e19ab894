"""A lab: a small cluster emulated on one machine, whose truth is known because we set it.

Nodes are network namespaces behind a switch, with real packets over links of set speed, and real
blocks on disks that the kernel throttles; a control group holds each to its share of cores. A lab's
file says what there is (`description`), `up` makes it, `down` undoes it whatever has happened,
`become` runs a command on a node, `ray` makes a cluster of the nodes, `fault` and `heal` break and
mend them. A lab has a catalog of its own, so that plans are made of its machines too.
"""

from tonnage.provision.lab.enter_node import NotStarted, become
from tonnage.provision.lab.faults import FACTOR, FAULTS, SLOW, fault, heal
from tonnage.provision.lab.lifecycle import down, node_of, status, told, up
from tonnage.provision.lab.ray_cluster import ray
from tonnage.provision.lab.record import STATE_DIR, LabRecord, require_up

__all__ = [
    "FACTOR",
    "FAULTS",
    "STATE_DIR",
    "SLOW",
    "NotStarted",
    "LabRecord",
    "become",
    "down",
    "fault",
    "heal",
    "node_of",
    "ray",
    "require_up",
    "status",
    "told",
    "up",
]
