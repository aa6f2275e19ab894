"""fio's latency histogram: which value a bin stands for, and percentiles exactly as fio takes them.

A bin's index has a group in its high bits and a place in its `_BITS` low ones; a bin stands for the
middle of its range (fio's ``plat_idx_to_val``). JSON+ prints that value, logs the bins in order.
The unit is nanoseconds since fio 3, microseconds before.
"""

from collections.abc import Iterable
from fractions import Fraction

_BITS = 6
_PLACES = 1 << _BITS
# How many groups of bins there are: fio 3, fio 2.
GROUPS = {"3": 29, "2": 19}
_MOST_COARSE = 6

# x86's long double, in which fio compares since 3.14; it compared in doubles before.
_EXTENDED_BITS = 64

Bins = list[tuple[int, int]]


def value_of(index: int) -> int:
    """The value that a bin stands for."""
    if index < _PLACES << 1:
        return index
    error_bits = (index >> _BITS) - 1
    return (1 << (error_bits + _BITS)) + int((index % _PLACES + 0.5) * (1 << error_bits))


def values(bins: int) -> tuple[list[int], str] | None:
    """The values of so many bins in order, and the fio ("2", "3") that has so many; or None.

    Logs can have bins joined by two, four and so on; those stand for the middle one of what was
    joined.
    """
    for fio, groups in GROUPS.items():
        for coarse in range(_MOST_COARSE + 1):
            if groups * _PLACES >> coarse == bins:
                middle = (1 << coarse) // 2
                return [value_of((at << coarse) + middle) for at in range(bins)], fio
    return None


def percentile(
    bins: Bins, percent: float, samples: int | None = None, *, extended: bool = True
) -> int | None:
    """The value below or at which so many percent of the samples are, as fio finds it.

    Args:
        bins: Values in rising order, and how many samples each stands for.
        percent: More than 0, at most 100.
        samples: How many there are, if fio says; otherwise what the bins hold.
        extended: Compare in x86's long doubles, as fio 3.14 and later; otherwise in doubles.
    """
    total = sum(count for _, count in bins) if samples is None else samples
    if not total:
        return None
    needed = _needed(percent, total, extended)
    seen = 0
    for value, count in bins:
        seen += count
        if seen >= needed:
            return value
    return None


def percentiles(bins: Bins, percents: Iterable[float]) -> dict[float, int | None]:
    """Several percentiles."""
    return {percent: percentile(bins, percent) for percent in percents}


def _needed(percent: float, total: int, extended: bool) -> Fraction:
    """``total`` times a hundredth, times ``percent``, rounded after each step as the machine does.

    This is the order of fio's compiled code: it is built with -ffast-math, and its source divides
    last. Where so many percent are a whole number of samples, the order decides.
    """
    if not extended:
        return Fraction(percent * (float(total) * 0.01))
    return _rounded(Fraction(percent) * _rounded(_rounded(Fraction(1, 100)) * total))


def _rounded(number: Fraction) -> Fraction:
    """The nearest number of `_EXTENDED_BITS` binary digits, of two the even one."""
    if not number:
        return number
    exponent = number.numerator.bit_length() - number.denominator.bit_length() - _EXTENDED_BITS
    scaled = number / Fraction(2) ** exponent
    while scaled >= 1 << _EXTENDED_BITS:
        exponent += 1
        scaled /= 2
    while scaled < 1 << (_EXTENDED_BITS - 1):
        exponent -= 1
        scaled *= 2
    return round(scaled) * Fraction(2) ** exponent
