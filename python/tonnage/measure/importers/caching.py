"""The rule by which a speed is believed to be a cache's: stated here once, for all tools.

What bypasses the page cache (``direct``) never is. Of the rest it is said

1. of a speed above `FASTEST_DEVICE`, which no single storage device reaches;
2. of a run that reads again what it has just read or written itself, without leaving its machine,
   if that is at most `FITS_IN_MEMORY`: any machine's page cache holds it;
3. of a run that writes no more than that, and does not wait until it is durable.

A tool says the sizes or not; where it does not, only the first holds. That a speed is not called
cached therefore does not prove that a device gave it.
"""

FASTEST_DEVICE = 20e9
FITS_IN_MEMORY = 1 << 30


def cached(
    direct: bool | None,
    bytes_per_second: float | None,
    *,
    again_bytes: float | None = None,
    unflushed_bytes: float | None = None,
) -> str | None:
    """Why only a cache can give this speed, or None.

    ``again_bytes`` is the size of the data, if the run had it in memory before; ``unflushed_bytes``
    that of data written and not waited for.
    """
    if direct:
        return None
    if bytes_per_second is not None and bytes_per_second > FASTEST_DEVICE:
        return (
            f"{bytes_per_second / 1e9:.1f} GB/s without O_DIRECT: no single device gives more "
            f"than {FASTEST_DEVICE / 1e9:.0f} GB/s"
        )
    if again_bytes is not None and again_bytes <= FITS_IN_MEMORY:
        return f"the run itself had these {_size(again_bytes)} in the page cache before"
    if unflushed_bytes is not None and unflushed_bytes <= FITS_IN_MEMORY:
        return f"{_size(unflushed_bytes)} written, and not waited for: the page cache holds them"
    return None


def _size(number: float) -> str:
    return f"{number / 1e6:.1f} MB"
