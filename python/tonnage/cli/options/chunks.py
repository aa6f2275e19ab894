"""Options of commands that read data in chunks of whole rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from tonnage.base import core
from tonnage.cli.options.types import Option, parse_size

InputFormat = Annotated[
    str | None,
    Option(
        "FORMAT",
        "rows (of fixed size), npy, parquet, arrow, csv or json. Default: the format in the index, "
        "otherwise inferred from the file name.",
        flag="--input-format",
    ),
]
Dtype = Annotated[
    str | None,
    Option("DTYPE", "Type of a row, in NumPy's notation: 8f8 means eight 64-bit floats."),
]


@dataclass(frozen=True, kw_only=True)
class ChunkOptions:
    input_format: InputFormat = None
    dtype: Dtype = None
    chunk_size: Annotated[str, Option("SIZE|auto", "Approximate size of a chunk, like 16MiB.")] = (
        "auto"
    )

    @property
    def chunk_bytes(self) -> int | None:
        return auto_or("--chunk-size", self.chunk_size, parse_size)


def auto_or(flag: str, text: str, parse: Callable[[str], int]) -> int | None:
    if text == "auto":
        return None
    try:
        return parse(text)
    except typer.BadParameter as error:
        raise core.UsageError(f"{flag}: {error.message}; or use auto") from None
