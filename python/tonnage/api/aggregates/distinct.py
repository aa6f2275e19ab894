"""The approximate number of distinct values."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import pyarrow as pa

from tonnage.api.aggregates.base import ARROW, Aggregate, Values, array_of

REGISTERS = (8, 21)
"""The limits of their number, as powers of two."""
EMPTY = "\0 an empty text \0"
"""Counted instead of an empty text, which the library ignores."""


class Distinct(Aggregate):
    """The number of distinct values by HyperLogLog (Flajolet and others 2007), by DataSketches.

    Values are numbers or texts; integers differ from floats of the same value.

    Args:
        precision: The relative standard error. Memory is proportional to its inverse square: 0.01
            takes 16 KiB.
    """

    def __init__(self, precision: float = 0.01) -> None:
        # Of `2**power` registers the error is 1.04 / sqrt of that (section 1).
        power = math.ceil(2 * math.log2(1.04 / precision)) if precision > 0 else math.inf
        if not power <= REGISTERS[1]:
            least = 1.04 / math.sqrt(1 << REGISTERS[1])
            raise ValueError(f"Distinct({precision}): the precision must be at least {least:.2g}")
        self._precision, self._power = precision, max(int(power), REGISTERS[0])
        self._union = self._made()

    def empty(self) -> Distinct:
        return Distinct(self._precision)

    def add(self, values: Values) -> None:
        """Add values, one for each row.

        Raises:
            ValueError: They are neither numbers nor texts.
        """
        # Repeated values are often close: adding each once saves calls of Python.
        if not isinstance(values, ARROW) and (values := array_of(values)).ndim > 1:
            raise ValueError("Distinct: rows have several columns; pass a single column")
        try:
            column = values if isinstance(values, ARROW) else pa.array(values)
            unique: Any = column.unique().drop_null()
            if pa.types.is_uint64(unique.type):
                unique = unique.view(pa.int64())
            plain = unique.to_pylist()
            if pa.types.is_string(unique.type) or pa.types.is_large_string(unique.type):
                plain = [each or EMPTY for each in plain]
            deque(map(self._union.update, plain), maxlen=0)
        except (TypeError, pa.ArrowException) as why:
            raise ValueError(f"Distinct: values are neither numbers nor strings: {why}") from why

    def merge(self, other: Distinct) -> None:
        """Take the larger value of each register."""
        self._union.update(other._sketch)

    @property
    def value(self) -> float:
        # Merged twice, since the estimate of an unmerged sketch depends on the order of values.
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
        from datasketches import hll_union  # On first use: the library is optional.

        return hll_union(self._power)

    @property
    def _sketch(self) -> Any:
        from datasketches import tgt_hll_type

        return self._union.get_result(tgt_hll_type.HLL_8)
