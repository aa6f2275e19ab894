"""``tonnage run reduce`` and ``tonnage index``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tonnage.base import core, formatting
from tonnage.cli.measure.cluster import refuse_without_ray
from tonnage.cli.options.cluster import (
    PATIENCE_SECONDS,
    Candidate,
    Fleet,
    Instances,
    Out,
    Patience,
    Plan,
)
from tonnage.cli.options.files import new_directory
from tonnage.cli.options.object_store import (
    Endpoint,
    asked_of_stores,
    divided,
    refuse_endpoint,
    refuse_of_nodes,
)
from tonnage.cli.options.parser import Command
from tonnage.cli.options.plan_file import Followed, follow, refuse_other_fleet
from tonnage.cli.options.types import Json, Memory, number, parse_size, whole_number
from tonnage.cli.options.user_code import held_by
from tonnage.cli.options.validate import refuse_unknown
from tonnage.cli.output import run_comparison
from tonnage.cli.run.cluster import going_on
from tonnage.model.run_comparison.reduction import compare_reduction
from tonnage.run.storage.object_store import refuse_overlapping_inputs

if TYPE_CHECKING:
    from tonnage.api.cluster import Cluster
    from tonnage.base.records import ReductionRecord
    from tonnage.run.reduce import Reduction
    from tonnage.run.reduce.index import Index
    from tonnage.run.reduce.sampling import FromSample

OWN = ("kmeans", "pca", "regression", "pagerank", "histogram")
"""Reductions that need nobody's code."""
OF = {
    "--k": ("kmeans",),
    "--iterations": ("kmeans", "pagerank"),
    "--tolerance": ("kmeans", "pagerank"),
    "--seed": ("kmeans",),
    "--restarts": ("kmeans",),
    "--components": ("pca",),
    "--target": ("regression",),
    "--damping": ("pagerank",),
    "--precision": ("histogram",),
}
"""What each flag is for."""
RANK_ROUNDS = 100
"""In which PageRank gives rank, if nobody says how many."""
SAMPLE_ROWS = 10_000
"""Of which the first centres are drawn."""

