"""Fold the events of a log into an application: its stages, executors and settings.

Where a stage reads is shown by the name of a data set (``s3a://...``) or by the plan of the query
that the stage belongs to. Spark counts what is read from cached data sets as input, too: a stage
reads from the cache if it needs a data set that is to be stored and an earlier stage has made.
"""

import datetime
import re

from tonnage.base.records.application import Application, CachedDataSet, Source, cores_of_task
from tonnage.measure.importers.metric import UnreadableFile, one_line
from tonnage.measure.importers.spark import events
from tonnage.measure.importers.spark.executors import Executors
from tonnage.measure.importers.spark.places import place_of
from tonnage.measure.importers.spark.stages import Lineage, StageSums, lineage

MS = 1e3
"""In a second."""
QUERY = "spark.sql.execution.id"
SETTINGS = re.compile(
    r"spark\.(executor\.(instances|cores|memory|memoryOverhead|memoryOverheadFactor)"
    r"|driver\.(cores|memory|memoryOverhead)|task\.cpus|master|submit\.deployMode"
    r"|dynamicAllocation\.(enabled|minExecutors|maxExecutors|initialExecutors)"
    r"|memory\.(fraction|storageFraction|offHeap\.enabled|offHeap\.size)"
    r"|sql\.shuffle\.partitions|sql\.adaptive\.enabled|sql\.files\.maxPartitionBytes"
    r"|default\.parallelism|shuffle\.service\.enabled|speculation|io\.compression\.codec)"
)
"""An allowlist: other settings may contain names and secrets."""
CACHED_BLOCK = re.compile(r"rdd_(\d{1,18})_\d+")


