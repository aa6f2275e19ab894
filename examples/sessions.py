"""Sessions in a log of clicks: a user's clicks, none of them half an hour after the one before.

Clicks have the columns ``user`` and ``at`` (seconds); a session has its user, when it began, how
long it took and how many clicks it had.
"""

import numpy as np
import pyarrow as pa

from tonnage import MapReduce

GAP_SECONDS = 1800


def sessions(clicks: pa.RecordBatch) -> pa.RecordBatch:
    # All clicks of a user are here, since the user is the key; in what order is not promised.
    clicks = clicks.sort_by([("user", "ascending"), ("at", "ascending")])
    user, at = clicks.column("user"), clicks.column("at").to_numpy()
    codes = user.dictionary_encode().indices.to_numpy()
    begins = np.flatnonzero(
        np.concatenate([[True], (np.diff(codes) != 0) | (np.diff(at) >= GAP_SECONDS)])
    )
    ends = np.append(begins[1:], len(at)) - 1
    return pa.record_batch(
        {
            "user": user.take(pa.array(begins)),
            "began": at[begins],
            "seconds": at[ends] - at[begins],
            "clicks": ends - begins + 1,
        }
    )


JOB = MapReduce(key="user", reduce=sessions)
