"""``tonnage plan ... --emit``: a candidate as a document that rents it, and what to do first.

The document alone goes to standard output, or to a file; what to replace in it, and what else to
mind, to standard error. With ``--json`` all of that is one JSON document on standard output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnage.base import core, formatting
from tonnage.base.records.base import to_builtins
from tonnage.cli.options.validate import refuse_unknown

if TYPE_CHECKING:
    from tonnage.base.records.plan import Candidate, Plan
    from tonnage.catalog import Catalog, Offer

YAML = ("ray", "skypilot")
"""What is written as YAML, and not as JSON."""


def refuse(
    kind: str | None, number: int | None, out: Path | None, instead: Mapping[str, object]
) -> None:
    """Refuses flags that say nothing, or something else, of what is handed over."""
    from tonnage.provision.export import KINDS

    if kind is None:
        for flag, given in {"--candidate": number, "--output": out}.items():
            if given is not None:
                raise core.UsageError(f"{flag} {given}: it is of --emit, which is not given")
        return
    refuse_unknown("--emit", [kind], tuple(KINDS))
    for flag, value in instead.items():
        if value:
            raise core.UsageError(f"--emit {kind}: leave out {flag}, which prints something else")


def emit(
    made: Plan, catalogs: list[Catalog], kind: str, number: int, out: Path | None, as_json: bool
) -> None:
    """Prints or writes what rents the ``number``-th candidate."""
    from tonnage.provision.export import KINDS, HandoverError, Rental

    if number > len(made.candidates):
        raise core.UsageError(
            f"--candidate {number}: the plan has {formatting.several(len(made.candidates), 'candidate')}"
        )
    chosen = made.candidates[number - 1]
    if chosen.provider == "lab":
        raise core.UsageError(f"--emit {kind}: a lab is not rented: tonnage lab up makes it")
    offer = offer_of(chosen, next(each for each in catalogs if each.name == chosen.catalog))
    try:
        spot = made.settings["purchase"] == "spot"
        handed = KINDS[kind](Rental(made.job.name, chosen, offer, spot))
    except HandoverError as why:
        raise core.UsageError(
            f"--emit {kind}: {chosen.nodes} x {chosen.offer} ({chosen.layout}): {why}"
        ) from why
    text = written(kind, handed.document)
    if out is not None:
        try:
            out.write_text(text)
        except OSError as why:
            raise core.UsageError(f"--output {out}: {why.strerror}") from why
    if as_json:
        told = to_builtins(handed) | {"candidate": to_builtins(chosen)}
        print(json.dumps(told))
        return
    if out is None:
        print(text, end="")
    placed = ", placed" if chosen.placement else ""
    print(f"{chosen.nodes} x {chosen.offer} ({chosen.layout}{placed})", file=sys.stderr)
    for name, what in handed.replace.items():
        print(f"Replace {name}: {what}.", file=sys.stderr)
    for note in handed.notes:
        print(formatting.sentence(note), file=sys.stderr)


def offer_of(chosen: Candidate, catalog: Catalog) -> Offer:
    """The offer that a candidate is of, in its catalog."""
    return next(each for each in catalog.offers if each.type == chosen.offer)


def written(kind: str, document: dict[str, Any]) -> str:
    """A document of this kind as text, in the order that it has, its scripts line by line."""
    if kind not in YAML:
        return json.dumps(document, indent=1) + "\n"
    import yaml

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        """Writes what is alike again, instead of a reference, and lines as lines."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    found: str = yaml.dump(document, Dumper=Dumper, sort_keys=False, width=1000)
    return found
