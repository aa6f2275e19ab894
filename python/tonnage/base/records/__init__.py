"""The records that the loop hands on: frozen, versioned, one file each, written atomically.

A record's JSON says what it is and in which version (``"schema": "tonnage.study/1"``). A version
is never changed in place: a reader keeps reading what an older Tonnage wrote. Timelines, which are
long, go to Parquet beside the JSON. Sizes are bytes, times seconds, rates bytes per second; where
a figure is decimal (1 MB = 1e6 B) or binary (MiB) the text says so.

An `Analysis` is imported from its own file: most commands have none, and start without it.
"""

from tonnage.base.records.base import Artifact, RecordError
from tonnage.base.records.cluster_measurement import Across, FleetMeasurement, FleetNode
from tonnage.base.records.discovery import gather
from tonnage.base.records.environment import Device, Environment
from tonnage.base.records.io import flush_names, read_table, write_atomically, write_table
from tonnage.base.records.job import Demand, Job, JobPhase, Room
from tonnage.base.records.measurement import (
    SINGLE,
    Figure,
    Latency,
    Measurement,
    Reading,
    Rule,
    Source,
    Step,
    SystemActivity,
    Trial,
)
from tonnage.base.records.observation import Observation, ObservedPhase
from tonnage.base.records.phase import Phase, Stage
from tonnage.base.records.prediction import Limit, PredictedPhase, Prediction, Term
from tonnage.base.records.reduction import ReductionRecord, Tuning, WorkerRun
from tonnage.base.records.run import NodeRun, RoundRun, RunRecord
from tonnage.base.records.run_comparison import Compared, ComparedPhase, NodePhase, Planned, Use
from tonnage.base.records.study import Actual, ActualPhase, Study, Validation

__all__ = [
    "SINGLE",
    "Across",
    "Actual",
    "ActualPhase",
    "Artifact",
    "Compared",
    "ComparedPhase",
    "Demand",
    "Device",
    "Environment",
    "Figure",
    "FleetMeasurement",
    "FleetNode",
    "Job",
    "JobPhase",
    "Latency",
    "Limit",
    "Measurement",
    "NodePhase",
    "NodeRun",
    "Observation",
    "ObservedPhase",
    "Phase",
    "Planned",
    "PredictedPhase",
    "Prediction",
    "Reading",
    "RecordError",
    "ReductionRecord",
    "Room",
    "RoundRun",
    "Rule",
    "RunRecord",
    "Source",
    "Stage",
    "Step",
    "Study",
    "SystemActivity",
    "Term",
    "Trial",
    "Tuning",
    "Use",
    "Validation",
    "WorkerRun",
    "flush_names",
    "gather",
    "read_table",
    "write_atomically",
    "write_table",
]
