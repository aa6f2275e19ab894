"""Find measurements in files and directories, also interrupted ones.

A measurement's directory holds ``begun.json``, the measurement without its trials, and a
``trial-*.json`` for each finished trial; ``measurement.json`` is written at the end. A cluster's
holds such a directory for each node; ``fleet.json`` has the measurements of all nodes.
"""

from pathlib import Path

from msgspec import structs

from tonnage.base.records.base import Record, RecordError
from tonnage.base.records.cluster_measurement import (
    CLUSTER_BEGUN_FILE,
    CLUSTER_FILE,
    ClusterMeasurement,
)
from tonnage.base.records.launch import Launch
from tonnage.base.records.measurement import Measurement, Trial
from tonnage.base.records.reduction import ReductionRecord
from tonnage.base.records.run import RunRecord

WHOLE, BEGUN, TRIALS = "measurement.json", "begun.json", "trial-*.json"
OPENING_BYTES = 256  # A record's schema comes first, so this much of a file shows it


def load_measurement(directory: Path) -> Measurement:
    """Load a directory's measurement, with its finished trials."""
    whole = directory / WHOLE
    if whole.exists():
        return Measurement.read(whole)
    begun = Measurement.read(directory / BEGUN)
    trials = [Trial.read(path) for path in sorted(directory.glob(TRIALS))]
    return structs.replace(begun, trials=trials)


def find_measurements(path: Path) -> list[Path]:
    """List a path's measurements: itself, or files and directories below it, at any depth.

    Other files of a directory are skipped, unless they are called `WHOLE`.
    """
    if not path.is_dir():
        path.stat()
        return [path]
    found = []
    for file in sorted(each for each in path.rglob("*.json") if each.is_file()):
        if file.name == BEGUN:
            if not file.with_name(WHOLE).exists():
                found.append(file.parent)
        elif file.name == WHOLE or has_schema(file, Measurement) or _has_no_node_directories(file):
            found.append(file)
    if not found:
        raise RecordError(f"{path} contains no measurement")
    return found


def _has_no_node_directories(file: Path) -> bool:
    """Whether a cluster's measurement has no node directories next to it."""
    return has_schema(file, ClusterMeasurement) and not any(file.parent.glob(f"*/{BEGUN}"))


def load_measurements(place: Path) -> list[Measurement]:
    """Load the measurements of one of `find_measurements`: several of a cluster."""
    if place.is_dir():
        return [load_measurement(place)]
    if has_schema(place, ClusterMeasurement):
        return ClusterMeasurement.read(place).measurements
    return [Measurement.read(place)]


def load_cluster_measurements(path: Path) -> list[ClusterMeasurement]:
    """Load a file, or a directory's, at any depth; an interrupted one has no nodes."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    of_fleets = [each for each in files if each.is_file() and has_schema(each, ClusterMeasurement)]
    return [
        ClusterMeasurement.read(each)
        for each in of_fleets
        if each.name != CLUSTER_BEGUN_FILE or not each.with_name(CLUSTER_FILE).exists()
    ]


def load_runs(path: Path) -> list[RunRecord | ReductionRecord]:
    """Load records of finished jobs: a file, or those of a directory, at any depth."""
    found: list[RunRecord | ReductionRecord] = []
    for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
        for kind in (RunRecord, ReductionRecord):
            if file.is_file() and has_schema(file, kind):
                found.append(kind.read(file))
    return found


def load_launches(path: Path) -> list[Launch]:
    """Load records of launches: a file, or those of a directory, at any depth."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    return [Launch.read(file) for file in files if has_schema(file, Launch)]


def measurement_bytes(place: Path) -> int:
    files = place.glob("*.json") if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files)


def has_schema(file: Path, kind: type[Record]) -> bool:
    if not file.is_file():  # Opening a pipe would wait.
        return False
    with file.open("rb") as opened:
        return f'"{kind.SCHEMA}"'.encode() in opened.read(OPENING_BYTES)
