"""Import sysstat's JSON (sadf -j, iostat -o JSON): traffic of devices and interfaces over time.

A metric is one direction of one device. These are the kernel's counters below the page cache, of
everything that the machine did. sysstat's kilobytes have 1024 bytes, its sectors 512.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers.json_reader import JsonValue
from tonnage.measure.importers.metric import UnreadableFile, build_metric, require_any

TOOL = "sysstat"

_KIB = 1 << 10
_MIB = 1 << 20
_SECTOR = 512
# An operation's fields in order of preference, each with its unit in bytes. The first are sadf's,
# those with /s iostat's.
_DEVICE = {
    f"device {operation}": {
        f"{letter}kB": _KIB,
        f"{old}_sec": _SECTOR,
        f"{letter}kB/s": _KIB,
        f"{letter}MB/s": _MIB,
        f"kB_{past}/s": _KIB,
        f"MB_{past}/s": _MIB,
    }
    for operation, letter, old, past in (
        ("read", "r", "rd", "read"),
        ("write", "w", "wr", "wrtn"),
        ("discard", "d", "dc", "dscd"),
    )
}
_INTERFACE = {"interface receive": {"rxkB": _KIB}, "interface send": {"txkB": _KIB}}
# iostat's operations and their mean time in milliseconds, by direction.
_OPERATIONS = {
    "device read": ("r/s", "r_await"),
    "device write": ("w/s", "w_await"),
    "device discard": ("d/s", "d_await"),
}


class _Series:
    def __init__(self) -> None:
        self.times: list[float | None] = []
        self.rates: list[float] = []
        self.weights: list[float] = []
        self.operations: list[float] = []
        self.waits: list[float] = []


def matches(document: JsonValue) -> bool:
    return "sysstat" in document


def read(documents: list[JsonValue]) -> list[Metric]:
    hosts = (host for document in documents for host in document.member("sysstat", "hosts").items())
    results = (metric for host in hosts for metric in _from_host(host))
    return require_any(results, "statistics of disks or network devices", documents[0].path)


def _from_host(host: JsonValue) -> Iterator[Metric]:
    all_series: dict[tuple[str, str], _Series] = {}
    for sample in host.member("statistics").items():
        if not isinstance(sample.value, dict):
            raise UnreadableFile("an object", sample.path)
        time, interval = _time(sample)
        network = sample.get("network")
        disks = sample.get("disk")
        for device in disks.items() if disks else ():
            _add(all_series, _DEVICE, ("disk-device", "disk_device"), device, time, interval)
        interfaces = network.get("net-dev") if network else None
        for device in interfaces.items() if interfaces else ():
            _add(all_series, _INTERFACE, ("iface",), device, time, interval)
    for (operation, name), series in all_series.items():
        yield _reading(host, operation, name, series)


def _time(sample: JsonValue) -> tuple[float | None, float | None]:
    """When a sample ends, in seconds (UTC), and its length; iostat states neither."""
    node = sample.get("timestamp")
    if node is None or not isinstance(node.value, dict):
        return None, None
    text = f"{node.member('date').text()} {node.member('time').text()}"
    try:
        moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        raise UnreadableFile("a date and a time", node.path) from None
    return moment.timestamp(), node.optional_number("interval")


def _add(
    all_series: dict[tuple[str, str], _Series],
    operations: dict[str, dict[str, int]],
    names: tuple[str, ...],
    device: JsonValue,
    time: float | None,
    interval: float | None,
) -> None:
    name = next((device.member(key).text() for key in names if key in device), None)
    if name is None:
        raise UnreadableFile(f'a member "{names[0]}"', device.path)
    for operation, units in operations.items():
        unit = next((unit for unit in units if unit in device), None)
        if unit is None:
            continue
        series = all_series.setdefault((operation, name), _Series())
        series.times.append(time)
        series.rates.append(device.member(unit).number() * units[unit])
        series.weights.append(interval or 1.0)
        rate, wait = _OPERATIONS.get(operation, ("", ""))
        if rate in device:
            series.operations.append(device.member(rate).number())
            series.waits.append(device.optional_number(wait) or 0.0)


def _reading(host: JsonValue, operation: str, name: str, series: _Series) -> Metric:
    first = series.times[0]
    over_time = None
    if first is not None and all(time is not None and time >= first for time in series.times):
        times = [time - first + series.weights[0] for time in series.times if time is not None]
        over_time = list(zip(times, series.rates, strict=True))
    total = sum(series.operations)
    counted = len(series.operations) == len(series.rates)
    waited = sum(n * wait for n, wait in zip(series.operations, series.waits, strict=True))
    weights = sum(series.weights)
    return build_metric(
        source=Source(tool=TOOL),
        operation=operation,
        bandwidth_bytes_per_second=sum(
            rate * weight for rate, weight in zip(series.rates, series.weights, strict=True)
        )
        / weights,
        operations_per_second=total / len(series.rates) if counted else None,
        latency_seconds=Latency(mean=waited / total / 1e3) if counted and total else Latency(),
        series=over_time,
        details={
            "host": host.optional_text("nodename"),
            "kernel": host.optional_text("release"),
            "device": name,
            "samples": len(series.rates),
            "most_bytes_per_second": max(series.rates),
            "seconds": weights if first is not None else None,
        },
    )
