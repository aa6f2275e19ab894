"""Divide a log of clicks into sessions: a gap of half an hour between a user's clicks ends one.

Clicks have the columns ``user`` and ``at`` (seconds). A session has its user, start, duration and
number of clicks.
"""

import numpy as np
import pyarrow as pa

from tonnage import MapReduce

GAP_SECONDS = 1800


def sessions(clicks: pa.RecordBatch) -> pa.RecordBatch:
    # The key is the user, so all clicks of a user are here, but in no particular order.
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
