"""Numbers and names for readers: with units, and with as many digits as mean something.

Pages and terminal use the same functions.
Rates and sizes are decimal (1 MB = 1e6 B), memory is binary (1 MiB = 2^20 B).
"""

import difflib
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

# Resources of a prediction, as words that can follow "limited by".
RESOURCES = {
    "disk: read": "the disk, reading",
    "disk: write": "the disk, writing",
    "disk: read and write at once": "the disk, reading and writing at once",
    "network: send": "the network, sending",
    "network: receive": "the network, receiving",
    "object get": "the object store, reading",
    "object put": "the object store, writing",
    "cpu": "the CPU",
}
WORK = {"partition": "partitioning", "sort": "sorting", "keys": "taking keys"}

TRIALS = {
    "wo": "write only",
    "ro": "read only",
    "rw": "read and write at once",
    "headroom": "the harness alone",
    "partition": "partition, without disks",
    "sort": "sort, without disks",
}

ABOVE_LIMIT = (
    "it can exceed 100 %, since disks were measured before and after the sort, and their speed "
    "varies"
)

KINDS = {"disk": "Disk capacity", "cpu": "CPU capacity"}


def significant(value: float, digits: int = 3) -> str:
    """A number with at least ``digits`` significant digits, never with an exponent."""
    if value == 0:
        return "0"
    size = abs(value)
    whole = len(str(int(size))) if size >= 1 else 0
    leading = 0
    while not whole and size * 10 ** (leading + 1) < 1 and leading < 9:
        leading += 1
    return _signed(f"{value:,.{max(digits - whole, 0) + leading}f}")


def seconds(value: float) -> str:
    return f"{significant(value)} s"


def seconds_between(low: float, high: float) -> str:
    return f"{significant(low)} – {significant(high)} s"


def seconds_like(largest: float, more: int = 0) -> Callable[[float], str]:
    """A formatter of times with the same number of decimals, chosen by the largest.

    ``more`` adds decimals where times are summed.
    """
    decimals = 0 if largest >= 1000 else 1 if largest >= 100 else 2 if largest >= 0.5 else 3
    decimals += more
    return lambda value: f"{_signed(f'{value:,.{decimals}f}')} s"


def latency(value: float) -> str:
    """A time, in s, ms or µs."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3)):
        if value >= factor:
            return f"{significant(value / factor)} {unit}"
    return f"{significant(value / 1e-6)} µs"


def duration(value: float) -> str:
    """A time, in s, min, h or days."""
    for unit, factor in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if value >= 2 * factor:
            return f"{significant(value / factor, 2)} {unit}"
    return f"{significant(value, 2)} s"


def sentence(text: str) -> str:
    """A text with a capital and a full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def size(count: float) -> str:
    """Bytes, decimal."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{significant(count / factor)} {unit}"
    return f"{count:.0f} B"


def memory(count: float) -> str:
    """Bytes of memory, binary."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 10 << power or (count >= 1 << power and not count % (1 << power)):
            whole = not count % (1 << power)
            return f"{significant(count / (1 << power), 1 if whole else 3)} {unit}"
    return f"{significant(count / (1 << 20))} MiB"


class Unit(NamedTuple):
    """A unit: its name, and its size in base units."""

    name: str
    factor: float


def rate_unit(largest: float) -> Unit:
    """The unit of all rates on one axis."""
    return Unit("GB/s", 1e9) if largest >= 1e10 else Unit("MB/s", 1e6)


def megabytes(rate: float) -> str:
    """A rate in MB/s, without its unit."""
    return significant(rate / 1e6)


def rate(value: float) -> str:
    return f"{megabytes(value)} MB/s"


def per_second(value: float, unit: str) -> str:
    """A rate of bytes, or of operations."""
    return rate(value) if unit == "bytes" else f"{significant(value)} operations/s"


def gigabits(bytes_per_second: float) -> str:
    """A network's bandwidth, as providers state it."""
    return f"{bytes_per_second * 8 / 1e9:.6g} Gbit/s"