Format = Annotated[
    str | None,
    typer.Option(
        "--input-format",
        help="rows (of a size), npy, parquet, arrow, csv or json. Default: as index or names say.",
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option("--dtype", help="What a row is, as NumPy writes it: 8f8 is eight 64-bit numbers."),
]
ChunkBytes = Annotated[
    str,
    typer.Option(
        "--chunk-size", metavar="SIZE|auto", help="About how large chunks are, like 16MiB."
    ),
]


class JobFirst(Command):
    """A command whose usage line shows the order of its arguments."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the command's name in its usage line."""
        return ["JOB", "URL...", "[OPTIONS]"]


def run_reduce(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB",
            help="kmeans, pca, regression, pagerank, histogram, or MODULE:NAME, one's own.",
        ),
    ],
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="URL...",
            help="Files, directories; objects, s3://BUCKET/KEY, or folders of them.",
        ),
    ],
    k: Annotated[
        int | None,
        typer.Option("--k", parser=whole_number(1, 1 << 20), metavar="N", help="Centres."),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations",
            parser=whole_number(1, 1 << 20),
            metavar="N",
            help="Rounds, at most. Default: 1 of kmeans, 100 of pagerank.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            parser=number(0, 1e300),
            metavar="X",
            help="Enough when no centre, or no more rank, moves further. Default: 0 and 1e-6.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", parser=whole_number(0, 1 << 62), metavar="N", help="Of the first centres."
        ),
    ] = None,
    restarts: Annotated[
        int | None,
        typer.Option(
            "--restarts",
            parser=whole_number(1, 1000),
            metavar="N",
            help="First centres are the best of so many drawings, by the rows that are looked at "
            "first. Default: 1.",
        ),
    ] = None,
    components: Annotated[
        int | None,
        typer.Option("--components", parser=whole_number(1, 1 << 20), metavar="N", help="Of pca."),
    ] = None,
    target: Annotated[
        int | None,
        typer.Option(
            "--target",
            parser=whole_number(-(1 << 20), 1 << 20),
            metavar="N",
            help="The column that a regression explains, from 0. Default: the last.",
        ),
    ] = None,
    damping: Annotated[
        float | None,
        typer.Option(
            "--damping",
            parser=number(0, 1),
            metavar="X",
            help="Of rank, the share that goes along edges. Default: 0.85.",
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            "--precision",
            parser=number(1e-6, 0.5),
            metavar="X",
            help="How far a histogram's values may be off, as a share of themselves. Default: 0.01",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B,...", help="Columns that count. Default: all."),
    ] = None,
    format: Format = None,
    dtype: Dtype = None,
    chunk_bytes: ChunkBytes = "auto",
    threads: Annotated[
        str, typer.Option("--requests", metavar="N|auto", help="Requests to stores at once.")
    ] = "auto",
    capacities: Annotated[
        list[Path] | None,
        typer.Option(
            "--capacities",
            metavar="DIR...",
            help="What tonnage measure object kept: --requests auto begins with as many as were "
            "enough there.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            parser=whole_number(1, 1024),
            metavar="N",
            help="Threads that reduce; as many as there are cores by default.",
        ),
    ] = None,
    memory: Memory = "256MiB",  # type: ignore[assignment]
    assignment: Annotated[
        str,
        typer.Option("--assignment", help="Which chunk is next: selective, or sequential."),
    ] = "selective",
    fleet: Fleet = None,
    out: Out = None,
    patience: Patience = None,
    instances: Instances = None,
    plan: Plan = None,
    candidate: Candidate = None,
    endpoint: Endpoint = None,
    as_json: Json = False,
) -> None:
    """Reduce rows to something small: chunks are retrieved, and reduced where they come.

    No pairs, no shuffle: each worker has a reduction object, and these are merged at the end.
    """
    given = {
        "--k": k,
        "--iterations": iterations,
        "--tolerance": tolerance,
        "--seed": seed,
        "--restarts": restarts,
        "--components": components,
        "--target": target,
        "--damping": damping,
        "--precision": precision,
    }
    if job not in OWN and ":" not in job:
        raise core.UsageError(
            f"{job}: there are {formatting.listing(OWN)}, or MODULE:NAME{formatting.did_you_mean(job, OWN)}"
        )
    for flag, value in given.items():
        if value is not None and job not in OF[flag]:
            raise core.UsageError(f"{flag} is of {formatting.listing(OF[flag])}, not of {job}")
    refuse_unknown("--assignment", [assignment], ("selective", "sequential"))
    refuse_endpoint(endpoint)
    paths, urls = divided(inputs)
    refuse_overlapping_inputs(urls)
    of_plan = {"--plan": plan, "--candidate": candidate}
    where = _where(fleet, paths, urls, out, patience, instances, of_plan)
    followed = follow("reduce", plan, candidate, instances, None)
    if followed and where:
        where = _as_planned(where, followed)
    from tonnage.api.reduce import reduce

    names = columns.split(",") if columns else None
    own = {flag.removeprefix("--"): value for flag, value in given.items() if value is not None}
    chunk = _auto("--chunk-size", chunk_bytes, parse_size)
    at_once = _auto("--requests", threads, whole_number(1, 1024))
    measured = _measured(capacities or [], at_once, chunk, urls)
    more: dict[str, Any] = {"chunk_bytes": chunk, "format": format, "dtype": dtype}
    made = _made(job, own, names)
    with going_on(Path(where.job_dir)) if where else nullcontext(), core.Progress("reducing") as progress:
        done = reduce(
            made,
            [*map(str, paths), *urls],
            memory=memory,
            workers=workers,
            threads=at_once,
            measured=measured,
            assignment=assignment,
            endpoint=endpoint,
            cluster=where,
            named=(job, own | ({"columns": names} if names else {})),
            on_progress=lambda number, *moved: progress.update_round(
                number, most_rounds(job, own), *moved
            ),
            **more,
        )
    record = done.record
    if followed and where and record.rounds_here:
        from tonnage.run.reduce.cluster.job_dir import RECORD

        record = compare_reduction(record, followed.plan, followed.candidate)
        record.write(Path(where.job_dir) / RECORD)
    if as_json:
        print(json.dumps(record.to_json()))
        return
    print("\n".join(in_words(record)))
    if where:
        print(f"Kept in {where.job_dir}")


