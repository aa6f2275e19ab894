"""Generalized reduction: chunks of files and objects are reduced into objects, without pairs.

::

    reduction            what a user writes: local, merge, finish; of aggregates local only
    spec                 what to reduce and how
    index, index_store   files in chunks of whole rows; where the index is stored
    chunk_pool           which chunk is next
    tuning               chunk size and number of requests
    local, local_round   rounds on this machine; retrieval, and threads that reduce
    cluster/             the same on a cluster
    builtin/             k-means, PCA, regression, PageRank, histograms

After MATE-EC2 (docs/reproduction): each worker reduces a chunk at once into an object of its own,
and these objects are merged at the end.
"""

from tonnage.run.reduce.reduction import AggregateReduction, Reduction

__all__ = ["AggregateReduction", "Reduction"]
