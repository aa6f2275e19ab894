"""Read typed cells from CSV tables; errors name the file, the row and the column.

Rows are numbered as in an editor: the header is row 1.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from tonnage.base.records.io import read_regular
from tonnage.catalog.offer import GIB

NOT_READABLE = "no permission to read this file; use sudo, or make a readable copy"
LARGEST = 1e21
MOST_MEMORY = 10**18
BLANK = "leave unknown figures blank"
DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-([0-2]\d|3[01]))?)?")


class CatalogError(Exception):
    """A catalog is unusable, or lacks the requested offer; the message is one line."""


class CsvRow(msgspec.Struct, frozen=True):
    """One line of a table. A blank cell is ``None``, and so is a column that the table lacks."""

    file: str
    number_in_file: int
    cells: dict[str, str]

    def text(self, column: str) -> str | None:
        return self.cells.get(column, "").strip() or None

    def required(self, column: str) -> str:
        """The cell's text, which must not be blank."""
        found = self.text(column)
        if found is None:
            raise self.error(column, "is blank")
        return found

    def number(self, column: str, factor: float = 1.0) -> float | None:
        """A non-negative number, times ``factor``."""
        text = self.text(column)
        if text is None:
            return None
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if 0 <= found * factor <= LARGEST and "_" not in text:
            return found * factor
        if not math.isfinite(found * factor) or "_" in text:
            # Most are figures with a unit, or with commas.
            known = text[:1].isdigit()
            fix = "use a number alone, in the unit of its column" if known else BLANK
            raise self.error(column, f"{text!r} is not a number; {fix}")
        raise self.error(column, f"{text} is {'negative' if found < 0 else 'too large'}")

    def integer(self, column: str, factor: float = 1.0) -> int | None:
        """A non-negative integer; with a ``factor`` the product is rounded."""
        found = self.number(column, factor)
        if found is not None and factor == 1 and not found.is_integer():
            raise self.error(column, f"{found:g} is not a whole number")
        return None if found is None else round(found)

    def memory(self, column: str) -> int | None:
        """Bytes of a machine's memory, from GiB: above zero, and no more than an exabyte."""
        found = self.integer(column, GIB)
        if found is not None and not 0 < found <= MOST_MEMORY:
            raise self.error(
                column, f"{self.text(column)} GiB is no machine's memory; leave it blank if unknown"
            )
        return found

    def rate(self, column: str, factor: float) -> float | None:
        """A number above zero, times ``factor``."""
        found = self.number(column, factor)
        if found == 0:
            raise self.error(column, "the rate is 0; leave unknown rates blank")
        return found

    def price(self, column: str) -> float | None:
        """A number above zero: nothing in these tables is free, so a zero is a mistake."""
        found = self.number(column)
        if found == 0:
            raise self.error(column, "the price is 0; leave unknown prices blank")
        return found

    def date(self, column: str) -> str | None:
        """A year, a month or a day: 2026, 2026-02 or 2026-02-17."""
        text = self.text(column)
        if text is not None and not DATE.fullmatch(text):
            raise self.error(column, f"{text!r} is not a date like 2026, 2026-02 or 2026-02-17")
        return text

    def flag(self, column: str) -> bool | None:
        text = self.text(column)
        if text not in (None, "True", "False"):
            raise self.error(column, f"{text!r} is neither True nor False")
        return None if text is None else text == "True"

    def error(self, column: str, why: str) -> CatalogError:
        return CatalogError(f"{self.file}, row {self.number_in_file}, {column}: {why}")


def read_rows(
    path: Path, refuse: Callable[[list[str]], object] = lambda header: None
) -> tuple[list[str], list[CsvRow]]:
    """The columns and rows of a CSV file; ``refuse`` raises if the columns are unusable.

    Raises a `CatalogError` if it is unreadable, not a CSV in UTF-8, or a row has another length.
    """
    try:
        with io.StringIO(read_regular(path).decode("utf-8-sig"), newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, None)
            if header is None:
                raise CatalogError(f"{path}: the file is empty")
            refuse(header)
            rows = []
            for cells in lines:
                if cells and len(cells) != len(header):
                    raise CatalogError(
                        f"{path}: row {lines.line_num} has {len(cells)} columns, but the header "
                        f"has {len(header)}"
                    )
                if cells:
                    cell = dict(zip(header, cells, strict=True))
                    rows.append(CsvRow(str(path), lines.line_num, cell))
            return header, rows
    except csv.Error as why:
        raise CatalogError(f"{path}, row {lines.line_num}: not valid CSV ({why})") from None
    except UnicodeDecodeError as why:
        raise CatalogError(f"{path}: not UTF-8, as a CSV file must be ({why})") from None
    except PermissionError:
        raise CatalogError(f"{path}: {NOT_READABLE}") from None
    except OSError as why:
        raise CatalogError(f"{path}: {why.strerror}; specify a CSV file") from None


def refuse_columns(
    path: Path, header: list[str], needed: Iterable[str], optional: Iterable[str] = ()
) -> None:
    """Raise a `CatalogError` if columns are missing, unknown or repeated."""
    needed = list(needed)
    columns = {
        "missing column": [name for name in needed if name not in header],
        "unknown column": [name for name in header if name not in {*needed, *optional}],
        "repeated column": sorted({name for name in header if header.count(name) > 1}),
    }
    for what, names in columns.items():
        if names:
            raise CatalogError(f"{path}, row 1: {what} {', '.join(names)}")
