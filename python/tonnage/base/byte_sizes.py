"""Sizes as people write them: ``4GB``, ``4k`` (decimal), ``1GiB`` (binary) or plain bytes."""

import re
from decimal import Decimal

UNITS = {
    "": 1,
    "b": 1,
    **{letter: 1000**power for power, letter in enumerate("kmgtpe", start=1)},
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtpe", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtpe", start=1)},
}


def bytes_of(text: str) -> int | None:
    """``4GB`` or ``4G`` (decimal), ``1GiB`` (binary) or plain bytes; ``None`` for anything else."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in UNITS:
        return None
    return int(Decimal(match[1]) * UNITS[match[2]])
