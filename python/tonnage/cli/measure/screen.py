"""``tonnage measure screen``."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base import core, formatting
from tonnage.base.records import ClusterMeasurement
from tonnage.base.records.environment import MACHINE_TYPE
from tonnage.base.records.network_rounds import NET, RECEIVE, SEND
from tonnage.cli.measure import cluster as fleets
from tonnage.cli.measure.disk import disks_more, work_on
from tonnage.cli.measure.net import shuffled
from tonnage.cli.measure.options import (
    ROUNDS,
    Instances,
    Labels,
    More,
    Out,
    Patience,
    TrialSeconds,
    TrialSize,
    Where,
    output,
    refuse_directories,
    where,
)
from tonnage.cli.options.types import Json, Memory, parse_size

if TYPE_CHECKING:
    from tonnage.base.records.job import Job
    from tonnage.catalog import Catalog
    from tonnage.cluster.ray_adapter import Cluster, Machine
    from tonnage.measure.cluster.driver import MeasurementEvents, OnStatus
    from tonnage.model.outlier_nodes import ScreeningResult, Suspect
    from tonnage.plan.drop_nodes import Forecast, Gain

MODES = ("ro", "wo")
NET_SECONDS, NET_ROUNDS, NET_BLOCK_BYTES = 1.5, 1, 64 << 10
"""Short, and in blocks so small that slow links carry many."""
WHAT = {SEND: "what its link sends", RECEIVE: "what its link receives"}


@dataclass(frozen=True)
class Asked:
    """Of which job it is to be told what it would gain."""

    job: Job
    size: int
    catalogs: list[Catalog]


def measure_screen(
    fleet: Annotated[
        str,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="The machines of the Ray cluster at HOST:PORT, or, with auto, of the one that "
            "this machine is in.",
        ),
    ] = "auto",
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            "--dir",
            metavar="DIR...",
            help="A directory on each device of a machine, from / on; {node} in it is its name.",
        ),
    ] = None,
    size: TrialSize = "1GB",  # type: ignore[assignment]
    seconds: TrialSeconds = "5",  # type: ignore[assignment]
    memory: Memory = "256MiB",  # type: ignore[assignment]
    job: Annotated[
        str | None,
        typer.Option(
            "--job",
            metavar="JOB",
            help="Also tell what this job would gain without the suspects: sort, mapreduce, or a "
            "job's JSON file. Needs --data.",
        ),
    ] = None,
    data: Annotated[
        int | None,
        typer.Option(
            "--data", parser=parse_size, metavar="SIZE", help="The job's input, like 1TB."
        ),
    ] = None,
    catalog: Annotated[
        list[str] | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="Where the machines' prices are: a catalog's name or CSV file; again for more. "
            "Default: each provider's newest.",
        ),
    ] = None,
    instances: Instances = None,
    patience: Patience = "60s",  # type: ignore[assignment]
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Look for a minute at each machine's disks and link, and name what is slow, and how sure.

    A machine is held against others of its type: it takes five machines, and three of a type, to
    judge any. Who does not measure at all is named too.
    """
    asked = _asked(job, data, catalog)
    directories = directory or [Path()]
    at = where(fleet, instances, False, patience, label)
    refuse_directories(at, directories)
    fleets.refuse_without_ray()
    from tonnage.measure.cluster import driver
    from tonnage.measure.cluster.screening import DISK, screen_cluster
    from tonnage.measure.disk import DiskSettings
    from tonnage.measure.net import cluster as net

    settings = DiskSettings(
        read=tuple(directories),
        write=tuple(directories),
        modes=MODES,
        rounds=ROUNDS,
        seconds=seconds,
        size_bytes=size,
        memory_bytes=memory,
    )
    disks = driver.MeasurementRequest(
        kind=DISK,
        work=work_on(settings),
        settings=settings.recorded,
        **at.asked,
        late_seconds=math.inf,  # Its own disks are what they are.
    )
    network = net.ClusterNetSettings(
        connections=(1,),
        sizes=None,
        block_bytes=NET_BLOCK_BYTES,
        seconds=NET_SECONDS,
        rounds=NET_ROUNDS,
        seed=0,
        brief=True,
    )
    out = output("screen", out)

    def measured(cluster: Cluster, on_rows: OnStatus) -> MeasurementEvents:
        if why := unjudged(cluster.machines, at):
            print(f"Nobody can be found slow, only who does not measure: {why}", file=sys.stderr)
        return screen_cluster(cluster, out, disks, network, on_rows)

    of_disks, *of_network = fleets.carried_out(fleet, "screen", measured, as_json)
    show(of_disks, of_network[0] if of_network else None, out, asked, as_json)
    if not as_json:
        fleets.print_place(out)
    fleets.fail_if_missing(of_disks, *of_network)


def unjudged(machines: Sequence[Machine], at: Where) -> str | None:
    """Why it is known before that a fleet is too small to judge anybody; none if it is not."""
    from tonnage.model.outlier_nodes import why_too_few

    labels = [{**each.labels, **at.labels} for each in machines[: at.instances]]
    return why_too_few([each.get(MACHINE_TYPE) for each in labels])


