"""Invented measurements for tests, with trials of any rates."""

from collections.abc import Mapping, Sequence

from tonnage.base.records import Environment, Measurement, Phase, Trial

ENVIRONMENT = Environment(
    host="made-up",
    kernel="none",
    operating_system="none",
    virtualisation="none",
    cpu_model="none",
    cores=2,
    memory_bytes=1 << 30,
    memory_limit_bytes=None,
    load_average=0.0,
    devices=[],
    versions={},
    debug_build=False,
)

PHASE = Phase(
    name="none",
    graph="none",
    began_seconds=0.0,
    seconds=1.0,
    bottleneck="none",
    memory_bytes=0,
    disk_modes=[],
    stages=[],
)


def measurement(
    name: str,
    rates: Mapping[str, Sequence[float]],
    cpu_seconds_per_byte: Mapping[str, float] | None = None,
) -> Measurement:
    """A measurement with trials of the given names and rates, with almost no CPU by default."""
    cpu = cpu_seconds_per_byte or {}
    return Measurement(
        id=name,
        kind="made up",
        began_at="2026-01-01T00:00:00+00:00",
        command=["test"],
        environment=ENVIRONMENT,
        settings={},
        stopping_rule="none",
        page_cache="none",
        trials=[
            Trial(
                name=trial,
                bytes_per_second=rate,
                cpu_seconds_per_byte=cpu.get(trial, 1e-15),
                warm_up_seconds=0.0,
                rates=[rate],
                phase=PHASE,
            )
            for trial, values in rates.items()
            for rate in values
        ],
    )
