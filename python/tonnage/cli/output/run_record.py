"""Records of sorts and MapReduces on the terminal."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from tonnage.base import formatting
from tonnage.base.records import Phase, RunRecord
from tonnage.cli.output.run_comparison import comparison_lines
from tonnage.model.study_findings import disk_warnings

NOTHING_SPILLED = "Nothing went to scratch, since it fitted into memory"


def print_record_json(record: RunRecord) -> None:
    """Prints a record as JSON; lost nodes are reported on standard error, too."""
    for line in lost_lines(record):
        print(f"tonnage: {line}", file=sys.stderr)
    print(json.dumps(record.to_json()))


def sort_lines(record: RunRecord) -> list[str]:
    output = f"{record.records} records, {record.bytes} bytes, checksum {record.checksum}"
    rate = formatting.rate(record.bytes / record.seconds) if record.seconds else None
    return [output, *_run_lines(record, f"{rate} sorted" if rate else "no time")]


def table_lines(record: RunRecord) -> list[str]:
    written = record.written_bytes or 0
    read = f"{record.records} rows, {formatting.size(record.bytes)} read"
    if record.written_records == record.records:
        output = f"{read}, {formatting.size(written)} written"
    else:
        output = f"{read}; {record.written_records} rows, {formatting.size(written)} written"
    rate = formatting.rate(record.bytes / record.seconds) if record.seconds else None
    return [output, *_run_lines(record, f"{rate} read" if rate else "no time")]


def mapreduce_lines(record: RunRecord) -> list[str]:
    sent, written = record.shuffled_bytes or 0, record.written_bytes or 0
    output = (
        f"{record.records} records, {record.bytes} bytes read; {record.shuffled_records} records, "
        f"{formatting.size(sent)} shuffled; {record.written_records} records, "
        f"{formatting.size(written)} written"
    )
    rate = formatting.rate(record.bytes / record.seconds) if record.seconds else None
    return [output, *_run_lines(record, f"{rate} read" if rate else "no time")]


def lost_lines(record: RunRecord) -> list[str]:
    return [f"Lost: {node.node}: {node.lost}" for node in record.nodes if node.lost]


def requests_line(requests: Mapping[str, Any]) -> str:
    line = (
        f"{requests['requests']} requests to object storage, {requests['retries']} of them retries"
    )
    hedged = requests.get("hedged")
    return line + (f", {hedged} of them duplicates of slow requests" if hedged else "")


def _run_lines(record: RunRecord, throughput: str) -> list[str]:
    lines = _cluster_lines(record, throughput) if record.nodes else _local_lines(record, throughput)
    if record.requests.get("requests"):
        lines.append(requests_line(record.requests))
    if record.repartitioned_bytes:
        again = formatting.size(record.repartitioned_bytes)
        lines.append(
            f"{again} had to be partitioned a second time, since --memory is small; raise --memory"
        )
    lines += lost_lines(record)
    phases = [phase for node in record.nodes for phase in node.phases] or record.phases
    return [*lines, *disk_warnings(phases)]


def _local_lines(record: RunRecord, throughput: str) -> list[str]:
    cpu = formatting.significant(record.cpu_seconds)
    lines = [f"{formatting.seconds(record.seconds)}, {throughput}, {cpu} core seconds"]
    if record.spilled_bytes is not None:
        spilled = formatting.size(record.spilled_bytes)
        lines.append(f"{spilled} went to scratch" if record.spilled_bytes else NOTHING_SPILLED)
    by_name: dict[str, list[Phase]] = {}
    for phase in record.phases:
        by_name.setdefault(phase.name, []).append(phase)
    for name, phases in by_name.items():
        times = f"{len(phases)} times, " if len(phases) > 1 else ""
        bottlenecks = formatting.listing(dict.fromkeys(phase.bottleneck for phase in phases))
        spent = formatting.seconds(sum(phase.seconds for phase in phases))
        lines.append(f"{name}: {times}{spent}, limited by {bottlenecks}")
    return lines


def _cluster_lines(record: RunRecord, throughput: str) -> list[str]:
    cpu, nodes = formatting.significant(record.cpu_seconds), len(record.nodes)
    took = f"{formatting.seconds(record.seconds)}, {throughput}"
    if record.commands > 1:
        took = f"{formatting.seconds(record.seconds)} for the last of {record.commands} commands"
    rounds = formatting.several(len(record.rounds), "round")
    lines = [
        f"{took}, {cpu} core seconds on {formatting.several(nodes, 'node')}",
        f"{formatting.size(record.network_bytes)} sent between nodes; pass one ran in {rounds}",
    ]
    if record.compared:
        lines += comparison_lines(record.compared, record.seconds)
    return lines
