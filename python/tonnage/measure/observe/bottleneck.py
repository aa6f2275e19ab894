"""Find a phase's bottleneck: the resource used most, if it was used at least half of the time.

If a less-used resource were infinitely fast, the phase would still take more than half as long. A
disk limits while its device is busy, or while the observed processes wait for I/O: a control group
or a network may throttle them in front of an idle device. Waiting for a core counts only if no
resource that the phase used itself explains its time.
"""

from dataclasses import dataclass

import numpy as np

LEAST = 0.5
"""A resource used for a smaller share of the time is not a bottleneck."""
NEAR = 0.1
"""Resources whose shares differ by no more limit equally."""
OWN = 0.5
"""A device's busy time counts if the observed processes moved this share of its bytes."""
ONE_WAY = 0.9
"""A phase that reads (or writes) this share of its bytes only reads (or writes)."""

CORE_WAITS, IO_WAITS = "waits for a core", "waits for I/O"
CORES = ("cpu", "one core", CORE_WAITS)


@dataclass(frozen=True)
class MachineCapacity:
    cores: int
    link_bytes_per_second: float | None
    is_whole: bool = False
    """All that the machine did is observed, so its busiest core is known, but no thread is."""


def utilisation(
    series: dict[str, list[float]],
    devices: dict[str, list[float | str]],
    machine: MachineCapacity,
    begin: float,
    end: float,
    counts: dict[str, float],
) -> dict[str, float]:
    """The share of each resource used from ``begin`` to ``end``; see `ObservedPhase.shares`."""
    duration = max(end - begin, 1e-9)
    seconds = series["seconds"]
    used = {
        "cpu": counts["cpu_seconds"] / duration / machine.cores,
        "one core": _weighted(seconds, series["busiest_core"], begin, end),
        CORE_WAITS: _increase(seconds, series["core_waits_seconds"], begin, end) / duration,
    }
    if series["io_waits_seconds"][-1]:
        used[IO_WAITS] = _increase(seconds, series["io_waits_seconds"], begin, end) / duration
    moved = counts["read_bytes"] + counts["written_bytes"]
    for name, table in _by_device(devices).items():
        device_total = sum(
            _increase(table["seconds"], table[kind], begin, end)
            for kind in ("read_bytes", "written_bytes")
        )
        if device_total and moved >= OWN * device_total:
            used[name] = _increase(table["seconds"], table["busy_seconds"], begin, end) / duration
    if machine.link_bytes_per_second:
        sent = max(counts["network_sent_bytes"], counts["network_received_bytes"])
        used["network"] = sent / duration / machine.link_bytes_per_second
    return {name: share if name == CORE_WAITS else min(share, 1.0) for name, share in used.items()}


def find_bottleneck(
    used: dict[str, float], counts: dict[str, float], machine: MachineCapacity
) -> tuple[str, str]:
    figures = ", ".join(
        f"{_label(name, machine)} {_percent(share)}" for name, share in used.items()
    )
    own = {name: share for name, share in used.items() if name != CORE_WAITS}
    most = _most(own)
    if own[most] < LEAST:
        waits = used.get(CORE_WAITS, 0.0)
        needed = {
            name: min(used[name] + waits / cores, 1.0)
            for name, cores in (("cpu", machine.cores), ("one core", 1))
            if name in used
        }
        most = _most(needed)
        if needed[most] < LEAST:
            return (
                "none: waits",
                f"no resource was used for {_percent(LEAST)} of the time ({figures}); the job "
                "waited for one resource after another, or for something that is not counted",
            )
        return most, f"its threads waited for cores that other processes used: {figures}"
    why = _reason(most, used, machine)
    near = [
        _label(name, machine)
        for name, share in own.items()
        if share >= used[most] - NEAR and _kind(name) != _kind(most)
    ]
    also = f"; limiting almost as much: {', '.join(near)}" if near else ""
    return _name(most, counts), f"{why}{also} ({figures})"


def _most(used: dict[str, float]) -> str:
    """The resource used most; all cores rather than one core if both are close."""
    most = max(used, key=lambda name: used[name])
    return "cpu" if most == "one core" and used["cpu"] >= used[most] - NEAR else most


def _kind(name: str) -> str:
    if name in CORES:
        return "cores"
    return name if name == "network" else "disk"


def _name(most: str, counts: dict[str, float]) -> str:
    if _kind(most) != "disk":
        return most
    read, written = counts["read_bytes"], counts["written_bytes"]
    if read >= ONE_WAY * (read + written):
        return "disk: read"
    if written >= ONE_WAY * (read + written):
        return "disk: write"
    return "disk: read and write at once"


def _reason(most: str, used: dict[str, float], machine: MachineCapacity) -> str:
    share = _percent(used[most])
    if most == "cpu":
        return f"it used {share} of all cores"
    if most == "one core":
        return (
            f"its busiest core was busy {share} of the time"
            if machine.is_whole
            else f"its busiest thread used {share} of a core"
        )
    if most == "network":
        return f"it used {share} of the nominal bandwidth of its links"
    if most != IO_WAITS:
        return f"{most} was busy {share} of the time"
    waited = f"it waited for I/O {share} of the time"
    busy = [share for name, share in used.items() if _kind(name) == "disk" and name != IO_WAITS]
    if not busy or max(busy) >= LEAST:
        return waited
    return f"{waited}, but not for the device: a rate limit or a network throttled its I/O"


def _label(name: str, machine: MachineCapacity) -> str:
    busiest = "its busiest core" if machine.is_whole else "its busiest thread's core"
    return {"cpu": "all cores", "one core": busiest}.get(name, name)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _by_device(devices: dict[str, list[float | str]]) -> dict[str, dict[str, list[float]]]:
    tables: dict[str, dict[str, list[float]]] = {}
    names = [column for column in devices if column != "device"]
    for place, device in enumerate(devices["device"]):
        table = tables.setdefault(str(device), {name: [] for name in names})
        for name in names:
            table[name].append(float(devices[name][place]))
    return tables


def _increase(seconds: list[float], values: list[float], begin: float, end: float) -> float:
    early, late = np.interp([begin, end], seconds, values)
    return max(float(late - early), 0.0)


def _weighted(seconds: list[float], shares: list[float], begin: float, end: float) -> float:
    """The mean of shares, each of which holds since the previous sample."""
    total = np.concatenate([[0.0], np.cumsum(np.diff(seconds) * np.array(shares[1:]))])
    return _increase(seconds, list(total), begin, end) / max(end - begin, 1e-9)
