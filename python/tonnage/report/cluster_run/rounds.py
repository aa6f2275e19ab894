"""Render the rounds of pass one on a cluster, and lost nodes."""

from tonnage.base import formatting
from tonnage.base.records import RunRecord
from tonnage.report.html import Child, Html, missing_note, section, table, tag

COLUMNS = ("Round", "Splits read", "Partitions", "Moved", "Took", "Lost nodes")


def rounds_section(record: RunRecord) -> Html:
    lost = [tag("li", tag("b", node.node), f": {node.lost}") for node in record.nodes if node.lost]
    parts: list[Child] = [
        tag("ul", *lost, class_="findings") if lost else tag("p", "No node was lost.")
    ]
    if not record.rounds:
        return section("rounds", "Rounds and losses", *parts, missing_note("No round was needed."))
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
    numeric = ("Splits read", "Partitions", "Moved", "Took")
    parts.append(table(caption, COLUMNS, rows, numeric=numeric))
    if record.repartitioned_bytes:
        again = formatting.size(record.repartitioned_bytes)
        parts.append(tag("p", f"{again} were partitioned again for lack of memory."))
    return section("rounds", "Rounds and losses", *parts)
