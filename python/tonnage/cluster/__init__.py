"""Fleet: many machines measure the same, each by an agent of its own, placed and watched by Ray.

The only importer of Ray, and of that only `cluster`. An `agent` is one machine's: it runs what
`tonnage measure` would run there, in the node's own order, and keeps its files. `barrier` has all
begin at one moment; `measuring` hears of all until each has answered or is given up, `kept`
writes what it hears; `across` says what they come to; `view` shows how far they are. In `meeting`
those that share a directory wait for each other; `net` has `endpoint`, an agent too, measure the
network between them. Ray carries files of some kilobytes, never data.

The design follows docs/concepts/fleet.md.
"""

import os

# Ray reads it once, when it is imported: a cluster that does not let us in is asked three times, a
# second apart, and not twenty.
os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "3")
