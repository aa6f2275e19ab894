"""Measurements and records given to a command: found, and read with progress, each once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tonnage.base import core, formatting
from tonnage.base.records import (
    ClusterMeasurement,
    Measurement,
    RecordError,
    ReductionRecord,
    RunRecord,
)
from tonnage.base.records.find_measurements import (
    find_measurements,
    load_cluster_measurements,
    load_launches,
    load_measurements,
    load_runs,
    measurement_bytes,
)
from tonnage.base.records.launch import Launch
from tonnage.cli.options.validate import usage_errors


@contextmanager
def _readable(path: Path, hint: str = "") -> Iterator[None]:
    with usage_errors(OSError, prefix=f"{path}: "), usage_errors(RecordError, hint=hint):
        yield


def measurement_files(paths: list[Path]) -> list[Path]:
    """Files of measurements, each once, under whatever names they were given."""
    found: dict[Path, Path] = {}
    for path in paths:
        with _readable(path, "; use results of tonnage measure or tonnage import"):
            for place in find_measurements(path):
                found.setdefault(place.resolve(), place)
    return list(found.values())


@dataclass(frozen=True)
class GivenRecords:
    """What paths hold besides measurements, each once."""

    runs: list[RunRecord | ReductionRecord]
    launches: list[Launch]
    measured: list[Path]
    """The paths with measurements, or with nothing else."""


def load_records(paths: list[Path]) -> GivenRecords:
    """Records of finished jobs and of launches; and the paths with measurements."""
    jobs: dict[tuple[str, str], RunRecord | ReductionRecord] = {}
    launches: dict[tuple[str, str], Launch] = {}
    measured: list[Path] = []
    for path in paths:
        with _readable(path):
            runs, launched = load_runs(path), load_launches(path)
            has_none = not runs and not launched
            if has_none or (path.is_dir() and _has_measurements(path)):
                measured.append(path)
        jobs |= {(each.job, each.began_at): each for each in runs}
        launches |= {(each.name, each.began_at): each for each in launched}
    return GivenRecords([*jobs.values()], [*launches.values()], measured)


def _has_measurements(path: Path) -> bool:
    try:
        return bool(find_measurements(path))
    except RecordError:
        return False


def load_clusters(paths: list[Path]) -> list[ClusterMeasurement]:
    """Measurements of clusters, each once, under whatever names they were given."""
    found: dict[str, ClusterMeasurement] = {}
    for path in paths:
        with _readable(path):
            found |= {each.id: each for each in load_cluster_measurements(path)}
    return list(found.values())


def contains(paths: Iterable[Path]) -> str:
    """The paths and the verb: ``a contains``, ``a and b contain``."""
    names = [str(each) for each in paths]
    return f"{formatting.listing(names)} {'contains' if len(names) == 1 else 'contain'}"


def load_all(files: list[Path]) -> list[Measurement]:
    """The measurements in these files."""
    measurements: list[Measurement] = []
    holders: dict[str, Path] = {}
    done = 0
    with core.Progress("reading", sum(map(measurement_bytes, files))) as progress:
        for place in files:
            with _readable(place):
                of_place = load_measurements(place)
            for each in of_place:
                if each.id in holders:
                    raise core.UsageError(
                        f"{place} and {holders[each.id]} both contain measurement {each.id}; pass "
                        "only one"
                    )
                holders[each.id] = place
            measurements += of_place
            done += measurement_bytes(place)
            progress(done)
    if not measurements:
        raise core.UsageError(
            f"{contains(files)} no finished measurement of a machine; use results of tonnage "
            "measure or tonnage import"
        )
    return measurements
