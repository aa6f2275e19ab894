"""Simulated clusters of known rates, that sort on their own disks."""

import dataclasses

import numpy as np

from tonnage.simulate.cluster import LINK_IN, LINK_OUT, PassLoads, SimulatedCluster
from tonnage.simulate.flow import Array


def cluster_of(
    read: Array, write: Array, link: Array, cores: tuple[Array, Array], apart: bool
) -> SimulatedCluster:
    """Nodes that sort on their own disks; arrays are seconds for a byte.

    ``apart``: reading and writing share the disk, or else each is as fast as without the other.
    """
    none = np.zeros_like(read)
    first = PassLoads(
        np.array([read, none, cores[0], none, none]),
        np.array([none, none, none, link, none]),
        np.array([none, write, none, none, link]),
    )
    second = PassLoads(np.array([read, write, cores[1], none, none]), first.sent, first.arrived)
    third = np.array([read, write, none, none, none])
    names: tuple[str, ...] = ("read", "write", "cpu", LINK_OUT, LINK_IN)
    if apart:
        first, second = (_on_one_disk(each) for each in (first, second))
        third = _on_one_disk(PassLoads(third, third, third)).own
        names = ("disk", *names[2:])
    return SimulatedCluster(
        names,
        first,
        second,
        third_pass=PassLoads(third, 0 * third, 0 * third),
        first_read=0 * read if apart else read,
    )


def _on_one_disk(loads: PassLoads) -> PassLoads:
    def added(side: Array) -> Array:
        return np.vstack([side[:2].sum(axis=0), side[2:]])

    return PassLoads(added(loads.own), added(loads.sent), added(loads.arrived))


def without_copies(made: SimulatedCluster) -> SimulatedCluster:
    """The cluster of a sort whose output is not copied."""
    two = made.pass_two
    return dataclasses.replace(made, pass_two=PassLoads(two.own, 0 * two.sent, 0 * two.arrived))
