"""Applications of another engine as their logs report them, made up."""

from __future__ import annotations

from typing import Any

from tonnage.base.records.application import Application, ApplicationStage, Executor, TasksInTurn

GB = 10**9


def turn(tasks: int, seconds: float, read_bytes: int = 0) -> TasksInTurn:
    """So many early tasks that each took and read so much."""
    return TasksInTurn(tasks=tasks, seconds=tasks * seconds, read_bytes=tasks * read_bytes)


def stage(id: int, began: float, seconds: float, tasks: int, **given: Any) -> ApplicationStage:
    """A stage of even tasks on four slots, which they fill unless ``task_seconds`` are given."""
    each = given.get("task_seconds", seconds * 4) / tasks
    usual: dict[str, Any] = {
        "id": id,
        "attempt": 0,
        "name": f"call at line {id}",
        "operators": [],
        "parents": [],
        "began_seconds": began,
        "seconds": seconds,
        "finished": True,
        "tasks": tasks,
        "finished_tasks": tasks,
        "failed_tasks": 0,
        "killed_tasks": 0,
        "speculative_tasks": 0,
        "read_bytes": {},
        "shuffle_remote_bytes": 0,
        "shuffle_local_bytes": 0,
        "shuffle_written_bytes": 0,
        "spilled_bytes": 0,
        "written_bytes": {},
        "task_seconds": each * tasks,
        "early_tasks": [turn(min(tasks, 4), each)],
        "run_seconds": each * tasks,
        "cpu_seconds": each * tasks,
        "python": False,
        "gc_seconds": 0.0,
        "deserialize_seconds": 0.0,
        "fetch_wait_seconds": 0.0,
        "shuffle_write_seconds": 0.0,
        "lost_seconds": 0.0,
        "median_task_seconds": each,
        "p90_task_seconds": each,
        "longest_task_seconds": each,
        "longest_task_bytes": 0,
        "largest_task_bytes": 0,
        "peak_memory_bytes": 0,
    }
    return ApplicationStage(**(usual | given))


def application(*stages: ApplicationStage, seconds: float = 100.0, **given: Any) -> Application:
    """An application on two executors of two cores each."""
    usual: dict[str, Any] = {
        "id": "app-1",
        "attempt": "",
        "name": "nightly",
        "engine": "spark",
        "version": "4.0.0",
        "began_at": "2026-01-01T00:00:00+00:00",
        "seconds": seconds,
        "ended": True,
        "failed_jobs": 0,
        "executors": [
            Executor(
                host=host,
                cores=2,
                memory_bytes=2 * GB,
                began_seconds=0.0,
                ended_seconds=seconds,
            )
            for host in range(2)
        ],
        "stages": list(stages),
        "cached": [],
        "settings": {},
        "notes": [],
    }
    return Application(**(usual | given))
