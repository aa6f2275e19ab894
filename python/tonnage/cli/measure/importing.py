"""``tonnage import``: results of other tools."""

from pathlib import Path
from typing import Annotated

from tonnage.base.records import Metric
from tonnage.base.records.base import to_builtins
from tonnage.cli.options.files import command_line
from tonnage.cli.options.types import Argument, Json, Option
from tonnage.cli.options.validate import usage_errors
from tonnage.cli.output import print_result
from tonnage.cli.output.trials import metric_line, scorecard_line


def import_files(
    files: Annotated[
        list[Path],
        Argument("FILE...", "Output of one of these tools; may be compressed with zstd."),
    ],
    out: Annotated[
        Path | None,
        Option(
            "DIR",
            "Directory for the measurements, for tonnage report. Default: print only.",
            flag="--output",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Import results of fio, IOR, mdtest, bonnie++, iozone, hdparm, iperf3, sysstat, elbencho or
    warp.

    The tool is recognized by the file's content. All files are checked before anything is written;
    if one is truncated or unrecognized, nothing is imported.

    Examples:
        tonnage import fio.json ior.txt --output imported
    """
    from tonnage.measure.importers.detection import read, to_measurement
    from tonnage.measure.importers.metric import UnreadableFile

    with usage_errors(UnreadableFile):
        found = [to_measurement(file, read(file), command=command_line()) for file in files]
    for measurement in found:
        if out:
            measurement.write(out / f"{measurement.id}.json")
    readings = [reading for measurement in found for reading in measurement.readings]
    lines = [_line(each) for each in readings]
    for file, measurement in zip(files, found, strict=True):
        lines.append(f"{file}: {scorecard_line(measurement)}")
    print_result({"measurements": [to_builtins(each) for each in readings]}, lines, as_json)


def _line(reading: Metric) -> str:
    tool = f"{reading.source.tool} {reading.source.version or ''}".strip()
    block = f" of {reading.block_bytes} bytes" if reading.block_bytes else ""
    depth = f" x{reading.concurrency}" if reading.concurrency else ""
    return f"{tool} {reading.operation}{block}{depth}: {metric_line(reading)}"
