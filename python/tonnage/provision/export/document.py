"""What an export gives: a document for another tool, or why there is none."""

from dataclasses import dataclass, field
from typing import Any


class ExportError(Exception):
    """A candidate cannot be exported; says why and what to do in one line."""


class TooLittleMemory(ExportError):
    """A candidate's machines have too little memory."""


class OtherPlanNeeded(ExportError):
    """No such plan can be exported, but one with ``settings``, by the names of a plan's options."""

    def __init__(self, why: str, settings: dict[str, object]) -> None:
        plan_with = " and ".join(f"{name} {value}" for name, value in settings.items())
        super().__init__(f"{why}; plan with {plan_with}")
        self.why, self.settings = why, settings


@dataclass(frozen=True)
class ExportedDocument:
    """A document, the meaning of its placeholders, and further steps."""

    document: dict[str, Any]
    replace: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
