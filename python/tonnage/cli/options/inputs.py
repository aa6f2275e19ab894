"""Measurements that a command is given: found, and read with progress; none of them twice."""

from __future__ import annotations

from pathlib import Path

from tonnage.base import core, formatting
from tonnage.base.records import (
    ClusterMeasurement,
    Measurement,
    RecordError,
    ReductionRecord,
    RunRecord,
)
from tonnage.base.records.discovery import (
    find_measurements,
    load_cluster_measurements,
    load_measurements,
    load_runs,
    measurement_bytes,
)


def measured_places(paths: list[Path]) -> list[Path]:
    """Where measurements are, each once, under whatever names it was given."""
    found: dict[Path, Path] = {}
    for path in paths:
        try:
            for place in find_measurements(path):
                found.setdefault(place.resolve(), place)
        except RecordError as why:
            raise core.UsageError(f"{why}: give what tonnage measure or import wrote") from None
        except OSError as why:
            raise core.UsageError(f"{path}: {why.strerror}") from None
    return list(found.values())


def runs_among(paths: list[Path]) -> tuple[list[RunRecord | ReductionRecord], list[Path]]:
    """Records of finished jobs, each once, and the paths that hold measurements."""
    found: dict[tuple[str, str], RunRecord | ReductionRecord] = {}
    others: list[Path] = []
    for path in paths:
        try:
            runs = load_runs(path)
            measured = not runs or (path.is_dir() and _has_measurements(path))
        except RecordError as why:
            raise core.UsageError(str(why)) from None
        except OSError as why:
            raise core.UsageError(f"{path}: {why.strerror}") from None
        found |= {(each.job, each.began_at): each for each in runs}
        others += [path] if measured else []
    return list(found.values()), others


def _has_measurements(path: Path) -> bool:
    try:
        return bool(find_measurements(path))
    except RecordError:
        return False


def read_fleets(paths: list[Path]) -> list[ClusterMeasurement]:
    """How it went on the machines of fleets, each fleet once, under whatever names it was given."""
    found: dict[str, ClusterMeasurement] = {}
    for path in paths:
        try:
            found |= {each.id: each for each in load_cluster_measurements(path)}
        except RecordError as why:
            raise core.UsageError(str(why)) from None
        except OSError as why:
            raise core.UsageError(f"{path}: {why.strerror}") from None
    return list(found.values())


def read_all(found: list[Path]) -> list[Measurement]:
    """The measurements, none of them twice.

    Raises:
        UsageError: One is there twice, or there is none; or they cannot be read.
    """
    measurements: list[Measurement] = []
    holders: dict[str, Path] = {}
    done = 0
    with core.Progress("reading", sum(map(measurement_bytes, found))) as progress:
        for place in found:
            try:
                of_place = load_measurements(place)
            except RecordError as why:
                raise core.UsageError(str(why)) from None
            except OSError as why:
                raise core.UsageError(f"{place}: {why.strerror}") from None
            for each in of_place:
                if each.id in holders:
                    raise core.UsageError(
                        f"{place} and {holders[each.id]} are both {each.id}: give it once"
                    )
                holders[each.id] = place
            measurements += of_place
            done += measurement_bytes(place)
            progress(done)
    if not measurements:
        raise core.UsageError(
            f"{formatting.listing(map(str, found))}: nothing was measured there, by any machine"
        )
    return measurements