def _asked(job: str | None, data: int | None, catalog: list[str] | None) -> Asked | None:
    """What the options ask of a job."""
    from tonnage.cli.options.planning import catalogs_of, job_of
    from tonnage.plan.drop_nodes import beyond

    if job is None:
        for flag in [
            flag for flag, given in {"--data": data, "--catalog": catalog}.items() if given
        ]:
            raise core.UsageError(f"{flag} is of a job: give --job too")
        return None
    if not data:
        raise core.UsageError("--job: give its --data too, like 1TB")
    made = job_of(job, {}, None)
    if elsewhere := beyond(made):
        raise core.UsageError(
            f"--job {job}: it needs {formatting.listing(elsewhere)}, and what is looked at is each "
            "machine's disks and link: leave it out"
        )
    return Asked(made, data, catalogs_of(catalog, ()))


def show(
    disks: ClusterMeasurement,
    network: ClusterMeasurement | None,
    out: Path,
    asked: Asked | None,
    as_json: bool,
) -> None:
    """Prints what was measured into ``out``, who is suspect, and what a job would gain."""
    from tonnage.measure.cluster.screening import DISK
    from tonnage.model.outlier_nodes import screen

    found = screen(disks, network)
    told, told_lines = _gain(disks, network, found, asked) if asked else ({}, [])
    if as_json:
        document = {
            "disk": fleets.document(disks, disks_more),
            "net": fleets.document(network) if network else None,
            "suspects": [dataclasses.asdict(each) for each in found.suspects],
            "decommission": found.decommission,
            "not_judged": found.not_judged,
        }
        print(json.dumps(document | told))
        return
    print("\n".join(fleets.summary(disks, out / DISK, disks_more)))
    if network:
        print("\n".join([*fleets.summary(network, out / NET), *shuffled(network)]))
    else:
        print("The network was not looked at: it takes two machines.")
    print("\n".join([*_lines(found), *told_lines]))


def _lines(found: ScreeningResult) -> list[str]:
    lines = [_line(each) for each in found.suspects]
    for why in sorted(set(found.not_judged.values())):
        nodes = [node for node, reason in sorted(found.not_judged.items()) if reason == why]
        lines.append(f"Not judged, since {why}: {formatting.listing(nodes)}")
    if found.decommission:
        lines.append(f"To decommission: {formatting.listing(found.decommission)}")
    return lines or ["No machine is suspect."]


def _line(suspect: Suspect) -> str:
    if suspect.ratio_to_median is None:
        return f"Suspect: {suspect.node} {suspect.what}"
    what = WHAT.get(suspect.what) or formatting.trial(suspect.what)
    return (
        f"Suspect: {suspect.node}, {what}: {formatting.percent(suspect.ratio_to_median)} of what its "
        f"kind carries, {formatting.percent(suspect.confidence)} sure"
    )


def _gain(
    disks: ClusterMeasurement,
    network: ClusterMeasurement | None,
    found: ScreeningResult,
    asked: Asked,
) -> More:
    """What the job would gain without the suspects; ``gain`` of None: that cannot be told."""
    from tonnage.model.outlier_nodes import measured_rates
    from tonnage.plan.drop_nodes import CannotTell, Node, gain

    rows = {row.node: row for row in disks.nodes}
    offers = {
        (offer.provider, offer.type): (offer, each.billing)
        for each in reversed(asked.catalogs)
        for offer in each.offers
    }
    nodes = []
    for name, rates in measured_rates(disks, network).items():
        kind = (rows[name].provider or "", rows[name].machine_type or "")
        nodes.append(Node(name, rates, *offers.get(kind, (None, None))))
    job = f"{asked.job.name} of {formatting.size(asked.size)}"
    try:
        came = gain(asked.job, asked.size, nodes, found.decommission)
    except CannotTell as why:
        return {"gain": None, "why": str(why)}, [f"What a {job} would gain is not known: {why}"]
    values = {"seconds": came.seconds, "usd": came.usd, **dataclasses.asdict(came)}
    return {"gain": values}, list(_of_gain(job, came))


def _of_gain(job: str, came: Gain) -> Iterator[str]:
    yield f"A {job}: {_forecast(came.with_all)}"
    if came.without.nodes < came.with_all.nodes:
        yield f"Without the suspects: {_forecast(came.without)}"
        yield f"Without them the job is {formatting.listing(_saved(came))}"
    yield from map(formatting.sentence, came.notes)


def _saved(came: Gain) -> Iterator[str]:
    much = formatting.duration(abs(came.seconds))
    yield f"done {much} {'sooner' if came.seconds >= 0 else 'later'}"
    if came.usd is not None:
        yield f"{_usd(abs(came.usd))} {'cheaper' if came.usd >= 0 else 'dearer'}"


def _usd(value: float) -> str:
    return formatting.usd(round(value, 2) if value >= 1 else float(f"{value:.2g}"))


def _forecast(each: Forecast) -> str:
    price = "price unknown" if each.usd is None else _usd(each.usd)
    return f"{formatting.duration(each.seconds)}, {price}, on {formatting.several(each.nodes, 'machine')}"
