"""Read sysstat's JSON: that of sadf -j, and that of iostat and mpstat (-o JSON)."""

from collections.abc import Iterator

from tonnage.measure.importers.json_reader import JsonValue
from tonnage.measure.importers.metric import UnreadableFile
from tonnage.measure.importers.sysstat.clock import (
    DayClock,
    day_seconds,
    moment_seconds,
    take_time,
)
from tonnage.measure.importers.sysstat.samples import Clock, HostSamples, Moment

_NAMES = ("disk-device", "disk_device", "iface", "cpu")


class ObjectRow:
    """An object of JSON, by the names of its members."""

    def __init__(self, value: JsonValue) -> None:
        self._value, self.where = value, value.path

    def __contains__(self, name: object, /) -> bool:
        return str(name) in self._value

    def number(self, name: str) -> float:
        return self._value.member(name).number()

    def text(self, name: str) -> str:
        return self._value.member(name).text()


def matches(document: JsonValue) -> bool:
    return "sysstat" in document


def read_documents(documents: list[JsonValue]) -> list[HostSamples]:
    return [
        _host(host)
        for document in documents
        for host in document.member("sysstat", "hosts").items()
    ]


def _host(host: JsonValue) -> HostSamples:
    samples = HostSamples(
        host=host.optional_text("nodename"),
        kernel=host.optional_text("release"),
        cores=host.optional_int("number-of-cpus"),
    )
    times = _Times(host)
    for statistics in host.member("statistics").items():
        moment = times.moment(statistics)
        if (cores := statistics.get("avg-cpu")) is not None:
            samples.add_cpu(moment, ObjectRow(cores))
        if (memory := statistics.get("memory")) is not None:
            samples.add(moment, ObjectRow(memory))
        for row in _rows(statistics):
            if not any(name in row for name in _NAMES):
                raise UnreadableFile(f'a member "{_NAMES[0]}", "iface" or "cpu"', row.path)
            samples.add(moment, ObjectRow(row))
    samples.clock = times.clock
    if samples.tool == "sar" and not times.are_sadf:
        samples.tool = "iostat" if samples.disks else "mpstat"
    restarts = host.get("restarts")
    for restart in restarts.items() if restarts else ():
        if (boot := restart.get("boot")) is not None:
            samples.restarts.append(times.seconds(boot))
    return samples


def _rows(statistics: JsonValue) -> Iterator[JsonValue]:
    network = statistics.get("network")
    for table in (
        statistics.get("cpu-load"),
        statistics.get("disk"),
        network.get("net-dev") if network else None,
    ):
        yield from table.items() if table else ()


class _Times:
    """When samples end: an object of sadf, a text of iostat -t or mpstat, or nothing."""

    def __init__(self, host: JsonValue) -> None:
        self._host = host
        self._day: DayClock | None = None
        self._before: float | None = None
        self.clock: Clock = "local time"
        self.are_sadf = False

    def moment(self, statistics: JsonValue) -> Moment:
        node = statistics.get("timestamp")
        if node is None:
            return Moment(None, None)
        if isinstance(node.value, dict):
            self.are_sadf = True
            interval = node.optional_number("interval")
            return Moment(self.seconds(node), interval or None)
        now = self._of_text(node)
        before, self._before = self._before, now
        if before is not None and now < before:
            raise UnreadableFile("times that do not go back", node.path)
        return Moment(now, now - before if before is not None and now > before else None)

    def seconds(self, node: JsonValue) -> float:
        if node.optional_number("utc"):
            self.clock = "UTC"
        text = f"{node.member('date').text()} {node.member('time').text()}"
        return moment_seconds(text, node.path)

    def _of_text(self, node: JsonValue) -> float:
        text = node.text()
        taken = take_time(text.split())
        if taken is None:
            return moment_seconds(text, node.path)
        if self._day is None:
            self._day = DayClock(day_seconds(self._host.member("date").text(), node.path))
        return self._day.seconds(taken[0], node.path)
