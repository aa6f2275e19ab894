"""Import hdparm -t and -T: the read speed of a device, and of its cache.

hdparm's megabytes have 1024 times 1024 bytes. Failed ioctls do not affect the speed; they are kept
among the details.
"""

import re

from tonnage.base.records import Metric, Source
from tonnage.measure.importers.metric import UnreadableFile, build_metric
from tonnage.measure.importers.text import lines, number
from tonnage.measure.trial.cache_detection import cache_reason

TOOL = "hdparm"

_UNITS = {"MB": 1 << 20, "kB": 1 << 10, "KB": 1 << 10, "GB": 1 << 30}
_DEVICE = re.compile(r"(/\S+):")
_TIMING = re.compile(
    r"\s*Timing ((?:O_DIRECT |buffered |buffer-)?(?:disk|cached?|cache)) reads?"
    r"(?: \(offset ([^)]*)\))?:\s*(.*)"
)
_RESULT = re.compile(r"([0-9]+) ([MkKG]B) in\s+([0-9.]+) seconds\s*=\s*([0-9.]+) ([MkKG]B)/sec\s*")
_FAILURE = re.compile(r".*(failed|not permitted|not supported|Inappropriate|EOF).*", re.IGNORECASE)


def matches(text: str) -> bool:
    return any(_TIMING.match(line) for _, line in lines(text))


def read(text: str) -> list[Metric]:
    found: list[Metric] = []
    warnings: list[str] = []
    device = None
    for at, line in lines(text):
        if name := _DEVICE.fullmatch(line.strip()):
            device = name[1]
        elif timing := _TIMING.match(line):
            result = _RESULT.fullmatch(timing[3])
            if result:
                found.append(_reading(timing, result, device, f"line {at}"))
            elif _FAILURE.fullmatch(line):
                warnings.append(line.strip())
            else:
                raise UnreadableFile("the seconds and MB/sec of a timing", f"line {at}")
        elif _FAILURE.fullmatch(line):
            warnings.append(line.strip())
    if not found:
        why = f" (hdparm reports: {warnings[0]})" if warnings else ""
        raise UnreadableFile(f"a completed timing{why}")
    for reading in found:
        reading.details.update({"warnings": warnings} if warnings else {})
    return found


def _reading(
    timing: re.Match[str], result: re.Match[str], device: str | None, where: str
) -> Metric:
    kind, offset, _ = timing.groups()
    direct = kind.startswith("O_DIRECT")
    speed = number(result[4], "a speed", where) * _UNITS[result[5]]
    if "cache" in kind:
        whose = "the device's" if direct else "the page"
        why = f"hdparm -T times reads from {whose} cache"
    else:
        why = cache_reason(direct, speed) or ""
    return build_metric(
        source=Source(tool=TOOL),
        operation="read",
        direct=direct,
        concurrency=1,
        bandwidth_bytes_per_second=speed,
        cached=why or None,
        details={
            "device": device,
            "timing": kind,
            "offset": offset,
            "bytes": number(result[1], "a size", where) * _UNITS[result[2]],
            "seconds": number(result[3], "seconds", where),
        },
    )
