"""MapReduce: functions over Arrow record batches between the sort's two passes.

::

    local     the steps on one machine          cluster, worker   the same on a cluster
    inputs    files and their splits            mapper            calls map, checks what it returns
    shuffle   pass one                          reducer           pass two
    keys      partitions, order and groups      blocks            rows as they are shuffled
    functions helpers for users' functions
"""

from tonnage.run.mapreduce.functions import counts, groups, per_record, sums
from tonnage.run.mapreduce.inputs import Input
from tonnage.run.mapreduce.local import Functions, run_map_reduce

__all__ = ["Functions", "Input", "counts", "groups", "per_record", "run_map_reduce", "sums"]
