"""Render a job on a cluster: phases compared with plan and limits, and each node."""

from pathlib import Path

from tonnage.base import formatting
from tonnage.base.records import RunRecord
from tonnage.report.cluster_run.headline import header, title
from tonnage.report.cluster_run.nodes import nodes_section
from tonnage.report.cluster_run.phases import phases_section
from tonnage.report.environment import command_block, machine_facts, settings_table
from tonnage.report.html_elements import Child, Html, fact_list, missing_note, section, table, tag
from tonnage.report.page import PageSection, render_page, write_page

__all__ = ["render", "write_run"]

ROUND_COLUMNS = ("Round", "Splits read", "Partitions", "Moved", "Time", "Lost nodes")


def write_run(record: RunRecord, path: Path) -> Path:
    """Write the page to ``path`` and the record as JSON next to it."""
    return write_page(record, render(record), path)


def render(record: RunRecord) -> str:
    phases, phase_charts = phases_section(record)
    each, node_charts = nodes_section(record)
    return render_page(
        title(record),
        header(record),
        [
            PageSection("phases", "Phases", phases),
            PageSection("nodes", "Node by node", each),
            PageSection("rounds", "Rounds and losses", _rounds(record)),
            PageSection("circumstances", "Settings", _circumstances(record)),
        ],
        [*phase_charts, *node_charts],
    )


def _rounds(record: RunRecord) -> Html:
    lost = [tag("li", tag("b", node.node), f": {node.lost}") for node in record.nodes if node.lost]
    parts: list[Child] = [
        tag("ul", *lost, class_="findings") if lost else tag("p", "No node was lost.")
    ]
    if not record.rounds:
        return section("rounds", "Rounds and losses", *parts, missing_note("There were no rounds."))
    seconds = formatting.seconds_like(max(each.seconds for each in record.rounds))
    rows = [
        [
            str(each.number + 1),
            formatting.count(each.splits),
            formatting.count(each.partitions),
            formatting.size(each.bytes),
            seconds(each.seconds),
            formatting.listing(each.lost) or "none",
        ]
        for each in record.rounds
    ]
    caption = "Rounds of pass one, by the driver's clock"
    numeric = ("Splits read", "Partitions", "Moved", "Time")
    parts.append(table(caption, ROUND_COLUMNS, rows, numeric=numeric))
    if record.repartitioned_bytes:
        again = formatting.size(record.repartitioned_bytes)
        parts.append(tag("p", f"{again} were partitioned again, because they exceeded the memory."))
    return section("rounds", "Rounds and losses", *parts)


def _circumstances(record: RunRecord) -> Html:
    limit = record.compared.limit if record.compared else None
    cited = [tag("li", tag("code", each)) for each in limit.measurements] if limit else []
    return section(
        "circumstances",
        "Settings, measurements, versions",
        settings_table("Settings of the job", record.settings),
        tag("h3", "Measurements behind the limits"),
        tag("ul", *cited) if cited else missing_note("No measured capacities were specified."),
        tag("h3", "The driver's machine"),
        machine_facts(record.environment),
        tag("h3", "Versions"),
        fact_list(record.environment.versions.items()),
        tag("h3", "Command"),
        command_block("The job", record.command),
    )
