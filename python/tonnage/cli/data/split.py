"""``tonnage split``."""

from pathlib import Path
from typing import Annotated

from tonnage.base import core, formatting
from tonnage.cli.options.chunks import Dtype, InputFormat
from tonnage.cli.options.object_store import EndpointUrl, locations, refuse_endpoint
from tonnage.cli.options.types import Argument, Count, Json, Option
from tonnage.cli.output import print_result
from tonnage.run.storage.object_store import is_url

MOST = 99_999
"""Numbers of parts have five digits."""


def split(
    *,
    source: Annotated[str, Argument("FILE", "A file, or an object: s3://BUCKET/KEY.")],
    output: Annotated[str, Option("DIR", "New directory for the parts.")],
    parts: Annotated[int | None, Count("Number of parts.", 1, MOST)] = None,
    workers: Annotated[
        int | None,
        Count(
            "Instead of --parts: choose the number of parts so that this many workers get equal "
            "shares, each part at most 256 MiB.",
            1,
            MOST,
        ),
    ] = None,
    format: InputFormat = None,
    dtype: Dtype = None,
    endpoint: EndpointUrl = None,
    as_json: Json = False,
) -> None:
    """Split a large file into parts of whole rows, so that workers get equal shares.

    The file is not changed. The directory appears only after all parts are complete.

    Examples:
        tonnage split points.bin --output points --workers 16 --dtype 8f8
    """
    from tonnage.run.formats.split_files import parts_for
    from tonnage.run.formats.split_files import split as split_file
    from tonnage.run.storage.object_store import ObjectStoreOptions
    from tonnage.run.storage.sources import Sources

    if (parts is None) == (workers is None):
        raise core.UsageError("use either --parts or --workers")
    if is_url(output):
        raise core.UsageError(
            f"--output {output}: parts are written to a local directory; use a directory, and copy "
            "it to the store afterwards"
        )
    refuse_endpoint(endpoint)
    locations([source])
    sources = Sources(ObjectStoreOptions(endpoint=endpoint), 1)
    files = list(sources.find(source))
    if len(files) != 1 or Path(source).is_dir() or source.endswith("/"):
        raise core.UsageError(
            f"input {source} is not a single file or object; pass one file or object"
        )
    (file,) = files
    count = parts or parts_for(workers or 1, file.bytes)
    if count > MOST:
        raise core.UsageError(f"{count} parts are too many; the maximum is {MOST}")
    done = 0
    with core.Progress("splitting", file.bytes) as progress:

        def on_bytes(length: int) -> None:
            nonlocal done
            done += length
            progress(done)

        of, written = split_file(file, Path(output), count, sources, format, dtype, on_bytes)
    values = {
        "input": file.name,
        "output": output,
        "bytes": file.bytes,
        "format": of.to_json(),
        "parts": [{"name": each.name, "bytes": each.bytes, "rows": each.rows} for each in written],
    }
    sizes = [each.bytes for each in written]
    line = (
        f"{output}: {formatting.several(len(written), 'part')} of {formatting.size(min(sizes))} "
        f"to {formatting.size(max(sizes))}"
    )
    print_result(values, [line], as_json)
