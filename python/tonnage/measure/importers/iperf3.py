"""iperf3's JSON, whole (-J) or as a stream of events (--json-stream).

The rate is what arrived, as the receiver counted it. A result with an error in it is none, although
iperf3 then ends as if all was well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tonnage.base.records import Metric, Source
from tonnage.measure.importers.json_reader import Node
from tonnage.measure.importers.metric import Unreadable, one_line, reading_of

TOOL = "iperf3"

_BITS = 8


def matches(document: Node) -> bool:
    """Whether this is iperf3's, or the first event of it."""
    return _is_event(document) or (
        "start" in document and ("end" in document or "intervals" in document)
    )


def read(documents: list[Node]) -> list[Metric]:
    """The readings of iperf3's results."""
    if _is_event(documents[0]):
        documents = [_joined(documents)]
    return [reading for document in documents for reading in _of_result(document)]


def _is_event(document: Node) -> bool:
    return "event" in document and "data" in document


def _joined(events: list[Node]) -> Node:
    """Events as the one document that they would have been."""
    whole: dict[str, Any] = {"intervals": []}
    for event in events:
        kind = event.at("event").text()
        if kind == "interval":
            whole["intervals"].append(event.at("data").value)
        else:
            whole[kind] = event.at("data").value
    return Node(whole)


def _of_result(document: Node) -> Iterator[Metric]:
    if error := document.get("error"):
        raise Unreadable(f"a result, not iperf3's error ({one_line(error.text())})", error.path)
    version = document.at("start").maybe_text("version")
    source = Source(tool=TOOL, version=version.removeprefix("iperf ") if version else None)
    test = document.at("start", "test_start")
    reverse = bool(test.maybe_whole("reverse"))
    for suffix in ("", "_bidir_reverse"):
        # A test both ways has one more pair of sums, of the other way.
        if not suffix or f"sum_received{suffix}" in document.at("end"):
            yield _of_way(source, document, test, reverse != bool(suffix), suffix)


def _of_way(source: Source, document: Node, test: Node, receives: bool, suffix: str) -> Metric:
    end = document.at("end")
    protocol = test.at("protocol").text()
    sent, received = end.get(f"sum_sent{suffix}"), end.get(f"sum_received{suffix}")
    if not (sent or received):
        received = end.at("sum")  # Of UDP, before 3.2 or so.
    # A server that gave no result counted nothing.
    arrived = received if received and received.at("bytes").number() else None
    counted = arrived or (received if protocol == "UDP" else None) or sent or received
    if counted is None:
        raise Unreadable('a member "sum_received"', end.path)
    start = document.at("start")
    lost = received or counted
    return reading_of(
        source=source,
        operation="receive" if receives else "send",
        block_bytes=test.maybe_whole("blksize") or None,
        concurrency=test.maybe_whole("num_streams"),
        bandwidth_bytes_per_second=counted.at("bits_per_second").number() / _BITS,
        series=_series(document, f"sum{suffix}"),
        details={
            "protocol": protocol,
            "host": start.at("connecting_to").maybe_text("host")
            if "connecting_to" in start
            else None,
            "counted_by": "receiver" if counted is not sent else "sender",
            "seconds": counted.maybe_number("seconds"),
            "bytes": counted.maybe_number("bytes"),
            "sent_bytes_per_second": _rate(sent),
            "retransmits": sent.maybe_whole("retransmits") if sent else None,
            "jitter_seconds": _milli(lost.maybe_number("jitter_ms")),
            "lost_packets": _loose(lost, "lost_packets"),
            "packets": _loose(lost, "packets"),
            "omitted_seconds": test.maybe_number("omit"),
        },
    )


def _rate(node: Node | None) -> float | None:
    return node.at("bits_per_second").number() / _BITS if node else None


def _milli(value: float | None) -> float | None:
    return None if value is None else value / 1e3


def _loose(node: Node, name: str) -> int | None:
    """A count that iperf3 can give below zero: packets that came twice were not lost."""
    value = node.object().get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
        return None
    return value


def _series(document: Node, name: str) -> list[tuple[float, float]] | None:
    """The rate at the end of each interval that counts."""
    intervals = document.get("intervals")
    found = []
    for interval in intervals.items() if intervals else ():
        total = interval.get(name)
        if total and not total.object().get("omitted"):
            rate = total.at("bits_per_second").number() / _BITS
            found.append((total.at("end").number(), rate))
    return found or None
