"""The runtime of all jobs on a cluster: a driver, and a worker on each node, placed by Ray.

The driver's side is `worker_pool` (which workers there are), `running_step` (a step that they do
together) and `worker_handle` (one of them). The workers' side is `actor` (the process) and
`step_worker` (what it does). `protocol` has the messages between them, `time_limits` every time
limit, `failure_detection` the rules by which a node is lost. A job defines its steps: a
measurement, a sort, a MapReduce, a reduction. `ray_adapter` is the only importer of Ray, which
carries files of some kilobytes, never data.

The design follows docs/concepts/cluster.md.
"""

import os

# Ray reads it once, when it is imported: a cluster that does not let us in is asked three times, a
# second apart, and not twenty.
os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "3")
