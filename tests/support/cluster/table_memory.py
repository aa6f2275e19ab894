"""Sorts tables on nodes that are threads of a process of its own, and tells what that took.

    python -m support.cluster.table_memory ROOM MEMORY_BYTES BY NODE...

sorts ``ROOM/in``, and prints the bytes in memory before, and at most.
"""

import resource
import sys
from pathlib import Path

from support.cluster.sorters import SortMachines, directories
from tonnage.run.sort.cluster.tables import table_sort_job
from tonnage.run.sort.tables import TableOrder
from tonnage.run.two_pass.driver import run_two_pass


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(room: Path, memory_bytes: int, by: str, nodes: list[str]) -> None:
    before = _peak_bytes()
    job = table_sort_job(
        TableOrder(by=by),
        inputs=[str(room / "in")],
        output=directories(room, "out"),
        scratch=directories(room, "scratch"),
        memory_bytes=memory_bytes,
        connections=1,
        command=["test"],
    )
    run_two_pass(SortMachines(*nodes), room / "job", job)
    print(before, _peak_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