def index(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="URL...",
            help="Files, directories; objects, s3://BUCKET/KEY, or folders of them.",
        ),
    ],
    format: Format = None,
    dtype: Dtype = None,
    chunk_bytes: ChunkBytes = "auto",
    endpoint: Endpoint = None,
    as_json: Json = False,
) -> None:
    """Cut files and objects in chunks of whole rows, and keep the list of them next to the data.

    tonnage run reduce finds it there. Of what has not changed since, nothing is looked at again.
    """
    from tonnage.run.reduce import index_store
    from tonnage.run.reduce.index import build_index
    from tonnage.run.storage.object_store import ObjectStoreOptions
    from tonnage.run.storage.sources import Sources

    refuse_endpoint(endpoint)
    divided(inputs)
    chunk = _auto("--chunk-size", chunk_bytes, parse_size)
    volumes = ObjectStoreOptions(endpoint=endpoint)
    sources = Sources(volumes, 1)
    for given in inputs:
        files = list(sources.find(given))
        place = index_store.index_path(given, files)
        before = index_store.read_index(place, sources, volumes)
        wanted = index_store.choose_format(files, before, format, dtype, sources)
        known = None if chunk else before
        with core.Progress("indexing") as progress:
            cut = partial(_cut, progress, len(files))
            made = build_index(
                files,
                wanted,
                chunk or index_store.CHUNK_BYTES,
                sources,
                known,
                cut,
            )
        index_store.write_index(place, made, volumes)
        told = {
            "index": place,
            "format": made.format.to_json(),
            "files": len(made.files),
            "known": made.known,
            "chunks": len(made.chunks),
            "bytes": made.bytes,
            "rows": made.rows,
        }
        print(json.dumps(told) if as_json else _of_index(place, made))


def most_rounds(job: str, own: Mapping[str, Any]) -> int | None:
    """How many rounds there are at most; ``None`` if only the reduction knows."""
    if job not in OWN:
        return None
    if job == "pagerank":
        return 1 + int(own.get("iterations", RANK_ROUNDS))  # The first counts edges.
    return int(own.get("iterations", 1))


def in_words(record: ReductionRecord) -> list[str]:
    """What a reduction did, line by line."""
    rate = formatting.rate(record.rounds * record.bytes / record.seconds) if record.seconds else "-"
    workers = record.workers
    shares = {
        "waiting for chunks": sum(each.retrieval_seconds for each in workers),
        "reducing": sum(each.processing_seconds for each in workers),
        "waiting for others": sum(each.synchronisation_seconds for each in workers),
    }
    spent = ", ".join(f"{formatting.seconds(each)} {name}" for name, each in shares.items())
    rows = "rows that nobody counted" if record.rows is None else f"{record.rows} rows"
    lines = [
        f"{rows}, {formatting.size(record.bytes)} in {record.chunks} chunks, "
        f"{formatting.several(record.rounds, 'round')}",
        f"{formatting.seconds(record.seconds)}, {rate}, {formatting.significant(record.cpu_seconds)} core "
        "seconds",
        f"{formatting.several(len(workers), 'worker')}: {spent}",
    ]
    if record.compared:
        lines += run_comparison.lines(record.compared, record.seconds)
    if record.requests:
        lines.append(asked_of_stores(record.requests))
    if record.job == "kmeans" and "restarts" not in record.settings.get("flags", {}):
        lines.append("Other first centres may come to less inertia: --restarts 10 looks for them")
    return [*lines, json.dumps(record.result, indent=1)]


def _cut(progress: core.Progress, files: int, cut: int, _: int) -> None:
    progress(cut, files)


def _of_index(place: str, made: Index) -> str:
    rows = "" if made.rows is None else f", {made.rows} rows"
    return (
        f"{place}: {formatting.several(len(made.files), 'file')} ({made.known} known before), "
        f"{formatting.several(len(made.chunks), 'chunk')}, {formatting.size(made.bytes)}{rows}"
    )


def _auto(flag: str, text: str, parse: Any) -> Any:
    if text == "auto":
        return None
    try:
        return parse(text)
    except typer.BadParameter as why:
        raise core.UsageError(f"{flag} {why.message}, or auto") from None


