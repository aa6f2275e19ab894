"""What a phase was limited by: the resource used most, if it was used nearly all the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SATURATED = 0.8
"""A resource that is used less than this share limits nothing by itself."""
OWN = 0.05
"""A device counts only if so much of what it moved was for what is watched; full cores likewise."""
ONE_WAY = 0.9
"""A phase that reads (or writes) this share of its bytes does nothing else."""


FOREIGN = "cpu by anyone"


@dataclass(frozen=True)
class Machine:
    """What there was to use."""

    cores: int
    link_bytes_per_second: float | None


def shares(
    series: dict[str, list[float]],
    devices: dict[str, list[float | str]],
    machine: Machine,
    begin: float,
    end: float,
    counts: dict[str, float],
) -> dict[str, float]:
    """How far each resource was used from ``begin`` to ``end``; see `ObservedPhase.shares`."""
    lasting = max(end - begin, 1e-9)
    busy, idle, waiting, stolen = (
        _risen(series["seconds"], series[f"host_{name}_seconds"], begin, end)
        for name in ("busy", "idle", "iowait", "steal")
    )
    every = busy + idle + waiting + stolen
    own = min(counts["cpu_seconds"] / lasting / machine.cores, 1.0)
    found = {
        "cpu": own,
        # The kernel's ticks are coarse; what is watched may be known better.
        FOREIGN: max((busy + stolen) / every if every else 0.0, own),
        "one core": _weighted(series["seconds"], series["busiest_core"], begin, end),
    }
    moved = counts["read_bytes"] + counts["written_bytes"]
    for name, table in _by_device(devices).items():
        of_all = _risen(table["seconds"], table["read_bytes"], begin, end) + _risen(
            table["seconds"], table["written_bytes"], begin, end
        )
        if of_all and moved >= OWN * of_all:
            used = _risen(table["seconds"], table["busy_seconds"], begin, end) / lasting
            found[name] = min(used, 1.0)
    if machine.link_bytes_per_second:
        sent = max(counts["network_sent_bytes"], counts["network_received_bytes"])
        found["network"] = min(sent / lasting / machine.link_bytes_per_second, 1.0)
    return found


def limit(
    used: dict[str, float],
    counts: dict[str, float],
    devices: dict[str, list[float | str]],
    lasting: float,
    machine: Machine,
    when: tuple[float, float],
) -> tuple[str, str]:
    """The bottleneck's name, and the reason with its figures."""
    # Others count only where nothing that it uses itself is full, and never for what sleeps.
    most = max(used.keys() - {FOREIGN}, key=lambda name: used[name])
    if used[most] < SATURATED <= used[FOREIGN] and used["cpu"] >= OWN:
        most = FOREIGN
    figures = ", ".join(f"{_called(name)} {_percent(share)}" for name, share in used.items())
    if used[most] < SATURATED:
        return (
            "none: waits",
            f"nothing was used to {_percent(SATURATED)} ({figures}): it waited, for one after the "
            "other or for something that is not counted here",
        )
    cores = counts["cpu_seconds"] / max(lasting, 1e-9)
    if most in ("cpu", FOREIGN):
        return "cpu", f"all cores {_percent(used[most])} used; {cores:.2f} of {machine.cores} by it"
    if most == "one core":
        return "one core", f"its busiest thread had {_percent(used[most])} of a core; {figures}"
    if most == "network":
        return "network", f"{_percent(used[most])} of what its links are said to carry; {figures}"
    table = _by_device(devices)[most]
    busy = _risen(table["seconds"], table["busy_seconds"], *when)
    waited = _risen(table["seconds"], table["waited_seconds"], *when)
    at_once = waited / busy if busy else 0.0
    read, written = counts["read_bytes"], counts["written_bytes"]
    name = "disk: read and write at once"
    if read >= ONE_WAY * (read + written):
        name = "disk: read"
    elif written >= ONE_WAY * (read + written):
        name = "disk: write"
    return (
        name,
        f"{most} was busy {_percent(used[most])} of the time, {at_once:.1f} at once; {figures}",
    )


def _called(name: str) -> str:
    return {
        "cpu": "cores",
        FOREIGN: "cores with others",
        "one core": "the busiest thread's core",
    }.get(name, name)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _by_device(devices: dict[str, list[float | str]]) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    names = [column for column in devices if column != "device"]
    for place, device in enumerate(devices["device"]):
        table = found.setdefault(str(device), {name: [] for name in names})
        for name in names:
            table[name].append(float(devices[name][place]))
    return found


def _risen(seconds: list[float], values: list[float], begin: float, end: float) -> float:
    early, late = np.interp([begin, end], seconds, values)
    return max(float(late - early), 0.0)


def _weighted(seconds: list[float], shares: list[float], begin: float, end: float) -> float:
    """The mean of shares that each hold since the sample before."""
    total = np.concatenate([[0.0], np.cumsum(np.diff(seconds) * np.array(shares[1:]))])
    return min(_risen(seconds, list(total), begin, end) / max(end - begin, 1e-9), 1.0)
