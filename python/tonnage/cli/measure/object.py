"""``tonnage measure object``."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Annotated

from tonnage.base import core, formatting
from tonnage.base.records import Measurement, Metric
from tonnage.cli.measure.options import Measure, MeasureOptions, RepetitionOptions, Seed
from tonnage.cli.measure.suite import Suite, run_suite
from tonnage.cli.options.object_store import EndpointUrl, refuse_endpoint
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import (
    Argument,
    Count,
    Option,
    Size,
    Time,
    duration,
    parse_size,
    whole_number,
)
from tonnage.cli.options.validate import refuse_memory, refuse_unknown
from tonnage.cli.output.trials import Details, metric_line
from tonnage.run.storage.object_store import parse_url

if TYPE_CHECKING:
    from tonnage.measure.object import Knee, ObjectSettings

CHUNKS = (1 << 20, 4 << 20, 16 << 20)
REQUESTS = (1, 2, 4, 8, 16)
OPERATIONS = ("get", "put")


def measure_object(
    *,
    place: Annotated[
        str,
        Argument(
            "s3://BUCKET/PREFIX",
            "Where to put test objects: an unused prefix; everything under it is deleted at the "
            "end. Credentials and region come from the AWS_ environment variables, or ~/.aws.",
        ),
    ],
    endpoint: EndpointUrl = None,
    operation: Annotated[
        list[str] | None,
        Option(
            "OPERATION...",
            "get (range reads), put (one-chunk objects), multipart (parts of one upload, each at "
            "least 5 MiB). Default: get and put.",
        ),
    ] = None,
    chunk: Annotated[
        list[int] | None,
        Option(
            "SIZE...",
            "Bytes per request. Default: 1MiB, 4MiB and 16MiB.",
            parse_size,
            flag="--chunk-size",
        ),
    ] = None,
    requests: Annotated[
        list[int] | None,
        Option(
            "N...",
            "Concurrent requests to object storage. Default: 1, 2, 4, 8 and 16.",
            whole_number(1, 1024),
        ),
    ] = None,
    seconds: Annotated[float, Time("Duration of a trial.", duration(0.2, 1_000_000))] = default(
        "5"
    ),
    objects: Annotated[int, Count("Number of objects to read from.", 1, 10_000)] = default("4"),
    object_size: Annotated[int, Size("Size of each of these objects.")] = default("64MiB"),
    seed: Seed = default("1"),
    repetition: RepetitionOptions,
    options: MeasureOptions,
) -> None:
    """Measure an object store: bandwidth, time to first byte and errors, for each chunk size and
    number of concurrent requests.

    Examples:
        tonnage measure object s3://bucket/test --requests 1 4 16 --output store
        tonnage measure object s3://bucket/test --endpoint-url http://127.0.0.1:9000
    """
    from tonnage.measure import object as store

    bucket, prefix = parse_url(place)
    refuse_endpoint(endpoint)
    refuse_unknown("--operation", operation or [], store.OPERATIONS)
    settings = store.ObjectSettings(
        bucket=bucket,
        prefix=prefix,
        endpoint=endpoint,
        operations=tuple(operation or OPERATIONS),
        chunk_bytes=tuple(chunk or CHUNKS),
        threads=tuple(requests or REQUESTS),
        seconds=seconds,
        rounds=repetition.most,
        until_confidence=repetition.until_confidence,
        objects=objects,
        object_bytes=object_size,
        seed=seed,
    )
    _refuse_sizes(settings)
    if options.cluster is None:
        needed = store.buffer_bytes(settings)
        largest = formatting.memory(max(settings.chunk_bytes))
        refuse_memory(
            f"--requests {max(settings.threads)} with chunks of {largest} needs "
            f"{formatting.memory(needed)},",
            needed,
            "lower --requests or --chunk-size",
        )

    def work(node: str | None) -> Measure:
        of_node = settings if node is None else settings.for_node(node)
        return functools.partial(store.measure_object, settings=of_node)

    suite = Suite(
        kind="object",
        work=work,
        settings=dataclasses.asdict(settings),
        total_bytes=settings.prepared_bytes,
        total_seconds=settings.max_duration_seconds,
        details=_knees,
        trial_line=_trial_line,
    )
    run_suite(suite, options)


def _refuse_sizes(settings: ObjectSettings) -> None:
    from tonnage.measure.object import MIN_PART_BYTES

    smallest, largest = min(settings.chunk_bytes), max(settings.chunk_bytes)
    if smallest < 1:
        raise core.UsageError("--chunk-size 0: use at least 1 byte")
    if "multipart" in settings.operations and smallest < MIN_PART_BYTES:
        raise core.UsageError(
            f"--chunk-size {smallest}: a part of a multipart upload has at least 5MiB; raise "
            "--chunk-size, or remove multipart from --operation"
        )
    if "get" in settings.operations and settings.object_bytes < largest:
        raise core.UsageError(
            f"--object-size {settings.object_bytes} is less than --chunk-size {largest}; raise "
            "--object-size, or lower --chunk-size"
        )


def _knees(measurement: Measurement) -> Details:
    from tonnage.measure.object import knees

    found = knees(measurement.trials)
    return {"knees": [dataclasses.asdict(each) for each in found]}, [_knee(each) for each in found]


def _trial_line(metric: Metric) -> str:
    parts = [metric_line(metric)]
    first = metric.details["first_byte_seconds"].get("p50")
    if first is not None:
        parts.append(f"first byte p50 {formatting.latency(first)}")
    errors = metric.details["errors"]
    if errors:
        kinds = formatting.listing(f"{count} {kind}" for kind, count in errors.items())
        parts.append(f"errors: {kinds} ({metric.details['retries']} retried)")
    return "; ".join(parts)


def _knee(knee: Knee) -> str:
    size, rate = formatting.memory(knee.chunk_bytes), formatting.rate(knee.bytes_per_second)
    requests = formatting.several(knee.threads, "request")
    suffice = "suffices" if knee.threads == 1 else "suffice"
    return f"{knee.operation} of {size}: {requests} {suffice}: {rate}, within 5 % of the best"
