"""The records that the loop hands on: frozen, versioned, one file each, written atomically.

A record's JSON says what it is and in which version (``"schema": "tonnage.study/1"``). A version
is never changed in place: a reader keeps reading what an older Tonnage wrote. Timelines, which are
long, go to Parquet next to the JSON. Sizes are bytes, times seconds, rates bytes per second; where
a figure is decimal (1 MB = 1e6 B) or binary (MiB) the text says so.

An `Analysis` is imported from its own file: most commands have none, and start without it.
"""

from tonnage.base.records.base import Record, RecordError
from tonnage.base.records.cluster_measurement import ClusterMeasurement, ClusterNode, ClusterSummary
from tonnage.base.records.environment import Device, Environment
from tonnage.base.records.find_measurements import load_measurement
from tonnage.base.records.io import fsync_directory, read_table, write_atomically, write_table
from tonnage.base.records.job import Demand, Job, JobPhase, SpaceDemand
from tonnage.base.records.measurement import (
    SINGLE,
    Latency,
    Measurement,
    Metric,
    ScorecardItem,
    Source,
    Summary,
    SystemActivity,
    Trial,
    TrialSpec,
)
from tonnage.base.records.observation import NodeUsage, Observation, ObservedNode, ObservedPhase
from tonnage.base.records.phase import Phase, Stage
from tonnage.base.records.prediction import Limit, PredictedPhase, Prediction, Term
from tonnage.base.records.reduction import ReductionRecord, Tuning, WorkerRun
from tonnage.base.records.run import NodeRun, RoundRun, RunRecord
from tonnage.base.records.run_comparison import (
    FollowedPlan,
    NodePhase,
    PhaseComparison,
    ResourceUse,
    RunComparison,
)
from tonnage.base.records.study import ActualPhase, ActualTimes, Study, Validation

__all__ = [
    "SINGLE",
    "ActualPhase",
    "ActualTimes",
    "ClusterMeasurement",
    "ClusterNode",
    "ClusterSummary",
    "Demand",
    "Device",
    "Environment",
    "FollowedPlan",
    "Job",
    "JobPhase",
    "Latency",
    "Limit",
    "Measurement",
    "Metric",
    "NodePhase",
    "NodeRun",
    "NodeUsage",
    "Observation",
    "ObservedNode",
    "ObservedPhase",
    "Phase",
    "PhaseComparison",
    "PredictedPhase",
    "Prediction",
    "Record",
    "RecordError",
    "ReductionRecord",
    "ResourceUse",
    "RoundRun",
    "RunComparison",
    "RunRecord",
    "ScorecardItem",
    "Source",
    "SpaceDemand",
    "Stage",
    "Study",
    "Summary",
    "SystemActivity",
    "Term",
    "Trial",
    "TrialSpec",
    "Tuning",
    "Validation",
    "WorkerRun",
    "fsync_directory",
    "load_measurement",
    "read_table",
    "write_atomically",
    "write_table",
]
