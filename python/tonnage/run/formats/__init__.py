"""What files of rows are: where chunks begin in them, and how the bytes of a chunk become rows.

Rows of a size (``rows``, ``npy``) may begin at any multiple of it, so such a file is cut by
arithmetic. Parquet is cut where its row groups begin, Arrow where record batches do, and text
(``csv``, ``json``) where lines end: some bytes are looked at where each chunk is to end.

::

    format    what each of them can do
    of_size   rows of a size, and NumPy's files of them     parquet, arrow, lines: the others
    named     which of them files are
    columns   rows of any of them as numbers
"""

from tonnage.run.formats.columns import as_points, blocks_of_points, column_of, names_of
from tonnage.run.formats.fixed_width import dtype_text, parse_dtype
from tonnage.run.formats.format import Format, Rows
from tonnage.run.formats.registry import format_named, format_of

__all__ = [
    "Format",
    "Rows",
    "as_points",
    "blocks_of_points",
    "column_of",
    "parse_dtype",
    "format_named",
    "format_of",
    "names_of",
    "dtype_text",
]
