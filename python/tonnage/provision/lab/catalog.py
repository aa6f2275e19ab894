"""Write a lab's machines as a catalog, so that plans can use them."""

import csv
import datetime
import io
import platform
from pathlib import Path

from tonnage.base.records import write_atomically
from tonnage.catalog.providers.lab import SCHEMA as LAB
from tonnage.provision.lab.config import MB, LabConfig, MachineType

ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}


def write(directory: Path, lab: LabConfig) -> Path:
    text = io.StringIO()
    rows = csv.DictWriter(text, (*LAB.columns, *LAB.optional), lineterminator="\n")
    rows.writeheader()
    rows.writerows(_row(lab.name, machine) for machine in lab.machines)
    file = catalog_file(directory, lab.name)
    write_atomically(file, text.getvalue().encode())
    return file


def catalog_file(directory: Path, lab: str) -> Path:
    """The path of a lab's catalog, whose name is the catalog's."""
    return directory / f"{lab}.csv"


def _row(lab: str, machine: MachineType) -> dict[str, object]:
    disks = machine.disks
    link = machine.link_bytes_per_second
    return {
        "machine": machine.type,
        "cores": _blank(machine.cpus),
        "memory_bytes": "" if machine.memory_bytes is None else machine.memory_bytes,
        "link_mb_per_s": _blank(None if link is None else link / MB),
        "disks": len(disks),
        "disk_bytes_total": sum(disk.size_bytes for disk in disks),
        "disks_alike": len({disk.size_bytes for disk in disks}) <= 1,
        "disks_read_mb_per_s": _total([disk.read_bytes_per_second for disk in disks]),
        "disks_write_mb_per_s": _total([disk.write_bytes_per_second for disk in disks]),
        "arch": ARCHITECTURES.get(platform.machine(), ""),
        "price_usd_per_hour": f"{machine.price_usd_per_hour:.12g}",
        "lab": lab,
        "date": datetime.date.today().isoformat(),
        "source": f"the file of lab {lab}",
    }


def _blank(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"


def _total(rates: list[int | None]) -> str:
    known = [rate for rate in rates if rate is not None]
    return _blank(sum(known) / MB if known and len(known) == len(rates) else None)
