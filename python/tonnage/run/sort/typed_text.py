"""Text as columns: CSV and JSON lines, decoded by a schema.

The types of columns are inferred from the first MiB of the first file, those of JSON by PyArrow;
those in a schema that is given go before. Where text becomes CSV again, columns that are no keys
stay text, so that their values are written as they were read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from tonnage.base import core
from tonnage.run.sort.csv_beginning import CsvBeginning
from tonnage.run.sort.dialect import DELIMITERS, Dialect
from tonnage.run.sort.order import ColumnOrder, is_column_or_field, join_names
from tonnage.run.sort.schema import read_schema, schema_message

if TYPE_CHECKING:
    import pyarrow as pa

    from tonnage.run.sort.table_input import TableInput

JSON = "json"


def csv_columns(
    beginning: CsvBeginning,
    order: Sequence[ColumnOrder],
    *,
    columns: Sequence[str] | None,
    given: pa.Schema | None,
    output: str,
    dialect: Dialect,
    folders: Sequence[str],
    in_folders: Collection[str],
) -> dict[str, Any]:
    """CSV as columns, which become ``output``, the name of a format.

    The columns ``in_folders`` are what folders of the input say; ``folders`` are the output's.

    Raises:
        UsageError: There is no such column.
    """
    keys = {column.name for column in order}
    given, folder_schema = _divided(given, in_folders)
    for name in [*(columns or beginning.names), *keys]:
        if name not in in_folders:
            beginning.place(name, _setting(name, keys, folders))
    for name in given.names if given is not None else []:
        beginning.place(name, "schema")
    _refuse_twice(columns)
    beginning.refuse_bytes()
    schema = (
        beginning.schema
        if given is None
        else schema_message(_with(given, read_schema(beginning.schema)))
    )
    records = {"csv": {"delimiter": ord(beginning.delimiter), "header": list(beginning.header)}}
    config = _config(records, schema, order, columns, output, dialect)
    config["typed_text"]["input"]["folder_schema"] = folder_schema
    return config


def json_columns(
    inputs: TableInput,
    order: Sequence[ColumnOrder],
    *,
    columns: Sequence[str] | None,
    given: pa.Schema | None,
    output: str,
    dialect: Dialect,
    folders: Sequence[str],
    in_folders: Collection[str],
) -> dict[str, Any]:
    """JSON lines as columns, which become ``output``, the name of a format.

    The columns ``in_folders`` are what folders of the input say; ``folders`` are the output's.

    Raises:
        UsageError: The file is no JSON, or there is no such column.
    """
    _refuse_twice(columns)
    given, folder_schema = _divided(given, in_folders)
    schema = _json_schema(inputs, given, dialect)
    keys = {column.name for column in order}
    if output in (JSON, *DELIMITERS):
        schema = _without_moments(schema, {*keys, *(given.names if given is not None else [])})
    names = [*schema.names, *in_folders]
    unknown = [name for name in columns or [] if name not in names]
    unknown += [name for name in keys if not is_column_or_field(name, names)]
    if unknown:
        raise core.UsageError(
            f"there is no column {unknown[0]!r}; the columns are {join_names(names)}",
            setting="columns"
            if is_column_or_field(unknown[0], names)
            else _setting(unknown[0], keys, folders),
        )
    config = _config(JSON, schema_message(schema), order, columns, output, dialect)
    config["typed_text"]["input"]["folder_schema"] = folder_schema
    return config


def _divided(
    given: pa.Schema | None, in_folders: Collection[str]
) -> tuple[pa.Schema | None, str | None]:
    """The schema of the columns in files, and a message of those of folders."""
    if given is None or not in_folders:
        return given, None
    import pyarrow as pa

    own = [each for each in given if each.name not in in_folders]
    of_folders = [each for each in given if each.name in in_folders]
    return pa.schema(own) if own else None, schema_message(pa.schema(of_folders))


def _setting(name: str, keys: Collection[str], folders: Sequence[str]) -> str:
    """The setting that names a column."""
    if name in folders:
        return "partition_by"
    return "by" if name in keys else "columns"


def _refuse_twice(columns: Sequence[str] | None) -> None:
    twice = next((each for each in columns or [] if (columns or []).count(each) > 1), None)
    if twice is not None:
        raise core.UsageError(f"the column {twice!r} is named twice", setting="columns")


def _json_schema(inputs: TableInput, given: pa.Schema | None, dialect: Dialect) -> pa.Schema:
    import pyarrow as pa

    from tonnage.run.formats.json import infer_fields

    first, text = inputs.beginning(dialect.upper_half())
    if given is None and not text:
        raise core.UsageError(f"input {first}: it is empty, as all files are; specify a schema")
    try:
        inferred = infer_fields(text.encode())
    except pa.ArrowInvalid as why:
        if given is None:
            raise core.UsageError(f"input {first}: {why}; specify a schema") from why
        return given
    if given is None or {*inferred.names} <= {*given.names}:
        return inferred if given is None else given
    missing = [each for each in given if each.name not in inferred.names]
    return _with(given, pa.schema([*inferred, *missing]))


def _with(given: pa.Schema | None, schema: pa.Schema) -> pa.Schema:
    """The schema with the types that are given."""
    import pyarrow as pa

    if given is None:
        return schema
    return pa.schema(
        [given.field(each.name) if each.name in given.names else each for each in schema]
    )


def _without_moments(schema: pa.Schema, but: Collection[str]) -> pa.Schema:
    """The schema with timestamps, which were inferred of strings, as strings: written as read."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(each.name, pa.string())
            if pa.types.is_timestamp(each.type) and each.name not in but
            else each
            for each in schema
        ]
    )


def _config(
    records: str | dict[str, Any],
    schema: str,
    order: Sequence[ColumnOrder],
    columns: Sequence[str] | None,
    output: str,
    dialect: Dialect,
) -> dict[str, Any]:
    return {
        "typed_text": {
            "input": {
                "records": records,
                "schema": schema,
                "columns": None if columns is None else list(columns),
                "upper_half": dialect.upper_half(),
            },
            "output": dialect.output_config(output),
            "order": [each.to_json() for each in order],
        }
    }
