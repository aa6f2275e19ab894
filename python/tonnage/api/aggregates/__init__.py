"""Aggregates: parts of a reduction object that know how to merge.

::

    Sum, Min, Max       of all rows, column by column
    Concatenation, Top  the rows themselves, or the largest of them
    Histogram           counts of values in given bins
    Hdr                 counts in bins of a relative width, and quantiles
    Distinct            the approximate number of distinct values

Each is a commutative monoid (Boykin, Ritchie, O'Connell and Lin, "Summingbird", VLDB 2014, section
3, and their Algebird): the order and grouping of additions do not matter.
`tonnage.AggregateReduction` is a reduction of aggregates.
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
    "Max",
    "Min",
    "Sum",
    "Top",
    "Values",
]
