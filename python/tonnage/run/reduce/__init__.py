"""Generalized reduction: chunks of files and objects into reduction objects, no pairs between.

::

    reduction    what a user writes: local, merge, finish; `combined`: of combinations, local only
    index        files and objects in chunks of whole rows; `kept`: next to the data
    pool         which chunk is asked for next
    round        a machine's part: retrieval beside threads that reduce
    job          rounds on this machine, until it is enough
    users        what goes wrong in a user's functions, or with their rows, in words

After MATE-EC2 (docs/reproduction): a chunk is processed at once into the reduction object of
whoever took it, and these objects are merged at the end.
"""

from tonnage.run.reduce.aggregate_reduction import AggregateReduction
from tonnage.run.reduce.reduction import Reduction

__all__ = ["AggregateReduction", "Reduction"]
