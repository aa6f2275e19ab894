"""fio's latency histogram: the value of each bin, and percentiles exactly as fio computes them.

A bin's index has a group in its high bits and a place in its `_BITS` low bits; a bin's value is the
middle of its range (fio's ``plat_idx_to_val``). JSON+ prints that value, logs have the bins in
order. The unit is nanoseconds since fio 3, microseconds before.
"""

from collections.abc import Iterable
from fractions import Fraction

_BITS = 6
_PLACES = 1 << _BITS
# The number of groups of bins, by version of fio.
GROUPS = {"3": 29, "2": 19}
_MAX_COARSE = 6

# x86's long double, which fio uses since 3.14; before it used doubles.
_EXTENDED_BITS = 64

Bins = list[tuple[int, int]]


def value_of(index: int) -> int:
    if index < _PLACES << 1:
        return index
    error_bits = (index >> _BITS) - 1
    return (1 << (error_bits + _BITS)) + int((index % _PLACES + 0.5) * (1 << error_bits))


def values(bins: int) -> tuple[list[int], str] | None:
    """The values of this number of bins in order, and the fio version ("2", "3") that has it.

    Logs can merge two, four ... bins into one, whose value is that of the middle one.
    """
    for fio, groups in GROUPS.items():
        for coarse in range(_MAX_COARSE + 1):
            if groups * _PLACES >> coarse == bins:
                middle = (1 << coarse) // 2
                return [value_of((at << coarse) + middle) for at in range(bins)], fio
    return None


def percentile(
    bins: Bins, percent: float, samples: int | None = None, *, extended: bool = True
) -> int | None:
    """A percentile as fio computes it, from values in rising order with their numbers of samples.

    ``samples`` is the sum that fio states, if any. ``extended`` compares in x86's long doubles, as
    fio 3.14 and later do; otherwise in doubles.
    """
    total = sum(count for _, count in bins) if samples is None else samples
    if not total:
        return None
    needed = _needed(percent, total, extended)
    counted = 0
    for value, count in bins:
        counted += count
        if counted >= needed:
            return value
    return None


def percentiles(bins: Bins, percents: Iterable[float]) -> dict[float, int | None]:
    return {percent: percentile(bins, percent) for percent in percents}


def _needed(percent: float, total: int, extended: bool) -> Fraction:
    """``total`` times 0.01 times ``percent``, rounded after each step as in the processor.

    This is the order in fio's compiled code, which is built with -ffast-math; its source divides
    last. The order matters if the result is close to a whole number of samples.
    """
    if not extended:
        return Fraction(percent * (float(total) * 0.01))
    return _rounded(Fraction(percent) * _rounded(_rounded(Fraction(1, 100)) * total))


def _rounded(number: Fraction) -> Fraction:
    """Round to `_EXTENDED_BITS` binary digits, half to even."""
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
