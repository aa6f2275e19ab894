"""Import iperf3's JSON, as one document (-J) or as a stream of events (--json-stream).

The rate is that of the receiver. A result that contains an error is refused, although iperf3 exits
with success.
"""

from collections.abc import Iterator
from typing import Any

from tonnage.base.records import Metric, Source
from tonnage.measure.importers.json_reader import JsonValue
from tonnage.measure.importers.metric import UnreadableFile, build_metric, one_line

TOOL = "iperf3"

_BITS = 8


def matches(document: JsonValue) -> bool:
    """Whether this is iperf3's JSON, or its first event."""
    return _is_event(document) or (
        "start" in document and ("end" in document or "intervals" in document)
    )


def read(documents: list[JsonValue]) -> list[Metric]:
    if _is_event(documents[0]):
        documents = [_joined(documents)]
    return [reading for document in documents for reading in _from_result(document)]


def _is_event(document: JsonValue) -> bool:
    return "event" in document and "data" in document


def _joined(events: list[JsonValue]) -> JsonValue:
    document: dict[str, Any] = {"intervals": []}
    for event in events:
        kind = event.member("event").text()
        if kind == "interval":
            document["intervals"].append(event.member("data").value)
        else:
            document[kind] = event.member("data").value
    return JsonValue(document)


def _from_result(document: JsonValue) -> Iterator[Metric]:
    if error := document.get("error"):
        raise UnreadableFile(f"a result, not iperf3's error ({one_line(error.text())})", error.path)
    version = document.member("start").optional_text("version")
    source = Source(tool=TOOL, version=version.removeprefix("iperf ") if version else None)
    test = document.member("start", "test_start")
    reverse = bool(test.optional_int("reverse"))
    for suffix in ("", "_bidir_reverse"):
        # A bidirectional test has another pair of sums, for the other direction.
        if not suffix or f"sum_received{suffix}" in document.member("end"):
            yield _from_direction(source, document, test, reverse != bool(suffix), suffix)


def _from_direction(
    source: Source, document: JsonValue, test: JsonValue, receives: bool, suffix: str
) -> Metric:
    end = document.member("end")
    protocol = test.member("protocol").text()
    sent, received = end.get(f"sum_sent{suffix}"), end.get(f"sum_received{suffix}")
    if not (sent or received):
        received = end.member("sum")  # Of UDP, before 3.2 or so.
    # A server without results counted nothing.
    arrived = received if received and received.member("bytes").number() else None
    counted = arrived or (received if protocol == "UDP" else None) or sent or received
    if counted is None:
        raise UnreadableFile('a member "sum_received"', end.path)
    start = document.member("start")
    lost = received or counted
    return build_metric(
        source=source,
        operation="receive" if receives else "send",
        block_bytes=test.optional_int("blksize") or None,
        concurrency=test.optional_int("num_streams"),
        bandwidth_bytes_per_second=counted.member("bits_per_second").number() / _BITS,
        series=_series(document, f"sum{suffix}"),
        details={
            "protocol": protocol,
            "host": start.member("connecting_to").optional_text("host")
            if "connecting_to" in start
            else None,
            "counted_by": "receiver" if counted is not sent else "sender",
            "seconds": counted.optional_number("seconds"),
            "bytes": counted.optional_number("bytes"),
            "sent_bytes_per_second": _rate(sent),
            "retransmits": sent.optional_int("retransmits") if sent else None,
            "jitter_seconds": _milli(lost.optional_number("jitter_ms")),
            "lost_packets": _signed_count(lost, "lost_packets"),
            "packets": _signed_count(lost, "packets"),
            "omitted_seconds": test.optional_number("omit"),
        },
    )


def _rate(node: JsonValue | None) -> float | None:
    return node.member("bits_per_second").number() / _BITS if node else None


def _milli(value: float | None) -> float | None:
    return None if value is None else value / 1e3


def _signed_count(node: JsonValue, name: str) -> int | None:
    """A count that may be negative in iperf3: duplicate packets count as not lost."""
    value = node.object().get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
        return None
    return value


def _series(document: JsonValue, name: str) -> list[tuple[float, float]] | None:
    """The rate at the end of each interval that is not omitted."""
    intervals = document.get("intervals")
    found = []
    for interval in intervals.items() if intervals else ():
        total = interval.get(name)
        if total and not total.object().get("omitted"):
            rate = total.member("bits_per_second").number() / _BITS
            found.append((total.member("end").number(), rate))
    return found or None
