"""``tonnage report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tonnage import engine, words
from tonnage.artifacts.gathering import bytes_at
from tonnage.cli.arguments import Json, whole_number
from tonnage.cli.gathered import measured_places, read_all, read_fleets


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEASUREMENT_OR_DIR...",
            help="Measurements, or directories that hold some, at any depth.",
        ),
    ],
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="HOST_OR_TYPE=USD_PER_HOUR...",
            help="What a machine costs, by its name or its type's; or HOST=TYPE of the catalog.",
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="What machine types cost: a catalog's name or CSV file.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE.html",
            help="Where the page goes; its figures are put beside it, in FILE.json.",
        ),
    ] = Path("report.html"),
    seed: Annotated[
        int,
        typer.Option(
            "--seed", parser=whole_number(0, 1 << 62), metavar="N", help="Of all random draws."
        ),
    ] = "0",  # type: ignore[assignment]  # the parser makes it a number
    as_json: Json = False,
) -> None:
    """Analyse measurements of one machine or of a fleet, and write a page to look at."""
    from tonnage.cli.prices import prices
    from tonnage.model.analysis import analyse
    from tonnage.report.analysis import write_analysis

    _refuse_out(out)
    costs = prices(price or [], catalog)
    found = measured_places(paths)
    measurements = read_all(found)
    total = sum(map(bytes_at, found))
    with engine.Progress("analysing", total) as progress:
        analysis = analyse(
            measurements,
            costs,
            seed,
            fleets=read_fleets(paths),
            on_share=lambda share: progress(int(share * total)),
        )
    page = write_analysis(analysis, out)
    if as_json:
        print(json.dumps(analysis.to_json()))
        return
    for said in (*analysis.findings, *analysis.warnings):
        print(said)
    for rule in analysis.scorecard:
        print(f"{words.sentence(rule.rule)} {rule.verdict.capitalize()}: {rule.reason}.")
    print(f"Report: {page}")


def _refuse_out(out: Path) -> None:
    if out.suffix != ".html" or out.is_dir():
        raise engine.Refused(f"--out {out}: name a file that ends in .html")
