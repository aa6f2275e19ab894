"""Render the headline and key figures of a job on a cluster."""

from tonnage.base import formatting
from tonnage.base.records import RunRecord
from tonnage.report.html_elements import Html, tag
from tonnage.report.page import Tile, notice, page_header, tile_list
from tonnage.report.study.headline import cpu_tile


def title(record: RunRecord) -> str:
    """The first sentence, without its full stop."""
    nodes = formatting.several(len(record.nodes), "node")
    done = "Sorted" if record.job == "sort" else "MapReduce of"
    said = (
        f"{done} {formatting.size(record.bytes)} on {nodes} in {formatting.seconds(record.seconds)}"
    )
    if record.commands > 1:
        said += f", the last of {record.commands} commands"
    planned = record.compared.planned if record.compared else None
    return f"{said}; planned {formatting.seconds(planned.seconds.median)}" if planned else said


def header(record: RunRecord) -> Html:
    lost = sum(1 for node in record.nodes if node.lost)
    said = f"{formatting.several(lost, 'node')} of {len(record.nodes)} lost"
    return page_header(
        f"{record.job} on a cluster · {formatting.moment(record.began_at)}",
        title(record),
        tag("p", _lead(record), class_="lead"),
        notice(said, "rounds") if lost else None,
        tile_list(_tiles(record)),
    )


def _lead(record: RunRecord) -> str:
    compared = record.compared
    sentences = []
    if compared and compared.phase_efficiency is not None:
        sentences.append(
            f"The phases reached {formatting.percent(compared.phase_efficiency)} of the nodes' "
            "measured throughput."
        )
    for phase in compared.phases if compared else ():
        limited = (
            f"{formatting.phase(phase.name)}: limited by {formatting.resource(phase.bottleneck)}"
        )
        verdict = {None: "", True: ", as predicted", False: ", not as predicted"}
        sentences.append(formatting.sentence(limited + verdict[phase.as_limited]))
    return " ".join(sentences)


def _tiles(record: RunRecord) -> list[Tile]:
    compared = record.compared
    of = "from the first check of the nodes to the end"
    if record.commands > 1:
        of = f"of the last of {record.commands} commands, {of}"
    found = [Tile("Time", formatting.seconds(record.seconds), of)]
    if compared:
        outside = ""
        if compared.other_seconds is not None:
            outside = f"{formatting.seconds(compared.other_seconds)} outside of phases"
        found.append(Tile("All phases", formatting.seconds(compared.phase_seconds), outside))
    if compared and compared.limit and compared.phase_efficiency is not None:
        limit = compared.limit
        note = f"of the limit, {formatting.seconds(limit.seconds)}"
        if compared.other_seconds is not None:
            note += f"; {formatting.percent(limit.efficiency)} including start and end"
        found.append(Tile("Efficiency", formatting.percent(compared.phase_efficiency), note))
    if compared and compared.planned:
        planned = compared.planned
        between = formatting.seconds_between(planned.seconds.low, planned.seconds.high)
        of = f"{planned.candidate.nodes} x {planned.candidate.offer}"
        inside = "inside" if planned.inside else "outside"
        note = f"{between} on {of}; the actual time is {inside} the interval"
        found.append(Tile("Planned", formatting.seconds(planned.seconds.median), note))
    summed = "of the input" if record.job == "sort" else "of the shuffled data"
    return [
        *found,
        cpu_tile(record),
        Tile(
            "Between nodes",
            formatting.size(record.network_bytes),
            f"in {formatting.several(len(record.rounds), 'round')} of pass one",
        ),
        Tile("Peak memory", formatting.memory(record.peak_memory_bytes), "of the largest node"),
        Tile(
            "Records",
            formatting.count(record.records),
            f"checksum {record.checksum}, {summed}; durability {record.durability}",
        ),
    ]
