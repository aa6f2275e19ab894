"""CSV that stays as it is, by dates and times: compared as these, however they are written."""

from pathlib import Path

import pytest

from run.sort.test_typed_text import sorted_text
from tonnage.base import core
from tonnage.run.sort.tables import TableOrder

ASCENDING = {
    "dates": [
        "-0044-03-15",
        "0001-01-01",
        " 1969-12-31",
        "2024-02-29",
        "9999-12-31",
        "+12020-01-01",
    ],
    "times": ["00:00", "00:00:01", " 09:30", "23:59:59"],
    "timestamps": ["-0044-03-15", "1969-12-31T23:59", "2024-02-29", "2024-02-29 00:00:01"],
    "fractions": ["1969-12-31 23:59:59.9", "2024-01-01", "2024-01-01T00:00:00.000000001"],
    "zones": ["2024-01-01T00:30+01:00", "2023-12-31T23:45Z", "2024-01-01T00:00:00-00:30"],
    "fractions and zones": ["2024-01-01T00:30:00.5+01:00", "2023-12-31T23:30:01Z"],
}


@pytest.mark.parametrize("values", ASCENDING.values(), ids=ASCENDING)
@pytest.mark.parametrize("is_descending", [False, True])
def test_dates_and_times_keep_their_text(
    values: list[str], is_descending: bool, tmp_path: Path
) -> None:
    rows = [f"{place},{value}\n" for place, value in enumerate([*values, ""])]
    # From the middle outward, which is no order of theirs.
    text = "n,k\n" + "".join(rows[1::2] + rows[::2])
    expected = rows[:-1][::-1] + rows[-1:] if is_descending else rows
    order = TableOrder(by="-k" if is_descending else "k")
    assert sorted_text(tmp_path, text, order) == "n,k\n" + "".join(expected)


@pytest.mark.parametrize(
    ("value", "other", "name"),
    [
        ("2024-01-01", "2024-13-01", "date"),
        ("10:00", "25:00", "time in whole seconds"),
        ("2024-01-01 10:00", "2024-01-01 10:00:00.5", "timestamp in whole seconds"),
        ("2024-01-01 10:00Z", "2024-01-01 10:00", "timestamp in whole seconds"),
    ],
)
def test_what_is_none_is_refused(value: str, other: str, name: str, tmp_path: Path) -> None:
    text = "k,v\n" + f"{value},{'x' * 50}\n" * 20_000 + f"{other},y\n"
    with pytest.raises(core.UsageError, match=rf'line 20002 .*"{other}" in column "k", .*{name};'):
        sorted_text(tmp_path, text, TableOrder(by="k"))
