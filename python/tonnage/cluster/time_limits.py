"""Every time limit and pause of the cluster's driver and workers, in seconds.

The driver asks each worker for a heartbeat, again and again. A worker that has no news holds its
answer back for `HEARTBEAT_SECONDS`. It is lost when no answer comes for patience (a setting of the
user's) and that second. A worker that answers but makes no progress is judged by the kind of step
that it does (`protocol.Idle`).
"""

HEARTBEAT_SECONDS = 1.0
"""A worker without news answers this late. The driver hears from each node once in this time."""
BARRIER_HEARTBEAT_SECONDS = 0.2
"""The same for a worker at a barrier: its release is delivered after the answer."""
PATIENCE_SECONDS = 60.0
"""How long a node may be silent, or make no progress, unless the user says otherwise."""
IDLE_PATIENCES = 2.0
"""Peers wait for each other: a hang is declared when nobody progresses for so many patiences."""
UPLOAD_PATIENCES = 4.0
"""Patiences, with nodes that make no progress while they upload: a part counts when it was put, and
has four times the size that a request's time limit is for (`Uploads` of the core)."""
ACCUSED_SECONDS = 3.0
"""Patience, at most, with a silent node whose connections others have found broken."""

WORKER_START_SECONDS = 60.0
"""A worker has to start within this, or within patience if that is longer."""
REPLY_SECONDS = 10.0
"""A reply that Ray says is there has to arrive within this."""
SLOWEST_BYTES_PER_SECOND = 10e6
"""Replies that carry data get as much longer as a network of this speed would take."""
RETRY_PAUSE_SECONDS = 0.1
"""Pause before a heartbeat is asked for again that was lost on the way."""
STEP_ATTEMPTS = 3
"""How often a step is sent again to a worker that does not know of it."""
SHUTDOWN_SECONDS = 10.0
"""A worker that has to stop must clean up within this; then its process is killed."""
CLOSE_SECONDS = 1.0
"""Within this workers remove their files; the next command removes what is left."""

CLOCK_READINGS = 8
"""How often a node's clock is read; the fastest answer counts."""
START_LEAD_SECONDS = 0.25
"""From sending a common start to the start itself, in addition to the time to send."""
LATE_START_SECONDS = 1.0
"""A node that starts so much later than agreed did not measure with the others."""
WAKE_SECONDS = 0.02
"""Sleeping threads wake late: the last of a wait is spent looking at the clock."""
STOP_POLL_SECONDS = 0.1
"""How often a waiting worker checks whether it has to stop."""

NETWORK_MEETING_SECONDS = 10.0
"""Endpoints of a network round have to connect within this."""
NETWORK_START_SECONDS = 10.0
"""The process of an endpoint has to start within this."""
NETWORK_DRAIN_SECONDS = 60.0
"""A network round has to end within this after its time: buffers drain at the slowest's pace."""

GENERATE_PATIENCE_SECONDS = 600.0
"""Patience with a node that writes or removes a study's data."""

CHECKPOINT_SECONDS = 5.0
"""How often nodes of a reduction save their partial results."""
MERGE_FAILURE_SECONDS = 120.0
"""Merging is at fault if its attempts kept losing nodes for longer than this."""

CONNECT_SECONDS = 5.0
"""The cluster's address has to accept a connection within this; Ray would try for minutes."""
PROGRESS_LIVE_SECONDS = 0.25
"""How often the table of nodes is drawn on a terminal."""
PROGRESS_RATE_SECONDS = 3.0
"""Rates shown are averages over so long."""
