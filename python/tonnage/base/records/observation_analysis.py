"""What follows from an observation: what to change first."""

from typing import ClassVar

from tonnage.base.records.base import Record
from tonnage.base.records.finding import Finding
from tonnage.base.records.observation import Observation


class ObservationAnalysis(Record, frozen=True, kw_only=True):
    SCHEMA: ClassVar[str] = "tonnage.observation-analysis/1"

    observation: Observation
    findings: list[Finding]
