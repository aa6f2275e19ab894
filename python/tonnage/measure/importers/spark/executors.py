"""The executors of an application, each from its start to its end."""

from dataclasses import dataclass

from tonnage.base.records.application import Executor
from tonnage.measure.importers.spark import events

MS = 1e3
"""In a second."""
DRIVER = "driver"


@dataclass
class _Lifetime:
    host: str
    cores: int | None
    began: int
    ended: int | None = None
    memory_bytes: int | None = None


class Executors:
    """What events report of executors. In local mode the driver is one."""

    def __init__(self) -> None:
        self._by_id: dict[str, _Lifetime] = {}
        self._driver_memory: int | None = None

    def add(self, event: events.ExecutorAdded) -> None:
        lifetime = self._by_id.get(event.id)
        if lifetime is None:
            self._by_id[event.id] = _Lifetime(event.info.host, event.info.cores, event.time)
        else:  # Its block manager may come first.
            lifetime.host, lifetime.cores = event.info.host, event.info.cores

    def remove(self, event: events.ExecutorRemoved) -> None:
        if event.id in self._by_id:
            self._by_id[event.id].ended = event.time

    def add_memory(self, event: events.BlockManagerAdded) -> None:
        if event.id.executor == DRIVER:
            self._driver_memory = event.most_bytes
            return
        lifetime = self._by_id.setdefault(
            event.id.executor, _Lifetime(event.id.host, None, event.time)
        )
        lifetime.memory_bytes = event.most_bytes

    def add_task(self, task: events.TaskInfo) -> None:
        """An executor that ran a task existed, even if the log does not have its start."""
        lifetime = self._by_id.get(task.executor)
        if lifetime is None:
            self._by_id[task.executor] = _Lifetime(task.host, None, task.began)
        elif task.began < lifetime.began:
            lifetime.began = task.began

    def cores_of(self, executor: str) -> int:
        """How many tasks it runs at once; 1 if that is unknown."""
        return self._by_id[executor].cores or 1

    def to_records(self, began: int, ended: int, cores: int | None) -> list[Executor]:
        """The executors; ``cores`` are those of an executor whose start is not in the log."""
        hosts: dict[str, int] = {}
        return [
            Executor(
                host=hosts.setdefault(each.host, len(hosts)),
                cores=each.cores if each.cores is not None else cores,
                memory_bytes=self._driver_memory if id == DRIVER else each.memory_bytes,
                began_seconds=max(each.began - began, 0) / MS,
                ended_seconds=max(_last(each, ended) - began, 0) / MS,
            )
            for id, each in sorted(self._by_id.items(), key=lambda item: item[1].began)
        ]


def _last(lifetime: _Lifetime, ended: int) -> int:
    return max(ended if lifetime.ended is None else lifetime.ended, lifetime.began)
