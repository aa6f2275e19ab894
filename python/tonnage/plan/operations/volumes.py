"""Nodes with attached volumes: the cheapest number of nodes, volumes and provisioned operations.

All volumes store and serve the same share. A volume has operations and bytes a second by its size
(gp2), or some that are included and more that are bought (gp3), within the limits of its kind: at
most so many, so many for each GiB, so many bytes a second for each operation. Kinds that count
larger operations as several are charged for those. A node's link to all of its volumes limits both.

With N nodes the cost is piecewise linear in N: more nodes cost more, but their volumes include more
operations, until none need to be bought. So the cheapest N is the least possible, or where one of
the purchases ends. All machines of a catalog are computed together, for each number of volumes.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonnage.base.records.operations_plan import NodesLimit
from tonnage.catalog import Catalog, VolumeKind
from tonnage.plan.operations.question import FILL, OperationsQuestion
from tonnage.plan.resources.machines import Machines

Array = npt.NDArray[Any]
GIB, MIB = 1 << 30, 1 << 20
VOLUME_COUNTS = (1, 2, 4, 8, 16)
LIMITS: tuple[NodesLimit, ...] = ("operations", "link", "data")
"""What decides the fewest nodes: the volumes' operations, the link to them, their size."""
NOT_SMALL = "small operations on rotating disks are not planned"
NO_OPERATIONS = "the operations that its volumes give, or their price, are unknown"


@dataclass(frozen=True)
class VolumeChoices:
    """The cheapest choice of each machine: arrays over machines; infinite cost is none."""

    usd_per_hour: Array
    volumes_usd_per_hour: Array
    nodes: Array
    fewest: Array
    """By each of `LIMITS`: shape ``(limits, machines)``."""
    count: Array
    gib_each: Array
    operations_each: Array
    """Operations as the kind counts them, a second; infinite: not limited."""
    bytes_per_second_each: Array
    operations_per_second: Array
    """Of the question's operations, of all nodes together."""


@dataclass(frozen=True)
class _Kind:
    """What a volume of a kind may have at most, and what it includes."""

    kind: VolumeKind
    counted: int
    """As so many the kind counts an operation."""
    block_bytes: int
    most_operations: float
    most_bytes_per_second: float

    @classmethod
    def of(cls, kind: VolumeKind, question: OperationsQuestion) -> "_Kind | str":
        if kind.usd_per_gib_month is None:
            return f"the price of {kind.name} volumes is unknown"
        if question.operation.is_small and kind.media == "hdd":
            return NOT_SMALL
        largest = kind.largest_operation_bytes or question.operation.block_bytes
        counted = math.ceil(question.operation.block_bytes / largest)
        operations, throughput = kind.operations, kind.throughput
        most = operations.most or math.inf
        if operations.per_gib is None and operations.usd_each_month is None:
            if operations.included is not None:
                most = min(most, operations.included)
            elif question.operation.is_small or (kind.media != "hdd" and operations.most):
                return NO_OPERATIONS
        rate = throughput.most or math.inf
        sized_or_sold = throughput.per_gib is not None or throughput.usd_each_month is not None
        if throughput.included is not None and not sized_or_sold:
            rate = throughput.included
        if kind.most_bytes_per_operation is not None:
            rate = min(rate, most * kind.most_bytes_per_operation)
        return cls(kind, counted, question.operation.block_bytes, most, rate)

    @property
    def most_each(self) -> float:
        """The most of the question's operations that one volume gives."""
        return min(
            self.most_operations / self.counted, self.most_bytes_per_second / self.block_bytes
        )

    @property
    def most_gib(self) -> float:
        return math.inf if self.kind.most_bytes is None else self.kind.most_bytes / GIB

    def ends_of_purchases(self, rate: float) -> list[float]:
        """With so many volumes nothing needs to be bought of what includes something."""
        operations, throughput = self.kind.operations, self.kind.throughput
        found = []
        if operations.per_gib is not None and operations.least:
            found.append(rate * self.counted / operations.least)
        if operations.usd_each_month is not None and operations.included:
            found.append(rate * self.counted / operations.included)
        if throughput.usd_each_month is not None and throughput.included:
            found.append(rate * self.block_bytes / throughput.included)
        return found


