"""The events of Spark's listener bus that matter, and the fields of them that do.

Field names are Spark's own (`JsonProtocol`). What a version does not write has a default, and what
is not named here is skipped. Times are milliseconds since 1970, CPU times nanoseconds.
"""

import re
from typing import Annotated, Any

import msgspec

NAME = re.compile(rb'\s*\{\s*"Event"\s*:\s*"(?:[\w.$]*[.$])?(\w+)"')
"""An event's name, without the package of its class."""

Amount = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Time = Annotated[int, msgspec.Meta(ge=0, le=10**14)]
"""Up to the year 5138."""


class _Event(msgspec.Struct, frozen=True):
    """Frozen, so that a default may be a struct."""


def _field(name: str, default: Any = 0) -> Any:
    if isinstance(default, list | dict):
        return msgspec.field(name=name, default_factory=type(default))
    return msgspec.field(name=name, default=default)


class LogStart(_Event, frozen=True):
    version: str = _field("Spark Version", "")


class ApplicationStart(_Event, frozen=True):
    time: Time = _field("Timestamp")
    name: str = _field("App Name", "")
    id: str | None = _field("App ID", None)
    attempt: str | None = _field("App Attempt ID", None)


class ApplicationEnd(_Event, frozen=True):
    time: Time = _field("Timestamp")


class EnvironmentUpdate(_Event, frozen=True):
    spark: dict[str, str] = _field("Spark Properties", {})


class ExecutorInfo(_Event, frozen=True):
    host: str = _field("Host", "")
    cores: Amount | None = _field("Total Cores", None)


class ExecutorAdded(_Event, frozen=True):
    time: Time = _field("Timestamp")
    id: str = _field("Executor ID", "")
    info: ExecutorInfo = _field("Executor Info", ExecutorInfo())


class ExecutorRemoved(_Event, frozen=True):
    time: Time = _field("Timestamp")
    id: str = _field("Executor ID", "")


class BlockManagerId(_Event, frozen=True):
    executor: str = _field("Executor ID", "")
    host: str = _field("Host", "")


class BlockManagerAdded(_Event, frozen=True):
    time: Time = _field("Timestamp")
    id: BlockManagerId = _field("Block Manager ID", BlockManagerId())
    most_bytes: Amount = _field("Maximum Memory")


class StorageLevel(_Event, frozen=True):
    disk: bool = _field("Use Disk", False)
    memory: bool = _field("Use Memory", False)


class RddInfo(_Event, frozen=True):
    id: Amount = _field("RDD ID")
    name: str = _field("Name", "")
    scope: str = _field("Scope", "")
    parents: list[Amount] = _field("Parent IDs", [])
    storage: StorageLevel = _field("Storage Level", StorageLevel())
    memory_bytes: Amount = _field("Memory Size")
    disk_bytes: Amount = _field("Disk Size")

    @property
    def is_cached(self) -> bool:
        return self.storage.disk or self.storage.memory


class StageInfo(_Event, frozen=True):
    id: Amount = _field("Stage ID")
    attempt: Amount = _field("Stage Attempt ID")
    name: str = _field("Stage Name", "")
    tasks: Amount = _field("Number of Tasks")
    parents: list[Amount] = _field("Parent IDs", [])
    rdds: list[RddInfo] = _field("RDD Info", [])
    began: Time | None = _field("Submission Time", None)
    ended: Time | None = _field("Completion Time", None)
    failure: str | None = _field("Failure Reason", None)


class StageSubmitted(_Event, frozen=True):
    stage: StageInfo = _field("Stage Info", StageInfo())


class StageCompleted(_Event, frozen=True):
    stage: StageInfo = _field("Stage Info", StageInfo())


class PlannedRdd(_Event, frozen=True):
    id: Amount = _field("RDD ID")


class PlannedStage(_Event, frozen=True):
    """A stage of a job that may be skipped, since an earlier one has made the same data set."""

    id: Amount = _field("Stage ID")
    rdds: list[PlannedRdd] = _field("RDD Info", [])


class JobStart(_Event, frozen=True):
    id: Amount = _field("Job ID")
    time: Time = _field("Submission Time")
    stages: list[PlannedStage] = _field("Stage Infos", [])
    properties: dict[str, str | None] | None = _field("Properties", None)