class ApplicationReader:
    """What is known of an application after some of its events."""

    def __init__(self) -> None:
        self._version = self._name = self._id = self._attempt = ""
        self._began: int | None = None
        self._ended: int | None = None
        self._last = 0
        self._settings: dict[str, str] | None = None
        self._cores_of_task = 1
        self._executors = Executors()
        self._stages: dict[tuple[int, int], StageSums] = {}
        self._planned_rdds: dict[int, int] = {}
        self._stored: set[int] = set()
        """Data sets that are to be stored and that some stage has made."""
        self._rdd_names: dict[int, str] = {}
        self._cache = _CacheSizes()
        self._query_places: dict[str, tuple[Source, Source]] = {}
        self._stage_query: dict[int, str] = {}
        self._failed_jobs = 0

    def add(self, event: object) -> None:
        """Take an event of `events.EVENTS`."""
        match event:
            case events.TaskEnd():
                self._task_end(event)
            case events.StageSubmitted():
                self._stage(event.stage).describe(event.stage)
            case events.StageCompleted():
                self._stage_completed(event.stage)
            case events.JobStart():
                self._job_start(event)
            case events.JobEnd():
                self._last = max(self._last, event.time)
                self._failed_jobs += event.result.result == "JobFailed"
            case events.BlockUpdated():
                info = event.info
                self._cache.update(info.block, info.memory_bytes, info.disk_bytes)
            case events.ExecutorAdded():
                self._executors.add(event)
            case events.ExecutorRemoved():
                self._executors.remove(event)
            case events.BlockManagerAdded():
                self._executors.add_memory(event)
            case events.LogStart():
                self._version = event.version
            case events.ApplicationStart():
                self._began, self._name = event.time or None, event.name
                self._id, self._attempt = event.id or "", event.attempt or ""
            case events.ApplicationEnd():
                self._ended = event.time
            case events.EnvironmentUpdate():
                self._settings = _size_settings(event.spark)
                self._cores_of_task = cores_of_task(self._settings)

    def add_query(self, id: int, places: tuple[Source, Source]) -> None:
        """Take the start of an SQL query, and where it reads and writes."""
        self._query_places[str(id)] = places

    def to_record(self) -> Application:
        """The application; `UnreadableFile` if no task has ended."""
        stages = [each for each in self._stages.values() if each.task_ends]
        if not stages:
            raise UnreadableFile("an event log in which a task has ended")
        began = self._began or min(each.began for each in stages)
        last = max(self._last, *(each.last_task for each in stages))
        ended = max(self._ended if self._ended is not None else last, began)
        settings = self._settings or {}
        parents = self._parents(stages)
        return Application(
            id=one_line(self._id),
            attempt=one_line(self._attempt),
            name=one_line(self._name),
            engine="spark",
            version=one_line(self._version),
            began_at=datetime.datetime.fromtimestamp(began / MS, datetime.UTC).isoformat(
                timespec="seconds"
            ),
            seconds=(ended - began) / MS,
            ended=self._ended is not None,
            failed_jobs=self._failed_jobs,
            executors=self._executors.to_records(began, ended, _cores(settings)),
            stages=[
                each.to_record(began, ended, parents[each.id])
                for each in sorted(stages, key=lambda one: (one.began, one.id, one.attempt))
            ],
            cached=self._cache.to_records(self._rdd_names),
            settings=dict(sorted(settings.items())),
            notes=self._notes(),
        )

    def _notes(self) -> list[str]:
        notes = []
        if self._ended is None:
            notes.append(
                "The log has no end of the application: it was still running, or was killed. Its "
                "time is counted until the last event."
            )
        if self._settings is None:
            notes.append("The log does not state the application's settings.")
        return notes

    def _job_start(self, event: events.JobStart) -> None:
        query = (event.properties or {}).get(QUERY)
        for stage in event.stages:
            if query is not None:
                self._stage_query[stage.id] = query
            if stage.rdds:
                self._planned_rdds[stage.id] = stage.rdds[0].id

    def _stage_completed(self, info: events.StageInfo) -> None:
        self._stage(info).describe(info)
        self._last = max(self._last, info.ended or 0)
        for rdd in info.rdds:
            if rdd.is_cached:
                self._stored.add(rdd.id)
                self._rdd_names[rdd.id] = rdd.name
                self._cache.update_total(rdd.id, rdd.memory_bytes, rdd.disk_bytes)

    def _stage(self, info: events.StageInfo) -> StageSums:
        key = info.id, info.attempt
        stage = self._stages.get(key)
        if stage is None:
            stage = self._stages[key] = StageSums(*key)
        if stage.rdd is None and info.rdds:
            stage.rdd = info.rdds[0].id
            query = self._stage_query.get(info.id, "")
            scanned, written = self._query_places.get(query, ("unknown", "unknown"))
            data = lineage(info.rdds, self._stored)
            stage.describe_data(data.computed)
            stage.reads_from = _source(data, scanned)
            stage.writes_to = written
        return stage

    def _task_end(self, event: events.TaskEnd) -> None:
        key = event.stage, event.attempt
        stage = self._stages.get(key)
        if stage is None:
            stage = self._stages[key] = StageSums(*key)
        self._executors.add_task(event.task)
        cores = self._executors.cores_of(event.task.executor)
        stage.add_task(event, max(cores // self._cores_of_task, 1))
        if event.metrics is not None:
            for block in event.metrics.blocks or ():
                self._cache.update(block.id, block.status.memory_bytes, block.status.disk_bytes)

    def _parents(self, stages: list[StageSums]) -> dict[int, list[int]]:
        """For each stage the stages that made what it reads, not those that were skipped."""
        ran = {each.id for each in stages}
        makers = {each.rdd: each.id for each in reversed(stages) if each.rdd is not None}
        parents = {}
        for stage in stages:
            found = (
                parent if parent in ran else makers.get(self._planned_rdds.get(parent, -1))
                for parent in stage.parents
            )
            parents[stage.id] = sorted({each for each in found if each not in (None, stage.id)})
        return parents


def _source(data: Lineage, scanned: Source) -> Source:
    if data.from_cache:
        return "unknown" if data.from_input else "cache"
    named = place_of(each.name for each in data.computed)
    return named if named != "unknown" else scanned


class _CacheSizes:
    """The sizes of cached data sets, and the most that each had. Logs rarely have them."""

    def __init__(self) -> None:
        self._blocks: dict[str, tuple[int, int]] = {}
        self._now: dict[int, tuple[int, int]] = {}
        self._most: dict[int, tuple[int, int]] = {}

    def update(self, block: str, memory: int, disk: int) -> None:
        """Take the new size of a block; zero if it was evicted."""
        if (cached := CACHED_BLOCK.fullmatch(block)) is None:
            return
        before = self._blocks.get(block, (0, 0))
        self._blocks[block] = memory, disk
        now = self._now.get(int(cached[1]), (0, 0))
        sizes = now[0] + memory - before[0], now[1] + disk - before[1]
        self._now[int(cached[1])] = sizes
        self.update_total(int(cached[1]), *sizes)

    def update_total(self, rdd: int, memory: int, disk: int) -> None:
        if memory or disk:
            most = self._most.get(rdd, (0, 0))
            self._most[rdd] = max(most, (memory, disk), key=sum)

    def to_records(self, names: dict[int, str]) -> list[CachedDataSet]:
        return [
            CachedDataSet(
                name=one_line(names.get(rdd, f"RDD {rdd}")), memory_bytes=memory, disk_bytes=disk
            )
            for rdd, (memory, disk) in sorted(self._most.items())
        ]


def _size_settings(settings: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in settings.items() if SETTINGS.fullmatch(name)}
    if "spark.master" in kept:
        kept["spark.master"] = kept["spark.master"].partition("://")[0]  # Without its host.
    return {name: one_line(value) for name, value in kept.items()}


def _cores(settings: dict[str, str]) -> int | None:
    value = settings.get("spark.executor.cores", "")
    return int(value) if re.fullmatch("[0-9]{1,6}", value) else None
