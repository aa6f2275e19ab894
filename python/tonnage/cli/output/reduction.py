"""A reduction's record on the terminal."""

import json

from tonnage.base import formatting
from tonnage.base.records import ReductionRecord
from tonnage.cli.output.run_comparison import comparison_lines
from tonnage.cli.output.run_record import requests_line


def reduction_lines(record: ReductionRecord) -> list[str]:
    rate = formatting.rate(record.rounds * record.bytes / record.seconds) if record.seconds else "-"
    workers = record.workers
    times = {
        "waiting for chunks": sum(each.retrieval_seconds for each in workers),
        "reducing": sum(each.processing_seconds for each in workers),
        "waiting for other workers": sum(each.synchronisation_seconds for each in workers),
    }
    spent = ", ".join(f"{formatting.seconds(each)} {name}" for name, each in times.items())
    rows = "an unknown number of rows" if record.rows is None else f"{record.rows} rows"
    cpu = formatting.significant(record.cpu_seconds)
    lines = [
        f"{rows}, {formatting.size(record.bytes)} in {record.chunks} chunks, "
        f"{formatting.several(record.rounds, 'round')}",
        f"{formatting.seconds(record.seconds)}, {rate}, {cpu} core seconds",
        f"{formatting.several(len(workers), 'worker')}: {spent}",
    ]
    if record.compared:
        lines += comparison_lines(record.compared, record.seconds)
    if record.requests:
        lines.append(requests_line(record.requests))
    if record.job == "kmeans" and "restarts" not in record.settings.get("flags", {}):
        lines.append(
            "Other initial centres may yield a lower inertia: to try ten sets, use --restarts 10"
        )
    return [*lines, json.dumps(record.result, indent=1)]
