"""``tonnage plan ... --emit``: a candidate as a document that rents it.

The document goes to standard output, or to a file; what to replace in it, and notes, to standard
error. With ``--json`` all of that is one JSON document on standard output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tonnage.base import core, formatting
from tonnage.base.records.base import to_builtins
from tonnage.base.records.io import write_atomically
from tonnage.cli.options.cluster import CandidateNumber
from tonnage.cli.options.types import Option
from tonnage.cli.options.validate import refuse_unknown, refuse_without, usage_errors
from tonnage.cli.output.candidates import candidate_text

if TYPE_CHECKING:
    from tonnage.base.records.plan import Candidate, Plan
    from tonnage.catalog import Catalog, Offer
    from tonnage.provision.export import ExportError

YAML = ("ray", "skypilot", "dataproc", "kubernetes")
PROPERTIES = ("spark",)
"""Formats in YAML, and in lines of a name and a value; the others are JSON."""


@dataclass(frozen=True, kw_only=True)
class EmitOptions:
    emit: Annotated[
        str | None,
        Option(
            "FORMAT",
            "Write a file with which to rent the candidate: ray (cluster YAML), aws (boto3 "
            "requests) or skypilot (task YAML); of an application of Spark also its settings for "
            "these machines: spark (properties), emr (JSON for aws emr), dataproc (YAML for "
            "gcloud) or kubernetes (YAML of a SparkApplication).",
        ),
    ] = None
    candidate: CandidateNumber = None
    output: Annotated[
        Path | None, Option("FILE", "With --emit: file to write. Default: standard output.")
    ] = None

    def refuse(self, others: Mapping[str, object]) -> None:
        if self.emit is None:
            refuse_without("--emit", {"--candidate": self.candidate, "--output": self.output})
            return
        from tonnage.provision.export import EXPORTERS

        refuse_unknown("--emit", [self.emit], EXPORTERS)
        for flag, value in others.items():
            if value:
                raise core.UsageError(
                    f"--emit {self.emit} and {flag} print different things; remove one of them"
                )


def emit_candidate(
    made: Plan, catalogs: list[Catalog], options: EmitOptions, as_json: bool
) -> None:
    from tonnage.model.jobs.application import is_of_spark
    from tonnage.provision.export import EXPORTERS, OF_SPARK, ExportError, Rental

    kind, number = options.emit or "", options.candidate or 1
    if options.candidate is None and kind in OF_SPARK:
        number = _first_with_memory(made, catalogs, kind) or 1
    if number > len(made.candidates):
        candidates = formatting.several(len(made.candidates), "candidate")
        raise core.UsageError(f"--candidate {number} does not exist; the plan has {candidates}")
    if kind in OF_SPARK and not is_of_spark(made.job):
        raise core.UsageError(
            f"--emit {kind} is for an application of Spark, which tonnage import makes of its "
            "event log; use ray, aws or skypilot"
        )
    chosen = made.candidates[number - 1]
    if chosen.provider == "lab":
        raise core.UsageError(f"--emit {kind}: a lab is not rented; start it with tonnage lab up")
    offer = offer_of(chosen, next(each for each in catalogs if each.name == chosen.catalog))
    spot = made.settings["purchase"] == "spot"
    try:
        exported = EXPORTERS[kind](Rental(made.job.name, chosen, offer, spot))
    except ExportError as error:
        prefix = f"--emit {kind}: {chosen.nodes} x {chosen.offer} ({chosen.layout}): "
        raise core.UsageError(f"{prefix}{_why_not(error, made, catalogs, kind)}") from error
    text = document_text(kind, exported.document)
    if options.output is not None:
        with usage_errors(OSError, prefix=f"--output {options.output}: "):
            write_atomically(options.output, text.encode())
    if as_json:
        values = to_builtins(exported) | {"candidate": to_builtins(chosen)}
        print(json.dumps(values))
        return
    if options.output is None:
        print(text, end="")
    placed = ", placed" if chosen.placement else ""
    print(f"{chosen.nodes} x {chosen.offer} ({chosen.layout}{placed})", file=sys.stderr)
    if number > 1 and options.candidate is None:
        print(
            f"Candidate {number}: those before have too little memory for an executor.",
            file=sys.stderr,
        )
    for name, what in exported.replace.items():
        print(f"Replace {name}: {what}.", file=sys.stderr)
    for note in exported.notes:
        print(formatting.sentence(note), file=sys.stderr)


def _why_not(error: ExportError, made: Plan, catalogs: Sequence[Catalog], kind: str) -> str:
    from tonnage.provision.export import OtherPlanNeeded, TooLittleMemory

    if isinstance(error, OtherPlanNeeded):
        flags = " ".join(f"--{name} {value}" for name, value in error.settings.items())
        return f"{error.why}; plan with {flags}"
    if isinstance(error, TooLittleMemory):
        first = _first_with_memory(made, catalogs, kind)
        if first is None:
            return f"{error}, which this plan has none of"
        text = candidate_text(made.candidates[first - 1])
        return f"{error}: the first is --candidate {first}, {text}"
    return str(error)


def _first_with_memory(made: Plan, catalogs: Sequence[Catalog], kind: str) -> int | None:
    """The number of the first candidate that has memory enough for what this format needs."""
    from tonnage.provision.export import EXPORTERS, ExportError, Rental, TooLittleMemory

    offers = {(each.name, offer.type): offer for each in catalogs for offer in each.offers}
    spot = made.settings["purchase"] == "spot"
    for number, each in enumerate(made.candidates, start=1):
        try:
            EXPORTERS[kind](Rental(made.job.name, each, offers[each.catalog, each.offer], spot))
        except TooLittleMemory:
            continue
        except ExportError:
            pass  # For another reason, which is reported when it is chosen.
        return number
    return None


def offer_of(chosen: Candidate, catalog: Catalog) -> Offer:
    for offer in catalog.offers:
        if offer.type == chosen.offer:
            return offer
    raise core.UsageError(f"catalog {catalog.name} has no offer {chosen.offer}; plan again")


def document_text(kind: str, document: dict[str, Any]) -> str:
    if kind in PROPERTIES:
        return "".join(f"{name} {value}\n" for name, value in document.items())
    if kind not in YAML:
        return json.dumps(document, indent=1) + "\n"
    import yaml

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        """Writes equal values in full instead of as references, and text line by line."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    result: str = yaml.dump(document, Dumper=Dumper, sort_keys=False, width=1000)
    return result
