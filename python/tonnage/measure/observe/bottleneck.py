"""What a phase was limited by: the resource used most, if it was used half of the time.

Were one that is used less infinitely fast, the phase would still last more than half as long. A
disk limits while its device is busy, or while what is watched waits for I/O, as the kernel counts
it: a control group or a network may hold it back in front of a device that is idle. That others had
the cores counts only where nothing that it used itself explains its time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST = 0.5
"""A resource that is used for a smaller share of the time does not limit."""
NEAR = 0.1
"""Resources whose shares differ by no more are equally near."""
OWN = 0.5
"""A device's time is taken for that of what is watched if so much of what it moved was."""
ONE_WAY = 0.9
"""A phase that reads (or writes) this share of its bytes does nothing else."""

CORE_WAITS, IO_WAITS = "waits for a core", "waits for I/O"
CORES = ("cpu", "one core", CORE_WAITS)


@dataclass(frozen=True)
class MachineCapacity:
    """What there was to use."""

    cores: int
    link_bytes_per_second: float | None


def utilisation(
    series: dict[str, list[float]],
    devices: dict[str, list[float | str]],
    machine: MachineCapacity,
    begin: float,
    end: float,
    counts: dict[str, float],
) -> dict[str, float]:
    """How far each resource was used from ``begin`` to ``end``; see `ObservedPhase.shares`."""
    lasting = max(end - begin, 1e-9)
    seconds = series["seconds"]
    found = {
        "cpu": counts["cpu_seconds"] / lasting / machine.cores,
        "one core": _weighted(seconds, series["busiest_core"], begin, end),
        CORE_WAITS: _risen(seconds, series["core_waits_seconds"], begin, end) / lasting,
    }
    if series["io_waits_seconds"][-1]:
        found[IO_WAITS] = _risen(seconds, series["io_waits_seconds"], begin, end) / lasting
    moved = counts["read_bytes"] + counts["written_bytes"]
    for name, table in _by_device(devices).items():
        of_all = sum(
            _risen(table["seconds"], table[kind], begin, end)
            for kind in ("read_bytes", "written_bytes")
        )
        if of_all and moved >= OWN * of_all:
            found[name] = _risen(table["seconds"], table["busy_seconds"], begin, end) / lasting
    if machine.link_bytes_per_second:
        sent = max(counts["network_sent_bytes"], counts["network_received_bytes"])
        found["network"] = sent / lasting / machine.link_bytes_per_second
    return {name: share if name == CORE_WAITS else min(share, 1.0) for name, share in found.items()}


def find_bottleneck(
    used: dict[str, float], counts: dict[str, float], machine: MachineCapacity
) -> tuple[str, str]:
    """The bottleneck's name, and the reason with its figures."""
    figures = ", ".join(f"{_called(name)} {_percent(share)}" for name, share in used.items())
    own = {name: share for name, share in used.items() if name != CORE_WAITS}
    most = _most(own)
    if own[most] < LEAST:
        held = used[CORE_WAITS]
        wanted = {
            "cpu": min(used["cpu"] + held / machine.cores, 1.0),
            "one core": min(used["one core"] + held, 1.0),
        }
        most = _most(wanted)
        if wanted[most] < LEAST:
            return (
                "none: waits",
                f"nothing was used for {_percent(LEAST)} of the time ({figures}): it waited, for "
                "one after the other or for something that is not counted here",
            )
        return most, f"others had the cores that it was ready for: {figures}"
    why = _reason(most, used)
    near = [
        _called(name)
        for name, share in own.items()
        if share >= used[most] - NEAR and _kind(name) != _kind(most)
    ]
    also = f"; equally near: {', '.join(near)}" if near else ""
    return _name(most, counts), f"{why}{also} ({figures})"


def _most(used: dict[str, float]) -> str:
    """The resource used most; all cores rather than one, if both are."""
    most = max(used, key=lambda name: used[name])
    return "cpu" if most == "one core" and used["cpu"] >= used[most] - NEAR else most


def _kind(name: str) -> str:
    if name in CORES:
        return "cores"
    return name if name == "network" else "disk"


def _name(most: str, counts: dict[str, float]) -> str:
    """As a prediction's terms have it."""
    if _kind(most) != "disk":
        return most
    read, written = counts["read_bytes"], counts["written_bytes"]
    if read >= ONE_WAY * (read + written):
        return "disk: read"
    if written >= ONE_WAY * (read + written):
        return "disk: write"
    return "disk: read and write at once"


def _reason(most: str, used: dict[str, float]) -> str:
    share = _percent(used[most])
    if most == "cpu":
        return f"it used {share} of all cores"
    if most == "one core":
        return f"its busiest thread had {share} of a core"
    if most == "network":
        return f"it moved {share} of what its links are said to carry"
    if most != IO_WAITS:
        return f"{most} was busy {share} of the time"
    waited = f"it waited for I/O {share} of the time"
    busy = [each for name, each in used.items() if _kind(name) == "disk" and name != IO_WAITS]
    if not busy or max(busy) >= LEAST:
        return waited
    return f"{waited}, but not for the device: a limit or a network in front of it held it back"


def _called(name: str) -> str:
    return {"cpu": "all cores", "one core": "its busiest thread's core"}.get(name, name)


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
    return _risen(seconds, list(total), begin, end) / max(end - begin, 1e-9)
