"""Times and costs of many machines of one shape, for many fleet sizes, or in many draws.

What is computed is ``work``: node-seconds, that is seconds times nodes, since of N nodes each has
1/N of the job. It broadcasts: machines down a column and fleet sizes along a row for a search,
pairs of both for candidates, and a row of those for each draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tonnage.artifacts.profile import Law
from tonnage.catalog import Billing
from tonnage.plan.shapes import Shape, Term, Thing

Array = npt.NDArray[Any]
Rate = Callable[[Law], Array]
Charged = Literal["seconds", "hours"]


def term_work(
    term: Term,
    shape: Shape,
    size: float,
    rate: Rate,
    nodes: Array,
    figures: Mapping[Thing, Array],
    dtype: npt.DTypeLike = np.float64,
) -> Array:
    """Node-seconds of one term.

    Args:
        term: The term.
        shape: Its shape.
        size: Bytes of input.
        rate: What a law's slowest node carries, broadcastable with ``nodes``.
        nodes: Fleet sizes.
        figures: What is advertised of the machines.
        dtype: Of the large arrays.
    """
    volumes = shape.volumes if term.thing == "volumes" else None
    attached = volumes.bytes_per_second(nodes) if volumes else None
    measured: Any = 0.0
    shares: Any = 0.0
    for part in term.parts:
        carried = rate(part.law)
        if part.curve:
            carried = carried * part.curve.share(nodes)
        if part.advertised:
            shares = shares + size * part.per_byte / carried
        elif attached is not None:
            measured = measured + size * part.per_byte / np.minimum(carried, attached)
        else:
            measured = measured + size * part.per_byte / carried
    whole = np.asarray(measured, dtype=dtype)
    if any(part.advertised for part in term.parts):
        slowness = 1 / figures["network" if term.thing == "object storage" else term.thing]
        if attached is not None:
            slowness = np.maximum(slowness, (1 / attached).astype(dtype))
        # Everything so far is a row or a column; this alone is as large as their product.
        product = slowness * np.asarray(shares, dtype=dtype)
        whole = product + whole if np.ndim(measured) else product
    return np.asarray(whole)


def work(
    shape: Shape,
    size: float,
    rate: Rate,
    nodes: Array,
    figures: Mapping[Thing, Array],
    dtype: npt.DTypeLike = np.float64,
) -> Array:
    """Node-seconds of the whole job: phases add up, each as long as its longest term."""
    total: Any = None
    for _, terms in shape.phases:
        longest: Any = None
        for term in terms:
            found = term_work(term, shape, size, rate, nodes, figures, dtype)
            longest = found if longest is None else np.maximum(longest, found)
        if longest is not None:
            total = longest if total is None else total + longest
    return np.zeros_like(nodes, dtype=dtype) if total is None else np.asarray(total)


def usd(
    work: Array,
    nodes: Array,
    machine_usd_per_hour: Array,
    volume_usd_per_hour: Array | float,
    requests_usd: float,
    billing: Billing,
    charged: Charged,
) -> Array:
    """What so many node-seconds cost.

    By the second, machines cost the provider's minimum at least; where the provider bills begun
    hours that is not counted, unless ``charged`` says hours. Volumes are billed by the second.
    """
    if charged == "hours":
        machines = np.ceil(work / nodes / 3600) * (nodes * 3600)
    elif billing.granularity_seconds < 3600:
        machines = np.maximum(work, (nodes * billing.least_seconds).astype(work.dtype))
    else:
        machines = work
    if isinstance(volume_usd_per_hour, float) and volume_usd_per_hour == 0:
        found = machines * (machine_usd_per_hour / 3600)
    elif machines is work:
        found = work * ((machine_usd_per_hour + volume_usd_per_hour) / 3600)
    else:
        found = machines * (machine_usd_per_hour / 3600) + work * (volume_usd_per_hour / 3600)
    if requests_usd:
        found = found + np.asarray(requests_usd, dtype=work.dtype)
    return np.asarray(found)
