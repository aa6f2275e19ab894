"""File formats: how files are cut and read, and how parts of the output are written.

::

    registry      all formats, by names and suffixes      format      what a format can do
    fixed_width   rows of a fixed width, and NumPy files   parquet, arrow
    lines         plain text, and what text has in common  csv, json
    integers      of more than 63 bits, in text
    writer        parts of the output                      columns     rows as numbers
    plain_values  columns as JSON has them

Rows of a fixed width are cut by arithmetic, Parquet at row groups, Arrow at record batches, text
where lines end.
"""

from tonnage.run.formats.columns import as_points, blocks_of_points, column_of, names_of
from tonnage.run.formats.fixed_width import dtype_text, parse_dtype
from tonnage.run.formats.format import Chunk, ChunkFormat, Rows
from tonnage.run.formats.registry import chunk_format, detect_chunk_format, split_format
from tonnage.run.formats.splittable import SplitFormat

__all__ = [
    "Chunk",
    "ChunkFormat",
    "Rows",
    "SplitFormat",
    "as_points",
    "blocks_of_points",
    "chunk_format",
    "column_of",
    "detect_chunk_format",
    "dtype_text",
    "names_of",
    "parse_dtype",
    "split_format",
]
