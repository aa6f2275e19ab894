"""Lists of columns as text: commas between them, and quotes around what has a comma, as in CSV."""

import re
from collections.abc import Sequence

from tonnage.base import core

_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|((?!")[^,]*))(?=,|\Z)')


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
