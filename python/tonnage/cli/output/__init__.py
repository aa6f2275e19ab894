"""What commands print: one JSON document with ``--json``, otherwise lines."""

import json
from collections.abc import Iterable
from typing import Any

from tonnage.base.records.base import Record


def print_result(document: Record | Any, lines: Iterable[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(document.to_json() if isinstance(document, Record) else document))
    else:
        print("\n".join(lines))
