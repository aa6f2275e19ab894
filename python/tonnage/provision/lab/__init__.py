"""Emulate a small cluster on this machine, with known disk, network and CPU limits.

Nodes are network namespaces behind a bridge, with real packets over rate-limited links and real
blocks on throttled disks; control groups limit their CPU. A file configures a lab (`config`), `up`
creates it, `down` removes it whatever happened, `exec_on_node` runs a command on a node,
`start_ray` makes a Ray cluster, `inject_fault` and `heal_node` break and repair nodes. A lab has
its own catalog, so that plans can use its machines.
"""

from tonnage.provision.lab.enter_node import NotStarted, exec_on_node
from tonnage.provision.lab.faults import FACTOR, FAULTS, SLOWDOWNS, heal_node, inject_fault
from tonnage.provision.lab.lifecycle import describe, down, find_node, status, up
from tonnage.provision.lab.ray_cluster import start_ray
from tonnage.provision.lab.record import STATE_DIR, LabRecord, require_up

__all__ = [
    "FACTOR",
    "FAULTS",
    "SLOWDOWNS",
    "STATE_DIR",
    "LabRecord",
    "NotStarted",
    "describe",
    "down",
    "exec_on_node",
    "find_node",
    "heal_node",
    "inject_fault",
    "require_up",
    "start_ray",
    "status",
    "up",
]
