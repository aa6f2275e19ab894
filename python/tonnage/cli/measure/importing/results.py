"""Results of other tools as measurements, and event logs as applications."""

import re
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.records import Measurement, Metric
from tonnage.base.records.application import Application
from tonnage.base.records.base import to_builtins
from tonnage.cli.measure.importing.event_logs import is_event_log, read_application
from tonnage.cli.measure.importing.run_tables import table_columns_named
from tonnage.cli.options.files import command_line
from tonnage.cli.options.object_store import StoreOptions
from tonnage.cli.options.validate import usage_errors
from tonnage.cli.output import print_result
from tonnage.cli.output.observed_runs.application import application_lines
from tonnage.cli.output.trials import metric_line, scorecard_line
from tonnage.run.storage.object_store import is_url

LONGEST_NAME = 200
"""Of a file, without its ending."""


def import_results(
    files: list[str], out: Path | None, endpoint_url: str | None, as_json: bool
) -> None:
    from tonnage.measure.importers.detection import read, to_measurement
    from tonnage.measure.importers.metric import UnreadableFile

    store = StoreOptions(endpoint_url=endpoint_url).store
    logs = [each for each in files if is_event_log(each)]
    results = [Path(each) for each in files if each not in logs]
    with usage_errors(UnreadableFile), table_columns_named():
        measurements = [
            to_measurement(file, read(file), command=command_line()) for file in results
        ]
    applications = [read_application(log, store) for log in logs]
    if out:
        _write(out, measurements, applications, files)
    lines = [_line(reading) for each in measurements for reading in each.readings]
    for file, measurement in zip(results, measurements, strict=True):
        lines.append(f"{file}: {scorecard_line(measurement)}")
    for application in applications:
        lines += application_lines(application)
    print_result(_document(measurements, applications), lines, as_json)


def _document(
    measurements: list[Measurement], applications: list[Application]
) -> Application | dict[str, Any]:
    """What is printed as JSON: a single application's record, otherwise lists."""
    if not measurements and len(applications) == 1:
        return applications[0]
    document: dict[str, Any] = {}
    if measurements or not applications:
        readings = [reading for each in measurements for reading in each.readings]
        document["measurements"] = [to_builtins(each) for each in readings]
    if applications:
        document["applications"] = [each.to_json() for each in applications]
    return document


def _write(
    out: Path, measurements: list[Measurement], applications: list[Application], files: list[str]
) -> None:
    paths = _application_paths(out, applications, alone=not measurements)
    inputs = {Path(each).resolve() for each in files if not is_url(each)}
    for path in paths:
        if path.resolve() in inputs:
            raise core.UsageError(f"--output {out} would replace {path}; name another place")
    for measurement in measurements:
        measurement.write(out / f"{measurement.id}.json")
    for path, application in zip(paths, applications, strict=True):
        application.write(path)


def _application_paths(out: Path, applications: list[Application], alone: bool) -> list[Path]:
    """The file of each application: the one that was named, or by its id in a directory."""
    if out.suffix == ".json" and not out.is_dir() and applications:
        if len(applications) > 1 or not alone:
            raise core.UsageError(
                f"--output {out}: several files need a directory; name one without .json"
            )
        return [out]
    paths = [out / f"{_file_name(each)}.json" for each in applications]
    if len({*paths}) < len(paths):
        raise core.UsageError(
            "two of the event logs are of the same application and attempt; pass one of them"
        )
    return paths


def _file_name(application: Application) -> str:
    parts = [application.id or "application", application.attempt]
    return re.sub(r"[^\w-]", "_", "_".join(part for part in parts if part))[:LONGEST_NAME]


def _line(reading: Metric) -> str:
    tool = f"{reading.source.tool} {reading.source.version or ''}".strip()
    block = f" of {reading.block_bytes} bytes" if reading.block_bytes else ""
    depth = f" x{reading.concurrency}" if reading.concurrency else ""
    return f"{tool} {reading.operation}{block}{depth}: {metric_line(reading)}"
