"""Read the tables, and the key under which they have a machine type."""

import csv
from collections.abc import Iterator
from pathlib import Path

TABLES = Path(__file__).parent / "tables"
Key = tuple[str, str]


def key_of(provider: str, kind: str) -> Key:
    """The provider and the type's name, in whichever of Azure's spellings it is."""
    if provider == "azure":
        return provider, kind.lower().removeprefix("standard_")
    return provider, kind


def read(name: str) -> Iterator[dict[str, str]]:
    with (TABLES / name).open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        header = next(lines)
        for cells in lines:
            yield dict(zip(header, cells, strict=True))


def number(cell: str, unit: float = 1) -> float | None:
    return float(cell) * unit if cell else None
