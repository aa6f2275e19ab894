"""MapReduce on this machine: functions over Arrow record batches between the sort's two passes.

``job`` puts the steps together; ``inputs`` finds splits, ``reading`` makes batches of them;
``mapping`` calls functions, ``shuffle`` is pass one, ``reducing`` is pass two; ``keys`` says where
rows belong, ``blocks`` how they travel, ``writing`` what they become; ``functions`` are helpers for
users.
"""

from tonnage.run.mapreduce.functions import counts, groups, per_record, sums
from tonnage.run.mapreduce.inputs import Input
from tonnage.run.mapreduce.local import Functions, run_map_reduce

__all__ = ["Functions", "Input", "counts", "groups", "run_map_reduce", "per_record", "sums"]
