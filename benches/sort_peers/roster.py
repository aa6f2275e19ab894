"""The peers, their commands, and notes on their rows.

Every peer is one program in peers/, called with INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB, or
--version. OUTPUT_DIR and SCRATCH_DIR exist and are empty. MEMORY_MB is all that a peer may use; its
file describes how it divides that. Its CPUs are those of its affinity (nproc, sched_getaffinity).
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent / ".venv/bin/python"

TONNAGE = "tonnage"
FLOOR = "floor"


@dataclass(frozen=True)
class Peer:
    name: str
    program: str
    note: str = ""
    ascii_input: bool = False

    @property
    def command(self) -> list[str]:
        path = str(HERE / "peers" / self.program)
        return [str(PYTHON), path] if self.program.endswith(".py") else [path]

    def version(self, environment: Mapping[str, str]) -> str | None:
        """Return its version, or None if it is not installed."""
        try:
            command = [*self.command, "--version"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
        except FileNotFoundError:
            return None
        if done.returncode != 0:
            return None
        found = re.search(r"\d+(\.\d+)+\S*", done.stdout)
        return found.group() if found else done.stdout.strip()


ROSTER = [
    Peer(TONNAGE, "tonnage.sh"),
    Peer(FLOOR, "floor.sh", note="uniform keys only"),
    Peer("datafusion", "datafusion_sort.py", note="converts to Arrow files first, timed"),
    Peer("duckdb", "duckdb_sort.py", note="converts in a stream, timed"),
    Peer("polars", "polars_sort.py", note="converts in a stream, timed"),
    Peer("pyspark", "spark_sort.py", note="converts in a stream, timed"),
    Peer("ray", "ray_sort.py", note="converts in a stream, timed"),
    Peer("gnu-sort", "gnu_sort.sh", note="ascii input", ascii_input=True),
    Peer("extsort", "extsort.sh"),
    Peer("hadoop", "hadoop.sh"),
]


def environment(tonnage: Path) -> dict[str, str]:
    """Return the environment of every peer."""
    return {**os.environ, "TONNAGE": str(tonnage)}
