"""Results as JSON, in which numbers that are not finite are ``null``."""

import dataclasses
import datetime
import math
from typing import Any

import numpy as np

from tonnage.api.aggregates import Distribution
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.user_errors import user_code


def summary(reduction: Reduction[Any], result: Any) -> Any:
    """A result for the record; `RunError` if the reduction's ``summary`` failed."""
    with user_code("summary", "the result"):
        return as_json(reduction.summary(result))


def as_json(value: Any) -> Any:
    """A value as JSON: dataclasses as objects, arrays as lists."""
    if isinstance(value, Distribution):
        return as_json(value.to_json())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_json(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): as_json(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        kind = value.dtype.kind
        if kind in "mM":  # As dates, since some units would become numbers.
            return np.asarray(value).astype(str).tolist()
        is_plain = kind in "biuU" or (kind == "f" and bool(np.isfinite(value).all()))
        return value.tolist() if is_plain else as_json(value.tolist())
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
