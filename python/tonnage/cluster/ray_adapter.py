"""A Ray cluster as the driver sees it: machines, and a process on each. No other file imports Ray.

A process is bound to its machine by the machine's id (hard node affinity), not by a strictly spread
placement group: Ray places a group whole or not at all, so one machine that dies or is full would
hold up all others without being named. It reserves no CPU, since a busy machine is to be measured
as it is.
"""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import ray
import ray.cloudpickle
from ray.exceptions import ActorUnavailableError, AuthenticationError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tonnage.base import core
from tonnage.base.records.environment import MACHINE_TYPE
from tonnage.cluster import actor, time_limits, version_check
from tonnage.cluster.version_check import InstalledVersion

AUTO = "auto"
TYPE_SEPARATOR = "@"
"""In an address, between the type of machines and where their cluster is."""
NO_CLUSTER = "no cluster answers at this address; start one with ray start --head"
RAY_LABEL_PREFIX = "ray.io/"
RAY_LABEL_NAMES = {
    "availability-region": "region",
    "availability-zone": "zone",
    "market-type": "market",
}
"""Ray's names of labels, and ours. Its other labels do not describe a machine."""


class WorkerLost(Exception):
    """A worker that died, or raised an exception: why, in a line, and all that Ray says of it."""

    def __init__(self, why: str, error: str | None = None) -> None:
        super().__init__(why)
        self.error = error


@dataclass(frozen=True)
class Machine:
    name: str
    """Ray's name for it, which is its address unless it was given a name; names are unique."""
    labels: Mapping[str, str]
    address: str
    """Of its network interface in the cluster."""
    _id: str = field(repr=False)


Call = Any
"""A reply of a worker, to come."""


class RemoteWorker:
    """A process on a node (`actor.ActorShell`), whose methods are called one after another."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def installed_version(self) -> Call:
        return self._handle.installed_version.remote()

    def start(self, make: Callable[[], Any]) -> Call:
        return self._handle.start.remote(make)

    def send(self, message: bytes, attached: Call | bytes | None = None) -> Call:
        """Sends the worker a message; an attached `Call`'s reply goes from node to node."""
        return self._handle.handle.remote(message, *([] if attached is None else [attached]))

    def kill(self) -> None:
        """Ends the process at once, if it is there."""
        with suppress(RayError, ValueError):
            ray.kill(self._handle)


class Cluster:
    """A cluster that this process is connected to; made by `connect`."""

    def __init__(self, kind: str = "") -> None:
        listed = [each for each in ray.nodes() if each["Alive"]]
        names = [each["NodeName"] for each in listed]
        self.machines = [
            Machine(
                name=name if names.count(name) == 1 else f"{name}-{each['NodeID'][:6]}",
                labels=_labels(each.get("Labels") or {}),
                address=each["NodeManagerAddress"],
                _id=each["NodeID"],
            )
            for name, each in zip(names, listed, strict=True)
        ]
        self.machines.sort(key=lambda machine: machine.name)
        if kind:
            self.machines = _of_kind(kind, self.machines)

    def place_actor(self, machine: Machine, title: str) -> RemoteWorker:
        """A process, called ``title`` in lists; it need not be there when this returns."""
        shell = type(title, (actor.ActorShell,), {"__module__": actor.__name__})
        made = ray.remote(shell).options(**_bound(machine), max_restarts=0, max_task_retries=0)
        return RemoteWorker(made.remote())

    def wait(self, calls: Sequence[Call], seconds: float, least: int = 1) -> list[Call]:
        """The calls whose replies are here, when there are so many at least, or after so long."""
        if not calls:
            return []
        ray.wait(list(calls), num_returns=least, timeout=seconds)
        done, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0)
        return list(done)

    def answer(self, call: Call, seconds: float) -> Any:
        """The reply to a call.

        `WorkerLost` if the worker died or raised; `TimeoutError` if there is no reply within so
        long, or the connection is broken.
        """
        try:
            return ray.get(call, timeout=seconds)
        except (TimeoutError, ActorUnavailableError) as why:
            raise TimeoutError from why
        except RayTaskError as why:
            cause = why.as_instanceof_cause()
            raise WorkerLost(_first_line(cause.args[0] if cause.args else cause), str(why)) from why
        except RayError as why:
            raise WorkerLost(
                "died: the node, or Ray's process on the node, has ended", str(why)
            ) from why


@contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """Connect to a cluster: ``HOST:PORT``, or `AUTO` for this machine's; ``TYPE@`` limits machines.

    `UsageError` if there is none, it has another version, it refuses us, or no machine has the
    type.
    """
    kind, _, address = address.rpartition(TYPE_SEPARATOR)
    if address.startswith("ray://"):
        raise core.UsageError(
            f"{address}: Ray Client addresses are not supported; run this command on a node of the "
            "cluster, with the address HOST:PORT",
            setting="cluster",
        )
    where = os.environ.get("RAY_ADDRESS", "") if address == AUTO else address
    if where not in ("", AUTO):
        _refuse_silent(where, where if where == address else f"{AUTO} (RAY_ADDRESS={where})")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with _stderr_suppressed():
            # What workers print would come between our lines; what matters is in their results.
            ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL)
        # Ray prints what it notices about nodes on standard output, whatever was asked for.
        ray._private.worker._worker_logs_enabled = False
    except (ConnectionError, RuntimeError, ValueError, RayError) as why:
        raise core.UsageError(f"{address}: {_refusal(why)}", setting="cluster") from why
    finally:
        # Ray installs its own handlers; a command that is interrupted has to stop its workers.
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)
    try:
        with _sent_by_value((actor, version_check)):
            yield Cluster(kind)
    finally:
        ray.shutdown()


def pickle_with_modules(thing: object, modules: Iterable[ModuleType]) -> bytes:
    """An object pickled together with these modules, for machines that do not have them."""
    with _sent_by_value(modules):
        data: bytes = ray.cloudpickle.dumps(thing)
    return data


@contextmanager
def _sent_by_value(modules: Iterable[ModuleType]) -> Iterator[None]:
    """Pickles objects of these modules by value in this block: nodes need not have them."""
    with ExitStack() as stack:
        for module in modules:
            ray.cloudpickle.register_pickle_by_value(module)
            stack.callback(ray.cloudpickle.unregister_pickle_by_value, module)
        yield


def installed_here() -> InstalledVersion:
    return InstalledVersion(*version_check.installed_version())


def _of_kind(kind: str, machines: Sequence[Machine]) -> list[Machine]:
    found = [each for each in machines if each.labels.get(MACHINE_TYPE) == kind]
    if not found:
        known = sorted({each.labels.get(MACHINE_TYPE, "no type") for each in machines})
        raise core.UsageError(
            f"{kind}{TYPE_SEPARATOR}...: no node has the label {MACHINE_TYPE}={kind}; the nodes "
            f"have {', '.join(known)}; omit the type, or start Ray on the nodes with this label",
            setting="cluster",
        )
    return found


def _bound(machine: Machine) -> dict[str, Any]:
    strategy = NodeAffinitySchedulingStrategy(machine._id, soft=False)
    return {"scheduling_strategy": strategy, "num_cpus": 0}


def _labels(given: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, value in given.items():
        own = name.removeprefix(RAY_LABEL_PREFIX)
        if name == own:
            found[name] = value
        elif own in RAY_LABEL_NAMES:
            found[RAY_LABEL_NAMES[own]] = value
    return found


def _refuse_silent(address: str, given: str) -> None:
    """Refuses an address where nobody listens, which Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise core.UsageError(f"{given}: not an address; use HOST:PORT, or auto", setting="cluster")
    try:
        socket.create_connection((host.strip("[]"), int(port)), time_limits.CONNECT_SECONDS).close()
    except (OSError, OverflowError) as why:
        raise core.UsageError(f"{given}: {NO_CLUSTER} ({why})", setting="cluster") from why


@contextmanager
def _stderr_suppressed() -> Iterator[None]:
    """Keeps Ray's native code from printing on standard error: what matters it also raises."""
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def _refusal(why: BaseException) -> str:
    """Why Ray did not connect, in words; it wraps the first error in those that followed."""
    said = ""
    cause: BaseException | None = why
    while cause is not None:
        said, cause = f"{said} {cause}", cause.__cause__
    if "InvalidAuthToken" in said or isinstance(why, AuthenticationError):
        return (
            "the cluster requires a token; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH=FILE "
            "(docs/concepts/security.md)"
        )
    if "ersion mismatch" in said:
        versions = " ".join(str(why).split())
        return (
            f"the cluster uses another version of Ray or Python; use the same on both ({versions})"
        )
    return f"{NO_CLUSTER} ({_first_line(why)})"


def _first_line(said: object) -> str:
    return next((line.strip() for line in str(said).splitlines() if line.strip()), "no reason")
