"""A node's part in observing a command on a cluster: it samples its machine's counters until told.

The samples are its news: the driver takes them every second, and those that it has are dropped.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar

from tonnage.base import core
from tonnage.base.system import procfs
from tonnage.base.system.device_names import network_cards
from tonnage.cluster.failure_kinds import Stopped
from tonnage.cluster.protocol import Idle, Message, Step
from tonnage.cluster.step_worker import Handler, WorkerSteps
from tonnage.measure.observe.nodes.node_series import MAX_POINTS

WAKE_SECONDS = 0.5
"""How often a node that waits for its next sample looks whether it has to stop."""


class DiskSample(Message, frozen=True):
    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    busy_seconds: float
    waited_seconds: float


class MachineSample(Message, frozen=True):
    """A machine's counters at a moment of its monotonic clock; they are since its start."""

    seconds: float
    cores: int
    link_bytes_per_second: float | None
    busy_seconds: float
    waiting_seconds: float
    stolen_seconds: float
    busiest_core: float
    """The busiest core's share of the time since the previous sample."""
    memory_bytes: int
    received_bytes: int
    sent_bytes: int
    disks: dict[str, DiskSample]


class Watch(Message, frozen=True):
    """Sample this often, or less often as time passes, until the driver ends the step."""

    interval_seconds: float


WATCH = Step("watch", Watch, NoneType, news=MachineSample, idle=Idle.ALONE)


class MachineReader:
    """Reads the counters of this machine."""

    def __init__(self) -> None:
        self._cores = procfs.seconds_of_each_core()
        self._read_at = time.monotonic()

    def read(self) -> MachineSample:
        now = time.monotonic()
        apart = procfs.seconds_of_each_core()
        total = procfs.core_seconds()
        busiest = max(
            (
                core.busy - self._cores[name].busy
                for name, core in apart.items()
                if name in self._cores
            ),
            default=0.0,
        )
        passed = now - self._read_at
        self._cores, self._read_at = apart, now
        links = procfs.interfaces(os.getpid())
        cards = network_cards(links)
        return MachineSample(
            seconds=now,
            cores=len(apart),
            link_bytes_per_second=procfs.link_bytes_per_second(),
            busy_seconds=total.busy,
            waiting_seconds=total.waiting,
            stolen_seconds=total.stolen,
            # The kernel counts in ticks, so that a short time can have more than its own.
            busiest_core=min(busiest / passed, 1.0) if passed > 0 else 0.0,
            memory_bytes=procfs.meminfo_bytes("MemTotal") - procfs.meminfo_bytes("MemAvailable"),
            received_bytes=sum(links[name][0] for name in cards),
            sent_bytes=sum(links[name][1] for name in cards),
            disks={
                name: DiskSample(
                    disk.read_bytes,
                    disk.written_bytes,
                    disk.reads,
                    disk.writes,
                    disk.busy_seconds,
                    disk.waited_seconds,
                )
                for name, disk in procfs.base_disks().items()
            },
        )


@dataclass(frozen=True)
class WatchTask:
    TITLE: ClassVar[str] = "NodeWatcher"

    make_reader: Callable[[], MachineReader] = MachineReader

    def steps(self) -> WatchSteps:
        return WatchSteps(self.make_reader())


class WatchSteps(WorkerSteps):
    def __init__(self, reader: MachineReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._samples: list[MachineSample] = []
        self._taken = 0
        """How many samples the driver has, which are not kept here."""

    def handlers(self) -> Sequence[Handler[Any, Any]]:
        return (Handler(WATCH, self.watch),)

    def watch(self, request: Watch, on_progress: core.OnProgress) -> None:
        began = time.monotonic()
        self._sample()
        self.context.note_news()  # The driver starts the command when all nodes have one.
        try:
            while True:
                step = max(request.interval_seconds, (time.monotonic() - began) / MAX_POINTS)
                due = time.monotonic() + step
                while (left := due - time.monotonic()) > 0:
                    self.context.check_stopped()
                    time.sleep(min(left, WAKE_SECONDS))
                    self.context.note_progress()
                self.context.check_stopped()
                self._sample()
        except Stopped:
            self._sample()

    def news(self, known: int) -> list[MachineSample]:
        with self._lock:
            del self._samples[: max(known - self._taken, 0)]
            self._taken = max(self._taken, known)
            return list(self._samples)

    def _sample(self) -> None:
        sample = self._reader.read()
        with self._lock:
            self._samples.append(sample)
