"""How many different values there are."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import pyarrow as pa

from tonnage.api.aggregates.base import ARROW, Aggregate, Array, Values, array_of

REGISTERS = (8, 21)
"""At least and at most, as powers of two."""


class Distinct(Aggregate):
    """About how many different values there are, by HyperLogLog (Flajolet and others 2007).

    Of Apache DataSketches. Values are numbers, or texts; whole and floating-point numbers differ.

    Args:
        precision: The standard error of the number, as a share of it; memory grows as its inverse
            squared: 0.01 takes 16 KiB.
    """

    def __init__(self, precision: float = 0.01) -> None:
        # Of `2**power` registers the error is 1.04 / sqrt of that (section 1).
        power = math.ceil(2 * math.log2(1.04 / precision)) if precision > 0 else math.inf
        if not power <= REGISTERS[1]:
            least = 1.04 / math.sqrt(1 << REGISTERS[1])
            raise ValueError(f"Distinct({precision}): a precision is {least:.2g} at least")
        self._precision, self._power = precision, max(int(power), REGISTERS[0])
        self._union = self._made()

    def empty(self) -> Distinct:
        """No values."""
        return Distinct(self._precision)

    def add(self, values: Values) -> None:
        """Adds values, one a row.

        Raises:
            ValueError: They are neither numbers nor texts.
        """
        # Most that come again do so at once: each is added once only, which takes a call of Python.
        try:
            column = values if isinstance(values, ARROW) else pa.array(_column(array_of(values)))
            unique: Any = column.unique().drop_null()
            if pa.types.is_uint64(unique.type):
                unique = unique.view(pa.int64())
            plain = unique.to_pylist()
            if pa.types.is_string(unique.type) or pa.types.is_large_string(unique.type):
                plain = [each or "\0" for each in plain]  # The library leaves out what is empty.
            deque(map(self._union.update, plain), maxlen=0)
        except (TypeError, pa.ArrowException) as why:
            raise ValueError(f"Distinct: values are neither numbers nor texts: {why}") from why

    def merge(self, other: Distinct) -> None:
        """Takes the larger of each two registers."""
        self._union.update(other._sketch)

    @property
    def value(self) -> float:
        """About how many."""
        # As of merged ones, whether they were or not: the other estimate depends on the order.
        whole, sketch = self._made(), self._sketch
        whole.update(sketch)
        whole.update(sketch)
        return float(whole.get_estimate())

    def __getstate__(self) -> tuple[float, bytes]:
        return self._precision, self._sketch.serialize_compact()

    def __setstate__(self, state: tuple[float, bytes]) -> None:
        from datasketches import hll_sketch

        self.__init__(state[0])  # type: ignore[misc]
        self._union.update(hll_sketch.deserialize(state[1]))

    def _made(self) -> Any:
        from datasketches import hll_union  # When one is asked for: it is a library of its own.

        return hll_union(self._power)

    @property
    def _sketch(self) -> Any:
        from datasketches import tgt_hll_type

        return self._union.get_result(tgt_hll_type.HLL_8)


def _column(values: Array) -> Array:
    """Values, one a row.

    Raises:
        ValueError: There are several.
    """
    if values.ndim > 1:
        raise ValueError("Distinct: rows have several values: add one column of them")
    return values
