"""What sar, sadf or iostat sampled of the nodes of a run: an observation, and a job."""

from pathlib import Path

from tonnage.base import core
from tonnage.cli.measure.importing.job_files import JOB_SUFFIX, refuse_other_suffix
from tonnage.cli.measure.importing.run_tables import table_columns_named
from tonnage.cli.options.validate import usage_errors
from tonnage.cli.output import print_result
from tonnage.cli.output.observed_runs.observation import observation_lines


def import_node_run(files: list[Path], out: Path | None, data: int | None, as_json: bool) -> None:
    from tonnage.measure.importers.metric import UnreadableFile
    from tonnage.measure.importers.node_files import read_nodes
    from tonnage.measure.observe.nodes.observation import (
        NoCommonTime,
        common_time,
        observe_nodes,
    )
    from tonnage.measure.observe.to_job import to_job

    refuse_other_suffix(out)
    with usage_errors(UnreadableFile, NoCommonTime), table_columns_named():
        imported = read_nodes(files)
        begin, end = common_time(imported.nodes)
    observation = observe_nodes(imported.nodes, begin, end, data=data, notes=imported.notes)
    job = to_job(_run_name(files), observation)
    lines = observation_lines(observation)
    if out:
        if job is None:
            raise core.UsageError("the size of the run's input is not known; add --data")
        seen = out.with_name(f"{out.stem}-observation{JOB_SUFFIX}")
        job.write(out)
        observation.write(seen)
        lines.append(f"Results: {out}, for tonnage plan; {seen}, what was seen")
    print_result(observation, lines, as_json)


def _run_name(files: list[Path]) -> str:
    """What the run is called: as its only file or directory."""
    from tonnage.measure.importers.metric import one_line

    return one_line(files[0].resolve().stem) if len(files) == 1 else "imported run"
