"""``tonnage measure object``."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage.base import core, formatting
from tonnage.base.records import Measurement, Metric
from tonnage.cli.measure.options import (
    MOST_ROUNDS,
    ROUNDS,
    FleetAddress,
    Instances,
    Labels,
    Measure,
    More,
    OneAtATime,
    Out,
    Patience,
    Rounds,
    Seed,
    UntilConfidence,
    carry_out,
    line,
    where,
)
from tonnage.cli.options.object_store import Endpoint, refuse_endpoint
from tonnage.cli.options.types import Json, number, parse_size, whole_number
from tonnage.cli.options.validate import refuse_memory, refuse_unknown
from tonnage.run.storage.object_store import parse_url

if TYPE_CHECKING:
    from tonnage.measure.object import Knee

CHUNKS = (1 << 20, 4 << 20, 16 << 20)
THREADS = (1, 2, 4, 8, 16)
OPERATIONS = ("get", "put")


def measure_object(
    place: Annotated[
        str,
        typer.Argument(
            metavar="s3://BUCKET/PREFIX",
            help="Where objects are put, in a folder of their own, which is removed at the end. "
            "Keys and region are taken from AWS_ variables or ~/.aws.",
        ),
    ],
    endpoint: Endpoint = None,
    operation: Annotated[
        list[str] | None,
        typer.Option(
            "--operation",
            metavar="OPERATION...",
            help="Of get (ranges), put (objects of a chunk) and multipart (parts of one upload, of "
            "5 MiB at least). Default: get and put.",
        ),
    ] = None,
    chunk: Annotated[
        list[int] | None,
        typer.Option(
            "--chunk-size",
            parser=parse_size,
            metavar="SIZE...",
            help="What one request moves. Default: 1MiB, 4MiB and 16MiB.",
        ),
    ] = None,
    threads: Annotated[
        list[int] | None,
        typer.Option(
            "--requests",
            parser=whole_number(1, 1024),
            metavar="N...",
            help="Requests at once. Default: 1, 2, 4, 8 and 16.",
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            parser=number(0.2, 1_000_000),
            metavar="SECONDS",
            help="Length of a trial.",
        ),
    ] = "5",  # type: ignore[assignment]
    rounds: Rounds = None,
    until_confidence: UntilConfidence = None,
    objects: Annotated[
        int,
        typer.Option(
            "--objects",
            parser=whole_number(1, 10_000),
            metavar="N",
            help="From how many objects chunks are got.",
        ),
    ] = "4",  # type: ignore[assignment]
    object_size: Annotated[
        int,
        typer.Option(
            "--object-size", parser=parse_size, metavar="SIZE", help="Size of each of them."
        ),
    ] = "64MiB",  # type: ignore[assignment]
    seed: Seed = "1",  # type: ignore[assignment]
    fleet: FleetAddress = None,
    instances: Instances = None,
    one_at_a_time: OneAtATime = False,
    patience: Patience = "60s",  # type: ignore[assignment]
    label: Labels = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure an object store: bandwidth, time to first byte and errors by chunk and threads."""
    from tonnage.measure import object as store

    at = where(fleet, instances, one_at_a_time, patience, label)
    bucket, prefix = parse_url(place)
    refuse_endpoint(endpoint)
    refuse_unknown("--operation", operation or [], store.OPERATIONS)
    settings = store.Settings(
        bucket=bucket,
        prefix=prefix,
        endpoint=endpoint,
        operations=tuple(operation or OPERATIONS),
        chunk_bytes=tuple(chunk or CHUNKS),
        threads=tuple(threads or THREADS),
        seconds=seconds,
        rounds=rounds or (MOST_ROUNDS if until_confidence else ROUNDS),
        until_confidence=until_confidence,
        objects=objects,
        object_bytes=object_size,
        seed=seed,
    )
    least = store.LEAST_PART_BYTES
    for size in chunk or []:
        if size < 1:
            raise core.UsageError("--chunk-size 0: give a byte at least")
        if "multipart" in settings.operations and size < least:
            raise core.UsageError(
                f"--chunk-size {size}: parts have 5MiB at least; give more, or leave out --operation "
                "multipart"
            )
    largest = max(settings.chunk_bytes)
    if "get" in settings.operations and object_size < largest:
        raise core.UsageError(
            f"--object-size {object_size} is less than a chunk of {largest}: give more, or a "
            "smaller --chunk-size"
        )
    if at.fleet is None:
        needed = store.memory_bytes(settings)
        refuse_memory(
            f"--requests {max(settings.threads)} with chunks of {formatting.memory(largest)} take "
            f"{formatting.memory(needed)},",
            needed,
            "give fewer, or smaller chunks",
        )

    def work(node: str | None) -> Measure:
        own = settings if node is None else settings.of_node(node)
        return functools.partial(store.measure_object, settings=own)

    carry_out(
        "object",
        work,
        dataclasses.asdict(settings),
        at,
        out,
        as_json,
        total_bytes=settings.laid_out_bytes,
        total_seconds=settings.most_seconds,
        more=_knees,
        in_line=_line,
    )


def _knees(measurement: Measurement) -> More:
    from tonnage.measure.object import knees

    found = knees(measurement.trials)
    return {"knees": [dataclasses.asdict(each) for each in found]}, [_knee(each) for each in found]


def _line(reading: Metric) -> str:
    """A reading in a line, with what a store's requests have besides."""
    parts = [line(reading)]
    first = reading.details["first_byte_seconds"].get("p50")
    if first is not None:
        parts.append(f"first byte: half {formatting.latency(first)}")
    errors = reading.details["errors"]
    if errors:
        kinds = formatting.listing(f"{count} {kind}" for kind, count in errors.items())
        parts.append(f"errors: {kinds} ({reading.details['retries']} repeated)")
    return "; ".join(parts)


def _knee(at: Knee) -> str:
    size, rate = formatting.memory(at.chunk_bytes), formatting.rate(at.bytes_per_second)
    threads = formatting.several(at.threads, "thread")
    return f"{at.operation} of {size}: knee at {threads}, {rate}, within 5 % of the best"