class JobResult(_Event, frozen=True):
    result: str = _field("Result", "")


class JobEnd(_Event, frozen=True):
    id: Amount = _field("Job ID")
    time: Time = _field("Completion Time")
    result: JobResult = _field("Job Result", JobResult())


class TaskInfo(_Event, frozen=True):
    began: Time = _field("Launch Time")
    ended: Time = _field("Finish Time")
    executor: str = _field("Executor ID", "")
    host: str = _field("Host", "")
    failed: bool = _field("Failed", False)
    killed: bool = _field("Killed", False)
    speculative: bool = _field("Speculative", False)


class ShuffleRead(_Event, frozen=True):
    remote: Amount = _field("Remote Bytes Read")
    local: Amount = _field("Local Bytes Read")
    wait_ms: Amount = _field("Fetch Wait Time")


class ShuffleWrite(_Event, frozen=True):
    written: Amount = _field("Shuffle Bytes Written")
    time_ns: Amount = _field("Shuffle Write Time")


class Input(_Event, frozen=True):
    read: Amount = _field("Bytes Read")


class Output(_Event, frozen=True):
    written: Amount = _field("Bytes Written")


class BlockStatus(_Event, frozen=True):
    memory_bytes: Amount = _field("Memory Size")
    disk_bytes: Amount = _field("Disk Size")


class UpdatedBlock(_Event, frozen=True):
    id: str = _field("Block ID", "")
    status: BlockStatus = _field("Status", BlockStatus())


class TaskMetrics(_Event, frozen=True):
    deserialize_ms: Amount = _field("Executor Deserialize Time")
    deserialize_cpu_ns: Amount = _field("Executor Deserialize CPU Time")
    run_ms: Amount = _field("Executor Run Time")
    cpu_ns: Amount = _field("Executor CPU Time")
    gc_ms: Amount = _field("JVM GC Time")
    peak_memory: Amount = _field("Peak Execution Memory")
    spilled: Amount = _field("Disk Bytes Spilled")
    shuffle_read: ShuffleRead = _field("Shuffle Read Metrics", ShuffleRead())
    shuffle_write: ShuffleWrite = _field("Shuffle Write Metrics", ShuffleWrite())
    input: Input = _field("Input Metrics", Input())
    output: Output = _field("Output Metrics", Output())
    blocks: list[UpdatedBlock] | None = _field("Updated Blocks", None)


class TaskEnd(_Event, frozen=True):
    stage: Amount = _field("Stage ID")
    attempt: Amount = _field("Stage Attempt ID")
    task: TaskInfo = _field("Task Info", TaskInfo())
    metrics: TaskMetrics | None = _field("Task Metrics", None)


class BlockUpdateInfo(_Event, frozen=True):
    block: str = _field("Block ID", "")
    memory_bytes: Amount = _field("Memory Size")
    disk_bytes: Amount = _field("Disk Size")


class BlockUpdated(_Event, frozen=True):
    info: BlockUpdateInfo = _field("Block Updated Info", BlockUpdateInfo())


class QueryStart(_Event, frozen=True):
    """The start of an SQL query, without its plan, which may be nested too deeply to be parsed."""

    id: Amount = _field("executionId")


EVENTS: dict[bytes, type[_Event]] = {
    b"SparkListenerLogStart": LogStart,
    b"SparkListenerApplicationStart": ApplicationStart,
    b"SparkListenerApplicationEnd": ApplicationEnd,
    b"SparkListenerEnvironmentUpdate": EnvironmentUpdate,
    b"SparkListenerExecutorAdded": ExecutorAdded,
    b"SparkListenerExecutorRemoved": ExecutorRemoved,
    b"SparkListenerBlockManagerAdded": BlockManagerAdded,
    b"SparkListenerBlockUpdated": BlockUpdated,
    b"SparkListenerStageSubmitted": StageSubmitted,
    b"SparkListenerStageCompleted": StageCompleted,
    b"SparkListenerJobStart": JobStart,
    b"SparkListenerJobEnd": JobEnd,
    b"SparkListenerTaskEnd": TaskEnd,
}
