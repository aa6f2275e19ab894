"""``tonnage import``: results of other tools, and what is known of runs of other engines."""

from pathlib import Path
from typing import Annotated

from tonnage.base import core
from tonnage.cli.measure.importing.event_logs import is_event_log
from tonnage.cli.measure.importing.job_files import JOB_SUFFIX
from tonnage.cli.measure.importing.node_runs import import_node_run
from tonnage.cli.measure.importing.past_runs import import_past_runs
from tonnage.cli.measure.importing.results import import_results
from tonnage.cli.measure.importing.run_tables import is_run_table
from tonnage.cli.options.object_store import EndpointUrl
from tonnage.cli.options.types import Argument, Json, Option, Size, parse_measurable


def import_files(
    files: Annotated[
        list[str],
        Argument(
            "FILE...",
            "Output of one of these tools, which may be compressed with zstd; event logs of Spark: "
            "a file, the directory of a rolling log, or s3://BUCKET/KEY; files of sysstat from the "
            "nodes of one run, or their directory; or a table of past runs.",
        ),
    ],
    out: Annotated[
        Path | None,
        Option(
            "DIR|FILE.json",
            "Directory for the measurements, for tonnage report, and for applications; of a run, "
            "or of a single event log, the file for its job, for tonnage plan. Default: print "
            "only.",
            flag="--output",
        ),
    ] = None,
    data: Annotated[
        int | None,
        Size(
            "Files of sysstat: size of the run's input. Default: the number of bytes that its "
            "first phase reads.",
            parse_measurable,
        ),
    ] = None,
    job: Annotated[
        str | None, Option("JOB", "A table of past runs: the job to plan, if it has several.")
    ] = None,
    cached: Annotated[
        int | None,
        Size(
            "A table of past runs: size of the data that the job keeps in memory, as its engine "
            "shows it. Default: that of --demands, or unknown.",
            parse_measurable,
        ),
    ] = None,
    demands: Annotated[
        Path | None,
        Option(
            "FILE.json",
            "A table of past runs: the event log, or what was sampled, of one of them, as "
            "imported; what its run took is known then. Default: unknown.",
        ),
    ] = None,
    endpoint_url: EndpointUrl = None,
    as_json: Json = False,
) -> None:
    """Import results of fio, IOR, mdtest, bonnie++, iozone, hdparm, iperf3, sysstat, elbencho or
    warp, event logs of Spark 3.0 and later, and tables of past runs.

    The tool is recognized by the file's content. All files are checked before anything is written;
    if one is truncated or unrecognized, nothing is imported. Only the log of an application that
    has not ended may end early.

    What sar, sadf or iostat sampled of one or more nodes while a job ran is cut into phases if a
    directory is given, --data, or a .json file as --output. That file gets the job, and
    FILE-observation.json what was seen of it.

    A table of past runs is a CSV file with columns job, machine_type, nodes and seconds, and any of
    provider, data_bytes, framework, data_label, price_hour, outcome, repetition and parameters.

    Examples:
        tonnage import fio.json ior.txt --output imported
        tonnage import s3://logs/eventlog_v2_application_1_0001/ --output job.json
        tonnage import last-night/ --data 2TB --output job.json
        tonnage import runs.csv --cached 195GB --output job.json
        tonnage import runs.csv --demands last-night.json --output job.json
    """
    tables = [each for each in files if is_run_table(each)]
    if not tables:
        for flag, value in (("--job", job), ("--cached", cached), ("--demands", demands)):
            if value is not None:
                raise core.UsageError(f"{flag} is for a table of past runs; remove it")
    if tables:
        if len(files) > 1 or data is not None:
            raise core.UsageError(
                f"{tables[0]} is a table of past runs, which is imported alone, without --data"
            )
        import_past_runs(Path(tables[0]), out, job, cached, demands, as_json)
    elif _are_node_runs(files, out, data):
        import_node_run([Path(each) for each in files], out, data, as_json)
    else:
        import_results(files, out, endpoint_url, as_json)


def _are_node_runs(files: list[str], out: Path | None, data: int | None) -> bool:
    """Whether these are to be cut into phases, not results to measure by."""
    if any(map(is_event_log, files)):
        if data is not None:
            raise core.UsageError("--data is not for event logs, which tell their input; remove it")
        return False
    names_job = out is not None and out.suffix == JOB_SUFFIX
    return data is not None or names_job or any(Path(each).is_dir() for each in files)
