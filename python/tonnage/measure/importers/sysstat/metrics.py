"""Import what sysstat sampled as metrics: traffic of devices and interfaces over time.

A metric is one direction of one device. These are the kernel's counters below the page cache, of
everything that the machine did.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tonnage.base.records import Latency, Metric, Source
from tonnage.measure.importers.json_reader import JsonValue
from tonnage.measure.importers.metric import build_metric, require_any
from tonnage.measure.importers.sysstat.documents import read_documents
from tonnage.measure.importers.sysstat.samples import HostSamples, Moment, Transfer
from tonnage.measure.importers.sysstat.tables import read_tables

TOOL = "sysstat"


@dataclass
class _Series:
    moments: list[Moment] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)


def read(documents: list[JsonValue]) -> list[Metric]:
    return _metrics(read_documents(documents), documents[0].path)


def read_text(text: str) -> list[Metric]:
    return _metrics(read_tables(text), "")


def _metrics(hosts: list[HostSamples], where: str) -> list[Metric]:
    results = (metric for host in hosts for metric in _of_host(host))
    return require_any(results, "statistics of disks or network devices", where)


def _of_host(host: HostSamples) -> Iterator[Metric]:
    by_device: dict[tuple[str, str], _Series] = {}

    def add(operation: str, device: str, moment: Moment, transfer: Transfer) -> None:
        series = by_device.setdefault((operation, device), _Series())
        series.moments.append(moment)
        series.transfers.append(transfer)

    for disk in host.disks:
        for direction, transfer in disk.transfers.items():
            add(f"device {direction}", disk.disk, disk.moment, transfer)
    for link in host.interfaces:
        for way, rate in (("receive", link.received), ("send", link.sent)):
            add(f"interface {way}", link.interface, link.moment, Transfer(rate, None, None))
    for (operation, device), series in by_device.items():
        yield _metric(host, operation, device, series)


def _metric(host: HostSamples, operation: str, device: str, series: _Series) -> Metric:
    times = [moment.seconds for moment in series.moments]
    weights = [moment.interval_seconds or 1.0 for moment in series.moments]
    rates = [each.bytes_per_second for each in series.transfers]
    first = times[0]
    over_time = None
    if first is not None and all(time is not None and time >= first for time in times):
        elapsed = [time - first + weights[0] for time in times if time is not None]
        over_time = list(zip(elapsed, rates, strict=True))
    operations = [each.operations_per_second for each in series.transfers]
    counted = [each for each in operations if each is not None]
    total = sum(counted)
    waited = sum(
        (each.operations_per_second or 0.0) * (each.wait_seconds or 0.0)
        for each in series.transfers
    )
    return build_metric(
        source=Source(tool=TOOL),
        operation=operation,
        bandwidth_bytes_per_second=sum(
            rate * weight for rate, weight in zip(rates, weights, strict=True)
        )
        / sum(weights),
        operations_per_second=total / len(rates) if len(counted) == len(rates) else None,
        latency_seconds=Latency(mean=waited / total)
        if total and any(each.wait_seconds is not None for each in series.transfers)
        else Latency(),
        series=over_time,
        details={
            "host": host.host,
            "kernel": host.kernel,
            "device": device,
            "samples": len(rates),
            "most_bytes_per_second": max(rates),
            "seconds": sum(weights) if first is not None else None,
        },
    )
