"""What makes figures say less than they seem to: caches, other users, machines that are not alike.

**A host's write-back cache.** A write is durable when it is flushed before it counts. Flash and
disks do not flush in less than `FLUSH_SECONDS`, nor make a write durable in less time than they
take to read a block of the same size with as many outstanding. Where either is seen, memory says
that it is done: the host's, or the device's own, which may be protected. Whether what was written
would outlive a loss of power cannot be told from inside the guest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tonnage.base import formatting
from tonnage.base.records import ClusterMeasurement, Environment, Measurement
from tonnage.model.analysis.concurrency import latency
from tonnage.model.analysis.estimates import medians_of, values_of
from tonnage.model.analysis.grouping import OperationKind, Sample, by_instance
from tonnage.model.study_findings import HIGH_SHARE, disk_warnings

FLUSH_SECONDS = 100e-6
"""A flash device's own flush takes some hundred microseconds, a disk's milliseconds."""
SYNCHRONOUS = {"1", "sync", "dsync", "osync"}
"""fio's ``sync`` where each write is durable before it is done."""
NAMED = 3
"""Instances that a warning names; of more it says how many."""

Kinds = Mapping[OperationKind, Sequence[Sample]]


def measurement_warnings(
    measurements: Sequence[Measurement], kinds: Kinds, names: Mapping[OperationKind, str]
) -> list[str]:
    """Warnings, each in a sentence or two."""
    phases = [trial.phase for each in measurements for trial in each.trials]
    return [
        *_builds(measurements),
        *_yielding(measurements),
        *_machines(measurements),
        *_cached(kinds, names),
        *_write_back(kinds, names),
        *_others(measurements),
        *disk_warnings(phases),
        *_silent(measurements),
    ]


def missing_node_warnings(fleets: Sequence[ClusterMeasurement]) -> list[str]:
    """The machines of fleets that did not measure all, with why, each in a sentence or two."""
    found = []
    for fleet in fleets:
        if not fleet.nodes:
            found.append(f"{fleet.id} was cut short: who is missing of it is not known.")
        for row in fleet.missing:
            done = len(row.measurement.trials) if row.measurement else 0
            before = f" The figures count its {formatting.several(done, 'trial')}." if done else ""
            found.append(
                formatting.sentence(f"Missing of {fleet.id}: {row.node}: {row.why}") + before
            )
    return found


def _builds(measurements: Sequence[Measurement]) -> list[str]:
    found = []
    debug = [each.id for each in measurements if each.environment and each.environment.debug_build]
    if debug:
        found.append(
            f"Measured with a debug build, whose speeds say nothing: {_named(debug)}. Build with "
            "--release."
        )
    versions = {
        each.environment.versions.get("tonnage", "unknown")
        for each in measurements
        if each.environment
    }
    if len(versions) > 1:
        found.append(
            f"Measured with several versions of Tonnage: {formatting.listing(sorted(versions))}."
        )
    return found


def _yielding(measurements: Sequence[Measurement]) -> list[str]:
    nice = [
        each.id
        for each in measurements
        if each.environment and (each.environment.niceness or 0) > 0
    ]
    if not nice:
        return []
    return [
        f"Measured at a low priority, so that all else on the machine went first: {_named(nice)}. "
        "Run it without nice, and Ray with RAY_worker_niceness=0."
    ]


def _machines(measurements: Sequence[Measurement]) -> list[str]:
    """Whether the machines of a fleet are of a kind; if not, it is no wonder that they differ."""
    described = [
        {
            "cores": each.environment.cores,
            "CPU": each.environment.cpu_model,
            # Firmware takes a little of it, not always as much.
            "memory": round(each.environment.memory_bytes / (1 << 28)),
            "kernel": each.environment.kernel,
            "type": each.environment.machine_type,
        }
        for each in measurements
        if each.environment
    ]
    differ = [
        name
        for name in (described[0] if described else {})
        if len({each[name] for each in described}) > 1
    ]
    if not differ:
        return []
    return [f"The machines are not alike: they differ in {formatting.listing(differ)}."]


def _cached(kinds: Kinds, names: Mapping[OperationKind, str]) -> list[str]:
    """What caches gave, once for each tool: a sweep of sizes has hundreds of such figures."""
    found = []
    for tool in dict.fromkeys(kind.tool for kind in kinds):
        own = {kind: samples for kind, samples in kinds.items() if kind.tool == tool}
        cached = [kind for kind in own if kind.cached]
        if not cached:
            continue
        figures = sum(len(own[kind]) for kind in cached)
        total = sum(map(len, own.values()))
        why = own[cached[0]][0].reading.cached
        found.append(
            f"Only a cache can have given {formatting.count(figures)} of {tool}'s "
            f"{formatting.several(total, 'figure')}, which are kept apart from what devices gave: "
            f"{_named([names[kind] for kind in cached], '; ')}. The first, because: {why}."
        )
    return found


