"""The order of a sort: columns, each ascending or descending, its nulls first or last.

Lists of columns are text with commas between them, and quotes as in CSV around what has a comma.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tonnage.base import core

NULLS_FIRST, NULLS_LAST = ":nulls-first", ":nulls-last"
_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|((?!")[^,]*))(?=,|\Z)')


@dataclass(frozen=True)
class ColumnOrder:
    """One column of an order."""

    name: str
    descending: bool = False
    nulls_first: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def parse_order(text: str) -> list[ColumnOrder]:
    """Reads ``user,-ts,amount:nulls-first``; nulls come last by default.

    What has a comma is in quotes: ``"-price, net"``.

    Raises:
        UsageError: A part is no column with an order, or a column is named twice.
    """
    order = [_column(part) for part in split_columns(text, "by")]
    names = [column.name for column in order]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise core.UsageError(f"the column {twice!r} is named twice", setting="by")
    return order


def folders_first(order: Sequence[ColumnOrder], folders: Sequence[str]) -> list[ColumnOrder]:
    """The order of files in folders by some columns, and of the rows in each.

    Raises:
        UsageError: A column is named twice, or not at all.
    """
    twice = next((name for name in folders if folders.count(name) > 1), None)
    if twice is not None or "" in folders:
        raise core.UsageError(
            "a column has no name" if twice is None else f"the column {twice!r} is named twice",
            setting="partition_by",
        )
    within = [column for column in order if column.name not in folders]
    return [*(ColumnOrder(name) for name in folders), *within]


def _column(part: str) -> ColumnOrder:
    rest = part.removeprefix("-")
    # A name may have a colon itself; only these words are an order.
    name = rest.removesuffix(NULLS_FIRST).removesuffix(NULLS_LAST)
    if not name:
        raise core.UsageError(
            f"{part!r} is no sort key; use COLUMN, -COLUMN (descending) or COLUMN{NULLS_FIRST}",
            setting="by",
        )
    return ColumnOrder(name, part.startswith("-"), rest.endswith(NULLS_FIRST))


def split_columns(text: str, setting: str) -> list[str]:
    """The items of a list, without blanks around them: ``a,"b,c"`` is ``a`` and ``b,c``.

    Raises:
        UsageError: A quote does not end, or something follows it; ``setting`` is to blame.
    """
    items, begin = [], 0
    while begin <= len(text):
        found = _ITEM.match(text, begin)
        if found is None:
            raise core.UsageError(
                f"{text[begin:]!r} has a quote out of place; put all of a part in quotes that has "
                'a comma, as "-price, net", and write "" for a quote in it',
                setting=setting,
            )
        quoted, plain = found.groups()
        items.append(plain.strip() if quoted is None else quoted.replace('""', '"'))
        begin = found.end() + 1
    return items


def join_columns(items: Sequence[str]) -> str:
    """The text of which `split_columns` makes these items."""
    return ",".join(map(_quoted, items))


def _quoted(item: str) -> str:
    is_plain = item == item.strip() and not set(item) & set(',"')
    return item if is_plain else '"' + item.replace('"', '""') + '"'
