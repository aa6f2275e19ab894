"""Of a node's memory, what executors of Apache Spark have, and what of it is for data.

Settings of plans and settings that are written for a plan's machines are the same, but that those
of machines below 15 GiB leave the system more.
spark.apache.org/docs/latest/configuration.html and tuning.html.
"""

NODE_SHARE = 0.8
"""The rest is the system's, its daemons' and its page cache's, from which shuffled data is read.
Dataproc gives YARN as much."""
OVERHEAD = 0.1
"""What an executor has besides its heap, a share of it (spark.executor.memoryOverheadFactor)."""
DATA_SHARE = 0.6
"""Of the heap, what is for data (spark.memory.fraction)."""
MEMORY_FOR_DATA = NODE_SHARE / (1 + OVERHEAD) * DATA_SHARE
"""Of a node's memory, what executors keep data in."""