def _write_back(kinds: Kinds, names: Mapping[OperationKind, str]) -> list[str]:
    found = []
    for kind, samples in kinds.items():
        durable = [each for each in samples if is_durable(each)]
        seconds = medians_of(values_of(durable, latency("p50")))
        quick = [name for name, value in seconds.items() if value < FLUSH_SECONDS]
        reads = [] if quick else _quicker_than_reads(kind, durable, kinds)
        if quick:
            least = formatting.latency(min(seconds[name] for name in quick))
            limit = formatting.latency(FLUSH_SECONDS)
            why = f"took less than {limit} ({least} at the least), in which flash does not flush"
        elif reads:
            why = "took less time than half of the reads of as many bytes, with as many outstanding"
        else:
            continue
        found.append(
            f"{names[kind]} on {_named(quick or reads)}: half of the durable writes {why}. That "
            "suggests a write-back cache in the host: durability cannot be confirmed from inside a "
            "guest."
        )
    return found


def is_durable(sample: Sample) -> bool:
    """Whether each operation of a sample is a write, or a flush, that lasts when it is done."""
    reading = sample.reading
    if reading.operation == "fsync":
        return True
    if not reading.operation.endswith("write"):
        return False
    options = reading.details.get("options")
    synchronous = isinstance(options, dict) and str(options.get("sync")) in SYNCHRONOUS
    return reading.details.get("durable_one_in") == 1 or synchronous


def _quicker_than_reads(kind: OperationKind, durable: Sequence[Sample], kinds: Kinds) -> list[str]:
    """The instances on which, with as many outstanding, the median write is before the read's."""
    if not kind.operation.endswith("write"):
        return []
    reads = [
        sample
        for other, samples in kinds.items()
        for sample in samples
        if other.operation == kind.operation.replace("write", "read")
        and (other.tool, other.block_bytes, other.direct, other.layout, other.place, other.cached)
        == (kind.tool, kind.block_bytes, kind.direct, kind.layout, kind.place, False)
    ]
    found = []
    for name, own in by_instance(durable).items():
        for number in {each.reading.concurrency for each in own}:
            writes, compared = (
                medians_of(
                    values_of(
                        [
                            each
                            for each in side
                            if each.instance == name and each.reading.concurrency == number
                        ],
                        latency("p50"),
                    )
                ).get(name)
                for side in (own, reads)
            )
            if writes is not None and compared is not None and writes < compared:
                found.append(name)
                break
    return found


def _others(measurements: Sequence[Measurement]) -> list[str]:
    """Who else used the cores of a machine while it was measured."""
    taken: dict[str, list[str]] = {}
    for measurement in measurements:
        environment = measurement.environment
        if environment is None:
            continue
        foreign, stolen, passed = _core_seconds(measurement, environment)
        for seconds, who in ((foreign, "something else used"), (stolen, "the host took away")):
            if seconds > HIGH_SHARE * passed > 0:
                taken.setdefault(who, []).append(environment.host)
    return [
        f"While it was measured, {who} more than {formatting.percent(HIGH_SHARE)} of the core seconds "
        f"of {_named(hosts)}."
        for who, hosts in taken.items()
    ]


def _core_seconds(measurement: Measurement, environment: Environment) -> tuple[float, float, float]:
    """Core seconds that others used, that were stolen, and that passed, during trials."""
    watched = [trial for trial in measurement.trials if trial.beside]
    foreign = sum(trial.beside.foreign_cpu_seconds for trial in watched if trial.beside)
    stolen = sum(trial.beside.stolen_cpu_seconds for trial in watched if trial.beside)
    return foreign, stolen, environment.cores * sum(trial.phase.seconds for trial in watched)


def _silent(measurements: Sequence[Measurement]) -> list[str]:
    """Measurements of which the page has nothing to show."""
    silent = [each.id for each in measurements if not each.readings]
    if not silent:
        return []
    return [f"Without a reading, and so not shown: {_named(silent)}."]


def _named(names: Sequence[str] | Mapping[str, object], between: str = ", ") -> str:
    """Names, or some of them and how many there are."""
    several = list(dict.fromkeys(names))
    if len(several) <= NAMED:
        return formatting.listing(several) if between == ", " else between.join(several)
    return f"{between.join(several[:NAMED])} ({formatting.count(len(several))} in all)"
