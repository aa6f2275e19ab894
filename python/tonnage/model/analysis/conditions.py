"""Conditions of a measurement: how and where it was made, as far as that distinguishes it.

Conditions come from a metric's details, its trial's suite and its measurement's settings; results
do not count. A location is the device and the directory. Machines of a cluster may name the same
device differently, so locations only count where one machine was measured in several.
"""

from collections.abc import Iterable, Sequence

from tonnage.base import formatting
from tonnage.base.records import Measurement, Metric, Trial

DETAILS = (
    "engine",
    "submission",
    "shared",
    "segments",
    "flush",
    "pattern",
    "nodes",
    "connections_per_pair",
    "endpoints",
    "job",
    "object",
    "object_bytes",
    "tool_operation",
    "test",
    "order",
    "timing",
    "interface",
    "api",
    "access",
    "type",
    "protocol",
    "device",
    "path_type",
    "synchronous_writes",
    "file_bytes",
)
"""Details of a metric that are conditions; the others are results."""
BY_PATTERN = ("connections_per_pair", "endpoints")
"""Details that the pattern of communication already includes."""
STRIPE = "stripe"
SETTINGS = {
    "disk": {"bytes": "size"},
    "layouts": {"size_bytes": "size", "file_system": "file system", "stripe_bytes": STRIPE},
    "net": {"one_way": "one way", "namespaces": "namespaces", "rate_bits_per_second": "rate"},
    "object": {"bucket": "bucket", "endpoint": "endpoint"},
    "ops": {"file_bytes": "file"},
    "over-time": {"file_bytes": "file"},
    "stream": {"block_bytes": "part"},
}
"""The settings that are conditions, by kind of measurement, with their labels."""
EXPLORING, LONG = "explore", "steady"
"""The suites of a sweep: long trials use the concurrency that short ones found."""

Conditions = tuple[tuple[str, str], ...]  # Labels, each with a formatted value


def conditions_of(measurement: Measurement, reading: Metric, trial: Trial | None) -> Conditions:
    told = BY_PATTERN if "node_names" in reading.details else ()
    found = [
        (
            name.removesuffix("_bytes").replace("_", " "),
            condition_value(name, reading.details[name]),
        )
        for name in DETAILS
        if name not in told and reading.details.get(name) is not None
    ]
    if trial and trial.step and trial.step.suite not in (EXPLORING, LONG):
        found.append(("suite", trial.step.suite))
    if trial:
        found += [
            (called, condition_value(name, measurement.settings[name]))
            for name, called in SETTINGS.get(measurement.kind, {}).items()
            if measurement.settings.get(name) is not None
        ]
    return tuple(found)


def places(measurements: Sequence[Measurement]) -> dict[str, Conditions]:
    """The location of each measurement by id, as far as it distinguishes them."""
    known = {
        each.id: (each.environment.host, _device(each), _directory(each))
        for each in measurements
        if each.environment
    }
    by_device = _vary((host, device) for host, device, _ in known.values())
    by_directory = _vary(((host, device), directory) for host, device, directory in known.values())
    return {
        name: tuple(
            (what, where)
            for what, where, tells in (
                ("device", device, by_device),
                ("directory", directory, by_directory),
            )
            if tells and where
        )
        for name, (_, device, directory) in known.items()
    }


def condition_value(name: str, value: object) -> str:
    if isinstance(value, int) and name.endswith("_bits_per_second"):
        return f"{formatting.significant(value / 1e6)} Mbit/s"
    if isinstance(value, int) and name.endswith("bytes"):
        return block_size(value)
    return formatting.setting(name, value)


def block_size(count: int | None) -> str:
    if count is None:
        return "unknown size"
    return formatting.memory(count) if count >= 1024 else f"{count} B"


def _device(measurement: Measurement) -> str | None:
    """The devices of a layout as the user named them, or the kernel's names."""
    if given := measurement.settings.get("devices"):
        return ", ".join(given)
    devices = measurement.environment.devices if measurement.environment else []
    # A file system without a block device only has a number, which the next boot may change.
    return ", ".join(each.name for each in devices if ":" not in each.name) or None


def _directory(measurement: Measurement) -> str | None:
    settings = measurement.settings
    if "devices" in settings:
        return None  # The mount point is arbitrary.
    if given := settings.get("directory"):
        return str(given)
    both = [*settings.get("read", ()), *settings.get("write", ())]
    devices = measurement.environment.devices if measurement.environment else []
    named = both or [each for device in devices for each in device.directories]
    return ", ".join(dict.fromkeys(named)) or None


def _vary(pairs: Iterable[tuple[object, str | None]]) -> bool:
    first: dict[object, str] = {}
    return any(value and first.setdefault(whose, value) != value for whose, value in pairs)
