"""The order of a sort: columns, each ascending or descending, its nulls first or last.

Lists of columns are text with commas between them. A name in quotes, in which ``""`` is a quote, is
what it says; its minus is before the quotes, and the order of its nulls behind them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tonnage.base import core

NULLS_FIRST, NULLS_LAST = ":nulls-first", ":nulls-last"
QUOTED = r'"(?:[^"]|"")*"'
_NULLS = rf"({NULLS_FIRST}|{NULLS_LAST})?"
_NAME = re.compile(rf'\s*({QUOTED}|(?!")[^,]*)\s*(?=,|\Z)')
_KEY = re.compile(rf'\s*(-?{QUOTED}{_NULLS}|(?!-?")[^,]*)\s*(?=,|\Z)')
_QUOTED_KEY = re.compile(rf"(-?)({QUOTED}){_NULLS}")
_PLAIN_KEY = re.compile(rf"(-?)(.*?){_NULLS}", re.DOTALL)


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

    A name with a comma, or one that begins with a minus, is in quotes: ``-"price, net","-x"``.

    Raises:
        UsageError: A part is no column with an order, or a column is named twice.
    """
    order = [_column(part) for part in _split(text, "by", _KEY)]
    names = [column.name for column in order]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise core.UsageError(f"the column {twice!r} is named twice", setting="by")
    return order


def is_column_or_field(key: str, columns: Iterable[str]) -> bool:
    """Whether a key is one of these columns, or a field of one: ``user.id`` of ``user``."""
    return any(key == column or key.startswith(f"{column}.") for column in columns)


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


def join_order(keys: Sequence[str]) -> str:
    """The text of these keys; names need no quotes for their commas."""
    columns = [_column(key) for key in keys]
    return ",".join(
        f"{'-' * each.descending}{_quoted(each.name)}{NULLS_FIRST * each.nulls_first}"
        for each in columns
    )


def _column(key: str) -> ColumnOrder:
    found = _QUOTED_KEY.fullmatch(key) or _PLAIN_KEY.fullmatch(key)
    assert found is not None
    minus, name, nulls = found.groups()
    if not name:
        raise core.UsageError(
            f"{key!r} is no sort key; use COLUMN, -COLUMN (descending) or COLUMN{NULLS_FIRST}",
            setting="by",
        )
    return ColumnOrder(_unquoted(name), bool(minus), nulls == NULLS_FIRST)


def split_columns(text: str, setting: str) -> list[str]:
    """The names of a list, without blanks around them: ``a,"b,c"`` is ``a`` and ``b,c``.

    Raises:
        UsageError: A quote does not end, or something follows it; ``setting`` is to blame.
    """
    return [_unquoted(item) for item in _split(text, setting, _NAME)]


def _split(text: str, setting: str, pattern: re.Pattern[str]) -> list[str]:
    items, begin = [], 0
    while begin <= len(text):
        found = pattern.match(text, begin)
        if found is None:
            raise core.UsageError(
                f"{text[begin:]!r} has a quote out of place; put all of a name in quotes that has "
                'a comma, as "price, net", its minus before them, and write "" for a quote in it',
                setting=setting,
            )
        items.append(found[1].strip())
        begin = found.end() + 1
    return items


def join_names(names: Sequence[str]) -> str:
    """The text of which `split_columns` makes these names, in quotes where keys need them."""
    return ", ".join(each if _is_plain(each) else _quoted(each) for each in names)


def _is_plain(name: str) -> bool:
    """Whether a name needs no quotes, as ``crates/tables/src/order.rs`` says in messages, too."""
    has_order = name.startswith("-") or name.endswith((NULLS_FIRST, NULLS_LAST))
    return bool(name) and name == name.strip() and not has_order and not set(name) & set(',"')


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if re.fullmatch(QUOTED, name) else name
