"""Keys of free-form dictionaries in records that something reads again: these have types, too.

Each command has its own ``settings``, each tool its own ``details``, so other keys are allowed.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from tonnage.base.records.base import Amount, Count, PositiveCount, Seconds
from tonnage.base.records.location import Location


class KnownKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys with their types; others are allowed."""


class OwnPriceKeys(KnownKeys, frozen=True, kw_only=True):
    provider: str
    machine_type: str
    region: str | None
    usd_per_hour: Amount
    source: str


class PlanSettings(KnownKeys, frozen=True, kw_only=True):
    deadline_seconds: Seconds | None
    budget_usd: Amount | None
    least_nodes: PositiveCount
    most_nodes: PositiveCount
    objective: Literal["cost", "time", "nearest"] | UnsetType = UNSET
    charged: Literal["seconds", "hours"] | UnsetType = UNSET
    network: Literal["scaled", "baseline", "infinite"] | UnsetType = UNSET
    purchase: Literal["on-demand", "spot"] | UnsetType = UNSET
    providers: list[str] | UnsetType = UNSET
    include: list[str] | UnsetType = UNSET
    measured: bool | UnsetType = UNSET
    placement: bool | UnsetType | None = UNSET
    startup: bool | UnsetType = UNSET
    cores: bool | UnsetType = UNSET
    memory: bool | UnsetType = UNSET
    quota_vcpus: PositiveCount | UnsetType | None = UNSET
    public_addresses: bool | UnsetType = UNSET
    prefixes: PositiveCount | UnsetType = UNSET
    descriptors: PositiveCount | UnsetType | None = UNSET
    discount_percent: Amount | UnsetType = UNSET
    prices: list[OwnPriceKeys] | UnsetType = UNSET
    arch: str | UnsetType | None = UNSET


class JobSettings(KnownKeys, frozen=True, kw_only=True):
    durability: Literal["none", "replicated", "volumes"] | UnsetType = UNSET
    input_location: Location | UnsetType = msgspec.field(default=UNSET, name="from")
    output_location: Location | UnsetType = msgspec.field(default=UNSET, name="to")
    objects: bool | UnsetType = UNSET
    functions: str | UnsetType = UNSET
    map_share: Amount | UnsetType = UNSET
    reduce_share: Amount | UnsetType = UNSET
    waits_seconds: Seconds | UnsetType = UNSET
    passes: Amount | UnsetType = UNSET
    seconds: Seconds | UnsetType = UNSET
    nodes: Amount | UnsetType = UNSET  # Of the observed run, and their cores together
    cores: Amount | UnsetType = UNSET


class RunSettings(KnownKeys, frozen=True, kw_only=True):
    """Of a sort or MapReduce."""

    inputs: list[str] | UnsetType = UNSET
    output: list[str] | UnsetType = UNSET
    memory_bytes: Count | UnsetType = UNSET
    partitions: Count | UnsetType = UNSET
    flags: dict[str, Any] | UnsetType = UNSET
    durability: str | UnsetType | None = UNSET


class ReductionSettings(KnownKeys, frozen=True, kw_only=True):
    inputs: list[str]
    memory_bytes: Count
    chunk_bytes: Count | UnsetType | None = UNSET
    threads: Count | UnsetType | None = UNSET
    workers: Count | UnsetType | None = UNSET
    flags: dict[str, Any] | UnsetType = UNSET


class ClusterStudySettings(KnownKeys, frozen=True, kw_only=True):
    sorted_bytes: Count


class MeasurementSettings(KnownKeys, frozen=True, kw_only=True):
    layout: str | UnsetType | None = UNSET
    devices: list[str] | UnsetType | None = UNSET
    directory: str | UnsetType | None = UNSET
    read: list[str] | UnsetType = UNSET
    write: list[str] | UnsetType = UNSET
    endpoint: str | UnsetType | None = UNSET


class EndpointSettings(KnownKeys, frozen=True, kw_only=True):
    """Of a network between processes of one machine."""

    endpoints: PositiveCount
    connections: PositiveCount
    one_way: bool
    namespaces: bool
    rate_bits_per_second: PositiveCount | UnsetType | None = UNSET


class ConnectionCounts(KnownKeys, frozen=True, kw_only=True):
    retransmits: Count | None


class MetricDetails(KnownKeys, frozen=True, kw_only=True):
    layout: str | UnsetType | None = UNSET
    host: str | UnsetType | None = UNSET
    pattern: str | UnsetType = UNSET
    endpoints: Count | UnsetType = UNSET
    connections: list[ConnectionCounts] | UnsetType = UNSET
    connections_per_pair: Count | UnsetType = UNSET
    machine_types: list[str] | UnsetType = UNSET
    node_names: list[str] | UnsetType = UNSET
    nodes: Count | UnsetType = UNSET
    began_late_seconds: float | UnsetType | None = UNSET
    retries: Count | UnsetType = UNSET
    errors: dict[str, Count] | Count | UnsetType = UNSET
    first_byte_seconds: dict[str, Amount | Count | None] | UnsetType = UNSET


class NetworkTestDetails(MetricDetails, frozen=True, kw_only=True):
    """Of a network between machines."""

    pattern: str
    endpoints: PositiveCount
    connections_per_pair: PositiveCount
    node_names: list[str]
    attempt: str


class DiskMode(KnownKeys, frozen=True, kw_only=True):
    engine: str | UnsetType = UNSET
    registered: bool | UnsetType = UNSET
    direct: bool | UnsetType = UNSET
    why: str | UnsetType | None = UNSET


class RequestCounts(KnownKeys, frozen=True, kw_only=True):
    requests: Count | UnsetType = UNSET
    retries: Count | UnsetType = UNSET
    hedged: Count | UnsetType = UNSET
    errors: dict[str, Count] | UnsetType = UNSET


def check_known_keys(values: Mapping[str, Any], kind: type[KnownKeys], field: str) -> None:
    """Check the known keys of a record's field; a `ValueError` begins with the place."""
    try:
        msgspec.convert(values, kind)
    except msgspec.ValidationError as why:
        from tonnage.base.records.schema_errors import first_mistake

        place = first_mistake(values, kind) or f"$: {why}"
        raise ValueError(f".{field}{place.removeprefix('$')}") from why
