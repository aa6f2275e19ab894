"""How fast the physical cores of a machine type sort, as others measured it.

A hyper-thread is not a core: what both threads of a core sort together counts as the core's. A type
that nobody measured is as fast as the median of its family (m7i of m7i.large).
"""

import re
import statistics
from functools import cache

import msgspec

from tonnage.catalog.published.rows import key_of, read

SOURCE = "SpareCores/sc-inspector-data@804d3c7, 2026-08-22, PassMark's sorting"

OF_FAMILY = "the median of its family, as the type itself was not measured"


class CoreSpeed(msgspec.Struct, frozen=True):
    """Thousands of strings that a physical core sorts in a second."""

    sorting: float
    source: str


def core_speed(provider: str, kind: str) -> CoreSpeed | None:
    name, kind = key_of(provider, kind)
    own = _by_type().get((name, kind))
    if own is not None:
        return CoreSpeed(own, SOURCE)
    family = _by_family().get((name, family_of(name, kind)))
    return None if family is None else CoreSpeed(family, f"{OF_FAMILY}; {SOURCE}")


def family_of(provider: str, kind: str) -> str:
    """Of m7i.large m7i, of n2-standard-8 n2, of Standard_D8ds_v5 dds_v5."""
    provider, kind = key_of(provider, kind)
    if provider == "azure":
        return re.sub(r"\d+(-\d+)?", "", kind, count=1)
    return re.split(r"[.-]", kind, maxsplit=1)[0]


@cache
def _by_type() -> dict[tuple[str, str], float]:
    return {
        key_of(row["provider"], row["type"]): float(row["sorting"]) / int(row["cores"])
        for row in read("core_speeds.csv")
    }


@cache
def _by_family() -> dict[tuple[str, str], float]:
    families: dict[tuple[str, str], list[float]] = {}
    for (provider, kind), speed in _by_type().items():
        families.setdefault((provider, family_of(provider, kind)), []).append(speed)
    return {family: statistics.median(speeds) for family, speeds in families.items()}
