"""How the core reads text: as it is, or, where that is not enough, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tonnage.base import core
from tonnage.run.sort import text, typed_text
from tonnage.run.sort.csv_beginning import CsvBeginning
from tonnage.run.sort.dialect import DELIMITERS, Dialect
from tonnage.run.sort.json_lines import json_lines
from tonnage.run.sort.order import ColumnOrder

if TYPE_CHECKING:
    import pyarrow as pa

    from tonnage.run.sort.table_input import TableInput


def text_config(
    inputs: TableInput,
    name: str,
    order: Sequence[ColumnOrder],
    *,
    columns: Sequence[str] | None,
    given: pa.Schema | None,
    output: str,
    dialect: Dialect,
    folders: Sequence[str],
) -> dict[str, Any]:
    """The core's configuration of text of the format ``name``, which becomes ``output``.

    ``columns`` are kept, all by default; those of ``given`` have its types. Output is in
    folders by the columns ``folders``.

    Raises:
        UsageError: The text is not of this format, or there is no such column.
    """
    in_folders = inputs.folder_columns
    is_changed = output != name or columns is not None or given is not None or bool(folders)
    if name == "lines":
        inputs.refuse_folders("a line")
        if is_changed:
            raise core.UsageError("lines have no columns; they stay as they are")
        has_delimiter = dialect.delimiter is not None
        return text.lines(order, dialect.delimiter_of(name) if has_delimiter else None)
    is_changed = is_changed or bool(in_folders)
    if name == "json" and not is_changed and dialect.encoding is None:
        return json_lines(inputs, order)
    what: dict[str, Any] = {
        "columns": columns,
        "given": given,
        "output": output,
        "dialect": dialect,
        "folders": folders,
        "in_folders": in_folders,
    }
    if name == "json":
        return typed_text.json_columns(inputs, order, **what)
    # Columns that are no keys stay text where text is written.
    typed = [each.name for each in order] if output in DELIMITERS else None
    beginning = CsvBeginning.read(inputs, name, dialect, typed)
    is_changed = is_changed or dialect.upper_half() is not None
    as_it_is = None if is_changed else text.delimited(beginning, name, order)
    return as_it_is or typed_text.csv_columns(beginning, order, **what)
