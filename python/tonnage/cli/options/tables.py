"""What a table is sorted by, and what becomes of its rows, as options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base import core
from tonnage.cli.options.types import LARGEST, Count, Option, Size

if TYPE_CHECKING:
    from tonnage.run.sort.tables import TableOrder


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What a table is sorted by, and what becomes of its rows."""

    by: Annotated[
        str | None,
        Option(
            "COLUMNS",
            "Columns to sort a table by: COLUMN, -COLUMN, COLUMN:nulls-first. Names with commas or "
            'a minus are in quotes: \'-"a, b","-x"\'.',
        ),
    ] = None
    stable: Annotated[
        bool, typer.Option("--stable", help="Keep the order of rows with equal keys.")
    ] = False
    unique: Annotated[
        bool, typer.Option("--unique", help="Keep one row of those with equal keys.")
    ] = False
    limit: Annotated[
        int | None, Count("Write the first N rows only. Default: all.", 1, LARGEST)
    ] = None
    columns: Annotated[str | None, Option("A,B,...", "Columns to keep. Default: all.")] = None
    schema: Annotated[
        str | None,
        Option("NAME:TYPE,...", "Types to read columns as; null where a file lacks them."),
    ] = None
    input_format: Annotated[
        str, Option("FORMAT", "parquet, arrow, csv, tsv, json, lines, or auto (by the file name).")
    ] = "auto"
    output_format: Annotated[
        str | None,
        Option("FORMAT", "parquet, arrow, csv, tsv or json. Default: that of the input."),
    ] = None
    delimiter: Annotated[
        str | None,
        Option("CHARACTER", "Between fields. Default: CSV comma, TSV tab, lines blanks."),
    ] = None
    no_header: Annotated[
        bool, typer.Option("--no-header", help="CSV has no header; columns are f0, f1 and so on.")
    ] = False
    encoding: Annotated[
        str | None, Option("NAME", "Encoding of text that is read, like latin-1. Default: UTF-8.")
    ] = None
    compression: Annotated[
        str | None,
        Option("CODEC", "How output is compressed, as zstd or zstd:9. Default: snappy or none."),
    ] = None
    partition_by: Annotated[
        str | None,
        Option("A,B,...", "Put files, without these columns, into Hive's folders A=1/B=2."),
    ] = None
    file_size: Annotated[
        int | None, Size("Most bytes of rows in a file of the output, about. Default: 1GiB.")
    ] = None

    def refuse_without_by(self) -> None:
        for flag, given in (
            ("--stable", self.stable),
            ("--unique", self.unique),
            ("--limit", self.limit is not None),
            ("--columns", self.columns is not None),
            ("--schema", self.schema is not None),
            ("--input-format", self.input_format != "auto"),
            ("--output-format", self.output_format is not None),
            ("--delimiter", self.delimiter is not None),
            ("--no-header", self.no_header),
            ("--encoding", self.encoding is not None),
            ("--compression", self.compression is not None),
            ("--partition-by", self.partition_by is not None),
            ("--file-size", self.file_size is not None),
        ):
            if given:
                raise core.UsageError(f"{flag} is for tables; specify --by, too")

    def order(self) -> TableOrder:
        """The order, with the defaults of what was not given."""
        from tonnage.run.sort.dialect import Dialect
        from tonnage.run.sort.tables import FILE_BYTES, TableOrder

        assert self.by is not None
        return TableOrder(
            by=self.by,
            stable=self.stable,
            unique=self.unique,
            limit=self.limit,
            columns=_listed(self.columns, "columns"),
            schema=self.schema,
            file_bytes=FILE_BYTES if self.file_size is None else self.file_size,
            format=self.input_format,
            output_format=self.output_format,
            dialect=Dialect(
                delimiter=self.delimiter,
                has_header=not self.no_header,
                encoding=self.encoding,
            ),
            compression=self.compression,
            partition_by=_listed(self.partition_by, "partition_by"),
        )


def _listed(text: str | None, setting: str) -> list[str] | None:
    from tonnage.run.sort.order import split_columns

    return None if text is None else split_columns(text, setting)