def volume_choices(
    question: OperationsQuestion, catalog: Catalog, kind: VolumeKind, machines: Machines
) -> VolumeChoices | str:
    """The cheapest choice of each machine with volumes of a kind; or why there is none."""
    limits = _Kind.of(kind, question)
    if isinstance(limits, str):
        return limits
    # Machines go across, numbers of volumes and numbers of nodes down.
    counts = np.array(VOLUME_COUNTS, dtype=float)[:, None, None]
    link = _link_operations(question, limits, machines)
    with np.errstate(divide="ignore", invalid="ignore"):
        fewest = np.stack(
            np.broadcast_arrays(
                np.ceil(question.rate / (counts * limits.most_each)),
                np.ceil(question.rate / link)[None, None, :],
                np.ceil(question.data_bytes / (counts * limits.most_gib * GIB * FILL)),
            )
        )
    least = np.maximum(fewest.max(axis=0), question.min_nodes)
    tried = [least] + [
        np.maximum(np.ceil(end / counts), least) for end in limits.ends_of_purchases(question.rate)
    ]
    nodes = np.concatenate(tried, axis=1)
    possible = (
        (nodes <= question.max_nodes)
        & ~(machines.data_volumes[None, None, :] < counts)
        & _can_attach(kind, machines)[None, None, :]
    )
    nodes = np.where(possible, nodes, 1.0)
    bought = _provisioned(question, limits, nodes * counts)
    hours = catalog.billing.hours_per_month
    volumes_usd = nodes * counts * bought.usd_per_month / hours
    machine_usd = machines.usd_per_hour + machines.link_usd_per_hour
    total = nodes * machine_usd[None, None, :] + volumes_usd
    total = np.where(possible & (bought.gib <= limits.most_gib), total, np.inf)
    total = np.where(np.isnan(total), np.inf, total)
    shape = total.shape
    best = total.reshape(-1, shape[2]).argmin(axis=0)
    each = np.arange(shape[2])

    def of_best(values: Array) -> Array:
        return np.asarray(np.broadcast_to(values, shape).reshape(-1, shape[2])[best, each])

    fewest_of_best = np.stack(
        [of_best(np.broadcast_to(one, (shape[0], 1, shape[2]))) for one in fewest]
    )
    count, picked = of_best(counts), of_best(nodes)
    gives = np.minimum(
        picked
        * count
        * np.minimum(
            of_best(bought.operations) / limits.counted,
            of_best(bought.bytes_per_second) / limits.block_bytes,
        ),
        picked * link,
    )
    return VolumeChoices(
        usd_per_hour=of_best(total),
        volumes_usd_per_hour=of_best(volumes_usd),
        nodes=picked,
        fewest=fewest_of_best,
        count=count,
        gib_each=of_best(bought.gib),
        operations_each=of_best(bought.operations),
        bytes_per_second_each=of_best(bought.bytes_per_second),
        operations_per_second=gives,
    )


@dataclass(frozen=True)
class _Volume:
    """One of so many volumes: its size, what it gives, and its price."""

    gib: Array
    operations: Array
    bytes_per_second: Array
    usd_per_month: Array


def _provisioned(question: OperationsQuestion, limits: _Kind, volumes: Array) -> _Volume:
    """The smallest volumes that together do all: sized for the data, or for their operations."""
    kind, operations, throughput = limits.kind, limits.kind.operations, limits.kind.throughput
    wanted = question.rate * limits.counted / volumes
    rate = question.rate * limits.block_bytes / volumes
    gib = np.maximum(question.data_bytes / volumes / (GIB * FILL), (kind.least_bytes or 1) / GIB)
    included = operations.included or 0.0
    faster = np.maximum(rate - (throughput.included or 0.0), 0.0)
    if kind.most_bytes_per_operation is not None:
        # Throughput beyond what is included needs operations, too.
        wanted = np.where(
            faster > 0, np.maximum(wanted, rate / kind.most_bytes_per_operation), wanted
        )
    usd = np.zeros_like(volumes)
    has, carries = np.full_like(volumes, np.inf), np.full_like(volumes, np.inf)
    if operations.per_gib is not None:
        beyond = wanted > (operations.least or 0.0)
        gib = np.where(beyond, np.maximum(gib, wanted / operations.per_gib), gib)
    if throughput.per_gib is not None:
        gib = np.maximum(gib, rate / throughput.per_gib)
    if operations.usd_each_month is not None:
        more = np.ceil(np.maximum(wanted - included, 0.0))
        if kind.most_iops_per_gib is not None:
            gib = np.where(
                more > 0, np.maximum(gib, (included + more) / kind.most_iops_per_gib), gib
            )
        usd = usd + more * operations.usd_each_month
        has = included + more
    elif operations.included is not None:
        has = np.full_like(volumes, included)
    if throughput.usd_each_month is not None:
        more = np.ceil(faster / MIB) * MIB
        usd = usd + more * throughput.usd_each_month
        carries = (throughput.included or 0.0) + more
    elif throughput.included is not None:
        carries = np.full_like(volumes, throughput.included)
    gib = np.ceil(gib)
    if operations.per_gib is not None:
        has = np.minimum(
            np.maximum(operations.per_gib * gib, operations.least or 0.0), limits.most_operations
        )
    if throughput.per_gib is not None:
        carries = throughput.per_gib * gib
    carries = np.minimum(carries, limits.most_bytes_per_second)
    usd = usd + gib * (kind.usd_per_gib_month or 0.0)
    return _Volume(gib, has, carries, usd)


def _link_operations(question: OperationsQuestion, limits: _Kind, machines: Machines) -> Array:
    """The most operations a second that a node's link to its volumes carries; 0 is unknown."""
    links = [machine.offer.volume_link for machine in machines]
    rate = np.array([each.baseline_bytes_per_second or 0.0 for each in links])
    number = np.array([each.baseline_iops or math.nan for each in links])
    unknown = 0.0 if question.operation.is_small else math.inf
    return np.minimum(
        rate / limits.block_bytes, np.where(np.isnan(number), unknown, number / limits.counted)
    )


def _can_attach(kind: VolumeKind, machines: Machines) -> Array:
    kinds = (machine.offer.volume_link.volume_kinds for machine in machines)
    return np.array([some is None or kind.name in some for some in kinds])
