"""Text as sar prints it, of nodes whose rates are known."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

MIB = 1 << 20


@dataclass(frozen=True)
class Stretch:
    """What a node does for so many samples; bytes are per second."""

    samples: int
    busy_percent: float = 1.0
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    received_bytes: float = 0.0
    sent_bytes: float = 0.0
    util_percent: float = 0.0
    used_kilobytes: int = 2_000_000


def sar_text(
    host: str,
    stretches: Sequence[Stretch],
    *,
    cores: int = 4,
    begin: datetime = datetime(2026, 11, 20, 22, 0, 0),
    interval: int = 10,
) -> str:
    """``sar -u -r -d -n DEV`` of one node; dm-0 and br0 pass on what sda and eth0 do."""
    samples = [stretch for stretch in stretches for _ in range(stretch.samples)]

    def clock(number: int) -> str:
        return (begin + timedelta(seconds=interval * number)).strftime("%H:%M:%S")

    def table(head: str, *rows: str) -> list[str]:
        lines = ["", f"{clock(0)} {head}"]
        for number, each in enumerate(samples, 1):
            lines += [f"{clock(number)} {row.format(s=each, kb=_kilobytes(each))}" for row in rows]
        return lines

    lines = [
        f"Linux 6.1.0 ({host}) \t{begin:%m/%d/%y} \t_x86_64_\t({cores} CPU)",
        *table(
            "CPU %user %nice %system %iowait %steal %idle",
            "all {s.busy_percent:.2f} 0.00 0.00 2.00 0.50 {kb[idle]:.2f}",
        ),
        *table(
            "kbmemfree kbavail kbmemused %memused kbbuffers kbcached",
            "8000000 9000000 {s.used_kilobytes} {kb[memory]:.2f} 100000 5900000",
        ),
        *table(
            "DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util",
            "sda 10.00 {kb[read]:.2f} {kb[written]:.2f} 0.00 4.00 1.00 1.00 {s.util_percent:.2f}",
            "dm-0 10.00 {kb[read]:.2f} {kb[written]:.2f} 0.00 4.00 1.00 1.00 {s.util_percent:.2f}",
        ),
        *table(
            "IFACE rxpck/s txpck/s rxkB/s txkB/s rxcmp/s txcmp/s rxmcst/s %ifutil",
            "lo 1.00 1.00 999.00 999.00 0.00 0.00 0.00 0.00",
            "eth0 1.00 1.00 {kb[received]:.2f} {kb[sent]:.2f} 0.00 0.00 0.00 {kb[used]:.2f}",
            "br0 1.00 1.00 {kb[received]:.2f} {kb[sent]:.2f} 0.00 0.00 0.00 0.00",
        ),
        "Average: all 1 2 3",
        "",
    ]
    return "\n".join(lines)


LINK = 1.25e9
"""Bytes per second of each node's link."""
MEMORY_KILOBYTES = 16_000_000


def _kilobytes(each: Stretch) -> dict[str, float]:
    return {
        "read": each.read_bytes / 1024,
        "written": each.written_bytes / 1024,
        "received": each.received_bytes / 1024,
        "sent": each.sent_bytes / 1024,
        "used": 100 * max(each.received_bytes, each.sent_bytes) / LINK,
        "memory": 100 * each.used_kilobytes / MEMORY_KILOBYTES,
        "idle": 100 - each.busy_percent - 2.5,
    }