def usd(value: float) -> str:
    """A price, with cents at least, and every digit of a price list."""
    whole, _, cents = f"{value:,.6f}".rstrip("0").partition(".")
    return f"${whole}.{cents:0<2}"


def cents(value: float) -> str:
    """An amount of money, in whole cents."""
    return usd(round(value, 2))


def count(value: int) -> str:
    return f"{value:,}"


def several(number: int, noun: str) -> str:
    """A count with its noun: 1 trial, 2 trials."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def percent(fraction: float) -> str:
    figure = 100 * fraction
    return f"{_signed(f'{figure:.{1 if abs(figure) < 10 else 0}f}')} %"


def phase(name: str) -> str:
    return name.replace("_", " ")


def resource(name: str) -> str:
    """A resource of a prediction; an unknown one as it is."""
    return RESOURCES.get(name, name.replace("_", " "))


def bottleneck(stage: str, stages: Iterable[str]) -> str:
    """The resource behind the stage that limits a phase with these stages.

    A disk that is read and written at once is one resource, whichever stage waits for it.
    """
    both = {"read", "write"} <= {*stages}
    if stage in ("read", "write"):
        return RESOURCES["disk: read and write at once" if both else f"disk: {stage}"]
    work = WORK.get(stage, stage.replace("_", " "))
    return f"the CPU, {work}" if stage in WORK else work


def trial(name: str) -> str:
    return TRIALS.get(name, name.replace("_", " "))


def demand(value: float, unit: str) -> str:
    """What a term demands of its resource."""
    return size(value) if unit == "bytes" else f"{significant(value)} {_plain(unit)}"


def capacity(low: float, middle: float, high: float, unit: str) -> str:
    """What a resource gives per second, with its interval."""
    scale, name = (1e6, "MB/s") if unit == "bytes" else (1.0, f"{_plain(unit)}/s")
    if unit == "core seconds":
        name = "cores"  # Core seconds in a second.
    if low == high:
        return f"{significant(middle / scale, 1)} {name}"
    least, most = significant(low / scale), significant(high / scale)
    return f"{significant(middle / scale)} {name} ({least} – {most})"


def mode(values: dict[str, Any]) -> str:
    parts = [
        str(values.get("engine", "unknown engine")),
        "registered memory" if values.get("registered") else "unregistered memory",
        "direct" if values.get("direct") else "buffered by the page cache",
    ]
    why = values.get("why")
    return ", ".join(parts) + (f" ({why})" if why else "")


def command(line: Sequence[str]) -> str:
    return shlex.join(line)


def moment(began_at: str) -> str:
    """A time of day of the record, to the second."""
    day, _, hour = began_at.partition("T")
    zone = " UTC" if hour.endswith(("Z", "+00:00")) else ""
    return f"{day} {hour[:8]}{zone}".strip()


def listing(items: Iterable[str]) -> str:
    """Items as a sentence has them: a, b and c."""
    *most, last = list(items) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion of the closest known name, to append to a message; empty if none is close."""
    lower = {each.lower(): each for each in sorted(known)}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    return f" (did you mean {lower[close[0]]}?)" if close else ""


def setting(name: str, value: Any) -> str:
    """A setting's value, with the unit in its name."""
    last = name.rpartition(".")[2]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "not set"
    if isinstance(value, list):
        return ", ".join(setting(last, each) for each in value) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key} {setting(key, each)}" for key, each in value.items()) or "none"
    if isinstance(value, int):
        # Exact, and readable.
        if last.endswith("bytes") and value >= 1000:
            is_memory = any(
                kind in last for kind in ("memory", "buffer", "block", "slot", "extent")
            )
            readable = memory(value) if is_memory else size(value)
            return f"{count(value)} B ({readable})"
        return f"{count(value)}{_unit(last)}"
    return f"{significant(value)}{_unit(last)}" if isinstance(value, float) else str(value)


def _unit(name: str) -> str:
    units = (("seconds", " s"), ("bytes", " B"))
    return next((unit for ending, unit in units if name.endswith(ending)), "")


def _signed(figure: str) -> str:
    return figure.replace("-", "−")


def _plain(unit: str) -> str:
    return unit.replace("_", " ")
