"""A lab: a small cluster emulated on one machine, whose truth is known because we set it.

Nodes are network namespaces behind a switch, with real packets over links of set speed, and real
blocks on disks that the kernel throttles; a control group holds each to its share of cores. A lab's
file says what there is (`description`), `up` makes it, `down` undoes it whatever has happened,
`become` runs a command on a node, `ray` makes a cluster of the nodes, `fault` and `heal` break and
mend them. A lab has a catalog of its own, so that plans are made of its machines too.
"""

from tonnage.provision.lab.enter_node import NotStarted, exec_on_node
from tonnage.provision.lab.faults import FACTOR, FAULTS, SLOWDOWNS, heal_node, inject_fault
from tonnage.provision.lab.lifecycle import describe, down, find_node, status, up
from tonnage.provision.lab.ray_cluster import start_ray
from tonnage.provision.lab.record import STATE_DIR, LabRecord, require_up

__all__ = [
    "FACTOR",
    "FAULTS",
    "STATE_DIR",
    "SLOWDOWNS",
    "NotStarted",
    "LabRecord",
    "exec_on_node",
    "down",
    "inject_fault",
    "heal_node",
    "find_node",
    "start_ray",
    "require_up",
    "status",
    "describe",
    "up",
]