def _measured(
    capacities: list[Path], at_once: int | None, chunk: int | None, urls: Sequence[str]
) -> int | None:
    """How many requests at once were enough where the store was measured.

    Raises:
        UsageError: Requests are given, no input is in a store, or none was measured.
    """
    if not capacities:
        return None
    if not urls:
        raise core.UsageError(
            "--capacities is of object storage, where no input is: leave it out, or give s3://..."
        )
    if at_once is not None:
        raise core.UsageError("--capacities is for --requests auto: give one of both")
    from tonnage.cli.options.inputs import measured_places, read_all
    from tonnage.measure.object import enough
    from tonnage.run.reduce.tuning import RANGE_BYTES

    found = enough(read_all(measured_places(capacities)), min(chunk or RANGE_BYTES, RANGE_BYTES))
    if found is None:
        raise core.UsageError(
            f"--capacities {formatting.listing(map(str, capacities))}: no object was got there: give "
            "what tonnage measure object kept"
        )
    return found


def _where(
    fleet: str | None,
    paths: Sequence[Path],
    urls: Sequence[str],
    out: Path | None,
    patience: float | None,
    instances: int | None,
    of_plan: Mapping[str, Any],
) -> Cluster | None:
    """The fleet that is to do it, if one is."""
    if fleet is None:
        of_fleet = {"--job-dir": out, "--timeout": patience, "--nodes": instances, **of_plan}
        for flag, given in of_fleet.items():
            if given is not None:
                raise core.UsageError(f"{flag} is for a fleet: give --cluster too")
        return None
    refuse_without_ray()
    from tonnage.api.cluster import Cluster
    from tonnage.run.two_pass.job_spec import check_node_paths

    check_node_paths("input", map(str, paths))
    refuse_of_nodes(urls)
    out = out or new_directory("tonnage-reduce")
    return Cluster(out, fleet, instances, patience or PATIENCE_SECONDS)


def _as_planned(where: Cluster, followed: Followed) -> Cluster:
    """As many machines as planned, which have to be those that were."""

    def look(machines: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        if any(Path(where.job_dir).glob("*")):
            return  # It goes on, with whom there is.
        doubt = refuse_other_fleet(followed, machines)
        for said in filter(None, (f"as planned: {followed.said}", doubt)):
            print(formatting.sentence(said), file=sys.stderr)

    return replace(where, nodes=followed.nodes, on_nodes=look)


def _made(job: str, own: dict[str, Any], names: list[str] | None) -> Reduction[Any] | FromSample:
    """The reduction of a name, with what flags say."""
    from tonnage.run.formats import as_points
    from tonnage.run.reduce import Reduction
    from tonnage.run.reduce.builtin.histogram import Histograms
    from tonnage.run.reduce.builtin.kmeans import KMeans, best_centres
    from tonnage.run.reduce.builtin.moments import PCA, Regression
    from tonnage.run.reduce.builtin.pagerank import PageRank
    from tonnage.run.reduce.sampling import FromSample

    if job == "kmeans":
        if "k" not in own:
            raise core.UsageError("--k: say how many centres, like --k 16")

        def of_rows(rows: Any) -> Reduction[Any]:
            drawn = own.get("seed", 0), own.get("restarts", 1)
            centres = best_centres(as_points(rows, names), own["k"], *drawn)
            return KMeans(centres, own.get("iterations", 1), own.get("tolerance", 0.0), names)

        return FromSample(SAMPLE_ROWS, of_rows)
    if job == "pca":
        if "components" not in own:
            raise core.UsageError("--components: say how many, like --components 8")
        return PCA(own["components"], names)
    if job == "regression":
        return Regression(own.get("target", -1), names)
    if job == "pagerank":
        return PageRank(
            own.get("damping", 0.85),
            own.get("tolerance", 1e-6),
            own.get("iterations", RANK_ROUNDS),
            names,
        )
    if job == "histogram":
        return Histograms(own.get("precision", 0.01), names)
    found = held_by(job, Reduction, "tonnage.Reduction")
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as why:
            raise core.UsageError(f"{job}: {why}: name one that is made already") from why
    made: Reduction[Any] = found
    return made
