"""``tonnage gensort``."""

from pathlib import Path
from typing import Annotated

from tonnage.base import core, formatting
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import LARGEST, Argument, Count, Json, Switch, whole_number
from tonnage.cli.output import print_result


def gensort(
    records: Annotated[
        int, Argument("RECORDS", "Number of records.", whole_number(0, LARGEST // 100))
    ],
    files: Annotated[
        list[Path], Argument("FILE...", "Files to write; the records are divided among them.")
    ],
    ascii_records: Annotated[
        bool, Switch("--ascii", "Generate ASCII records instead of binary ones.")
    ] = False,
    start: Annotated[int, Count("Record number to start at.", 0, (1 << 128) - 1)] = default("0"),
    skew: Annotated[
        bool, Switch("--skew", "Generate skewed keys instead of uniform ones.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Generate Sort Benchmark records, byte for byte the same as those of gensort 1.5.

    Files that exist are replaced, once all records are written.

    Examples:
        tonnage gensort 10000000 in/a in/b
    """
    from tonnage.run.sort.gensort import RECORD_BYTES, generate

    with core.Progress("generating", records * RECORD_BYTES) as progress:
        done = generate(
            records,
            files,
            start=start,
            ascii_records=ascii_records,
            skew=skew,
            on_progress=progress,
        )
    seconds = formatting.seconds(done["seconds"])
    line = f"{done['records']} records, {done['bytes']} bytes, {seconds}"
    print_result(done, [line], as_json)
