"""Combinations: what a reduction object is made of, where nobody wants to write how to merge.

::

    Sum, Least, Most    of all rows, number by number
    Concatenation, Top  the rows themselves, or the largest of them
    Histogram           how many values are in bins that are given
    Hdr                 ... in bins that are found, and quantiles by them
    Distinct            about how many different values there are

Each is a commutative monoid (Boykin, Ritchie, O'Connell and Lin, "Summingbird", VLDB 2014, section
3, and their Algebird): of what is added it does not matter which came first, or with what.
`tonnage.Combined` is a reduction of some.
"""

from tonnage.api.aggregates.base import Aggregate, Values
from tonnage.api.aggregates.distinct import Distinct
from tonnage.api.aggregates.histograms import Distribution, Hdr, Histogram
from tonnage.api.aggregates.sums import Concatenation, Max, Min, Sum, Top

__all__ = [
    "Aggregate",
    "Concatenation",
    "Distinct",
    "Distribution",
    "Hdr",
    "Histogram",
    "Min",
    "Max",
    "Sum",
    "Top",
    "Values",
]
