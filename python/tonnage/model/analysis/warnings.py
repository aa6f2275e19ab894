"""Warnings: reasons to distrust figures, such as caches, other users, or unlike machines.

**Write-back caches of hosts.** A durable write counts after it is flushed. Flash and disks do not
flush in less than `FLUSH_SECONDS`, nor complete a durable write faster than a read of the same size
at the same concurrency. If either happens, memory acknowledged the write: the host's, or the
device's own, which may be protected. A guest cannot tell whether the data would survive a loss of
power.
"""

from collections.abc import Mapping, Sequence

from tonnage.base import formatting
from tonnage.base.records import ClusterMeasurement, Environment, Measurement
from tonnage.model.analysis.concurrency import latency
from tonnage.model.analysis.estimates import medians_of, values_of
from tonnage.model.analysis.grouping import Kinds, OperationKind, Sample, by_instance
from tonnage.model.study_findings import HIGH_SHARE, disk_warnings

FLUSH_SECONDS = 100e-6
"""A flash device needs some hundred microseconds for a flush, a disk milliseconds."""
SYNCHRONOUS = {"1", "sync", "dsync", "osync"}
"""Values of fio's ``sync`` with which each write is durable when it completes."""
NAMED = 3  # Number of instances that a warning names; beyond, it gives their number


def measurement_warnings(
    measurements: Sequence[Measurement], kinds: Kinds, names: Mapping[OperationKind, str]
) -> list[str]:
    phases = [trial.phase for each in measurements for trial in each.trials]
    return [
        *_builds(measurements),
        *_yielding(measurements),
        *_machines(measurements),
        *_cached(kinds, names),
        *_write_back(kinds, names),
        *_busy_cores(measurements),
        *disk_warnings(phases),
        *_without_results(measurements),
    ]


def missing_node_warnings(clusters: Sequence[ClusterMeasurement]) -> list[str]:
    found = []
    for cluster in clusters:
        if not cluster.nodes:
            found.append(f"{cluster.id} was interrupted, so its missing nodes are unknown.")
        for row in cluster.missing:
            done = len(row.measurement.trials) if row.measurement else 0
            before = (
                f" The figures include {formatting.several(done, 'trial')} of this node."
                if done
                else ""
            )
            found.append(
                formatting.sentence(f"Node {row.node} is missing in {cluster.id}: {row.why}")
                + before
            )
    return found


def _builds(measurements: Sequence[Measurement]) -> list[str]:
    found = []
    debug = [each.id for each in measurements if each.environment and each.environment.debug_build]
    if debug:
        found.append(
            "Measured with a debug build, whose speeds are meaningless: "
            f"{_name_list(debug)}. Build with "
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
        f"Measured at low CPU priority (nice): {_name_list(nice)}. Run without nice; for Ray, set "
        "RAY_worker_niceness=0."
    ]


def _machines(measurements: Sequence[Measurement]) -> list[str]:
    """A warning if machines differ in hardware or software, which explains different figures."""
    described = [
        {
            "cores": each.environment.cores,
            "CPU": each.environment.cpu_model,
            # Firmware reserves a little of it, not always the same amount.
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
    return [f"The machines differ in {formatting.listing(differ)}."]


def _cached(kinds: Kinds, names: Mapping[OperationKind, str]) -> list[str]:
    """Figures of caches, one warning for each tool: a sweep has hundreds of such figures."""
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
            f"{formatting.count(figures)} of {tool}'s {formatting.several(total, 'figure')} "
            "almost certainly come from a cache, so they are shown separately: "
            f"{_name_list([names[kind] for kind in cached], '; ')}. Reason for the first: {why}."
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
            why = f"is less than {limit} (minimum {least}), faster than flash can flush"
        elif reads:
            why = "is less than that of reads of the same size at the same concurrency"
        else:
            continue
        found.append(
            f"{names[kind]} on {_name_list(quick or reads)}: the p50 of durable writes {why}. That "
            "suggests a write-back cache in the host; durability cannot be confirmed from inside a "
            "guest."
        )
    return found


def is_durable(sample: Sample) -> bool:
    """Whether each operation of a sample is a durable write, or a flush."""
    reading = sample.reading
    if reading.operation == "fsync":
        return True
    if not reading.operation.endswith("write"):
        return False
    options = reading.details.get("options")
    synchronous = isinstance(options, dict) and str(options.get("sync")) in SYNCHRONOUS
    return reading.details.get("durable_one_in") == 1 or synchronous


def _quicker_than_reads(kind: OperationKind, durable: Sequence[Sample], kinds: Kinds) -> list[str]:
    """The instances whose median write is faster than their read at the same concurrency."""
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


def _busy_cores(measurements: Sequence[Measurement]) -> list[str]:
    taken: dict[str, list[str]] = {}
    for measurement in measurements:
        environment = measurement.environment
        if environment is None:
            continue
        foreign, stolen, passed = _core_seconds(measurement, environment)
        for seconds, who in ((foreign, "other processes used"), (stolen, "the hypervisor stole")):
            if seconds > HIGH_SHARE * passed > 0:
                taken.setdefault(who, []).append(environment.host)
    return [
        f"During the measurement, {who} more than {formatting.percent(HIGH_SHARE)} of the CPU "
        f"time of {_name_list(hosts)}."
        for who, hosts in taken.items()
    ]


def _core_seconds(measurement: Measurement, environment: Environment) -> tuple[float, float, float]:
    watched = [trial for trial in measurement.trials if trial.activity]
    foreign = sum(trial.activity.foreign_cpu_seconds for trial in watched if trial.activity)
    stolen = sum(trial.activity.stolen_cpu_seconds for trial in watched if trial.activity)
    return foreign, stolen, environment.cores * sum(trial.phase.seconds for trial in watched)


def _without_results(measurements: Sequence[Measurement]) -> list[str]:
    silent = [each.id for each in measurements if not each.readings]
    if not silent:
        return []
    return [f"These measurements have no results and are not shown: {_name_list(silent)}."]


def _name_list(names: Sequence[str] | Mapping[str, object], between: str = ", ") -> str:
    several = list(dict.fromkeys(names))
    if len(several) <= NAMED:
        return formatting.listing(several) if between == ", " else between.join(several)
    return f"{between.join(several[:NAMED])} ({formatting.count(len(several))} in total)"
