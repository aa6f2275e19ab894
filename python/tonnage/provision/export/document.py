"""What an export gives: a document for another tool, or why there is none."""

from dataclasses import dataclass, field
from typing import Any


class ExportError(Exception):
    """A candidate cannot be exported; says why and what to do in one line."""


@dataclass(frozen=True)
class ExportedDocument:
    """A document, the meaning of its placeholders, and further steps."""

    document: dict[str, Any]
    replace: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
