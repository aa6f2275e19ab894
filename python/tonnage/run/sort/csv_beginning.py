"""The beginning of CSV files: the names of their columns, and the types that values have.

The core reads it, so that nothing as large as PyArrow is imported (``csv_beginning.rs`` in
``crates/graphs/src/tables/text``).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tonnage.base import core
from tonnage.run.sort.dialect import Dialect
from tonnage.run.sort.order import join_names

if TYPE_CHECKING:
    from tonnage.run.sort.table_input import TableInput


@dataclass(frozen=True, kw_only=True)
class CsvBeginning:
    """What files begin with."""

    file: str
    delimiter: str
    header: bytes
    """The record that names the columns, as it is in the file; empty if there is none."""
    names: list[str]
    types: list[str]
    """As PyArrow prints them; ``binary`` of what is no UTF-8."""
    schema: str
    """The columns as the core takes them, those that need no type as text."""

    @classmethod
    def read(
        cls, inputs: TableInput, name: str, dialect: Dialect, typed: Collection[str] | None
    ) -> CsvBeginning:
        """Reads the beginning of the first files, of the format ``name``, ``csv`` or ``tsv``.

        ``typed`` are the columns that need a type; all by default.

        Raises:
            UsageError: It is no CSV, or names no columns.
        """
        delimiter = dialect.delimiter_of(name)
        config = {
            "inputs": inputs.to_json(),
            "delimiter": ord(delimiter),
            "header": dialect.has_header,
            "upper_half": dialect.upper_half(),
            "typed": None if typed is None else list(typed),
            "volumes": inputs.store.to_json(),
        }
        found = core.run("csv_beginning", config)
        inputs.sources.list_requests.append(found["requests"])
        return cls(
            file=found["file"],
            delimiter=delimiter,
            header=bytes(found["header"]),
            names=found["names"],
            types=found["types"],
            schema=found["schema"],
        )

    def place(self, column: str, setting: str = "by") -> int:
        """Where the fields of a column are.

        Raises:
            UsageError: There is no such column, or there are several.
        """
        if self.names.count(column) == 1:
            return self.names.index(column)
        raise core.UsageError(
            f"several columns are named {column!r}"
            if column in self.names
            else f"there is no column {column!r}; the columns are {join_names(self.names)}",
            setting=setting,
        )

    def refuse_bytes(self) -> None:
        """Refuse columns that are no text."""
        for name, data_type in zip(self.names, self.types, strict=True):
            if data_type == "binary":
                raise core.UsageError(
                    f"input {self.file}: column {name!r} is not UTF-8; specify its encoding, "
                    "such as latin-1"
                )
