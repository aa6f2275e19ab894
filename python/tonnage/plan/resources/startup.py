"""How long a cluster takes from the request of its machines until the job can begin.

Starting has steps, one after another, and all machines take each at the same time: each machine
boots until it runs what it was given, Tonnage and Ray are installed on it and Ray is started, and
all are screened, as `tonnage launch` does. A step is a capacity like any other, in machines per
second, so the slowest of N follows from the distribution of single machines. Billing begins with
the boot, some seconds after the request; the difference is billed here, too. Where a profile has
finished launches of a provider, their time from the request until all was ready is the only step.

Installing is Tonnage's own figure: an environment and pip without a cache, of what the wheel and
Ray need, took 46, 51 and 55 s of one core of an Intel Xeon that other work used too (pip uses one
core, whatever the machine has), and Ray's start 5.3 and 5.8 s, first on the head and then on the
others. Ubuntu's images lack `python3-venv`; for `apt-get` 10 s are assumed. Screening follows from
its limits in `tonnage launch`: six trials of 5 s of each disk, two of 1.5 s of the network, and the
processes of two measurements, which start as Ray does.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tonnage.base import formatting
from tonnage.base.records.profile import CapacityDistribution, Evidence, Mode
from tonnage.catalog.published import start_times
from tonnage.model.capacity import UNKNOWN_SPREAD
from tonnage.model.profiles.fit import fit_distribution

Startup = Mapping[str, Sequence[CapacityDistribution]]
"""Machines per second of each step, by provider; the machines of other providers are ready."""
BOOT, INSTALL, SCREEN = "start", "install", "screen"
PROVIDERS = ("aws", "gcp", "azure")
RAY_SECONDS = 5.6
INSTALL_SECONDS = 51.0 + 10.0 + 2 * RAY_SECONDS
SCREEN_SECONDS = 6 * 5.0 + 2 * 1.5 + 2 * RAY_SECONDS


def default_startup(launched: Mapping[str, CapacityDistribution] = MappingProxyType({})) -> Startup:
    """Starts of each provider as in finished launches; else boots as others measured them, and what
    `tonnage launch` does then."""
    prepared = [
        _same_for_all(
            INSTALL,
            INSTALL_SECONDS,
            "measured",
            "Tonnage's own: pip 51 s on one core of an Intel Xeon, Ray twice 5.6 s, apt-get 10 s "
            "(assumed)",
            "assumed, as cores and mirrors differ",
        ),
        _same_for_all(
            SCREEN,
            SCREEN_SECONDS,
            "derived",
            "limits of tonnage launch: six trials of 5 s of each disk, two of 1.5 s of the "
            "network, two starts of processes",
            "assumed, as fast disks take less and few nodes have more trials of the network",
        ),
    ]
    return {
        provider: (launched[provider],)
        if provider in launched
        else (_published_boot(provider), *prepared)
        for provider in PROVIDERS
    }


def fixed_startup(seconds: float) -> Startup:
    """So many seconds, whatever the provider and the number of machines; 0: they run already."""
    if not seconds:
        return {}
    step = _same_for_all(BOOT, seconds, "measured", "specified", "specified", spread=0.0)
    return dict.fromkeys((*PROVIDERS, "lab"), (step,))


def _published_boot(provider: str) -> CapacityDistribution:
    seconds = start_times.start_seconds(provider)
    source = (
        f"{formatting.several(len(seconds), 'start')} of machines without accelerators "
        f"({start_times.SOURCE})"
    )
    rates = [1 / each for each in seconds]
    return fit_distribution(BOOT, [rates], evidence="measured", source=source)


def _same_for_all(
    step: str,
    seconds: float,
    evidence: Evidence,
    source: str,
    spread_source: str,
    spread: float = UNKNOWN_SPREAD,
) -> CapacityDistribution:
    return CapacityDistribution(
        resource=step,
        modes=[Mode(median=1 / seconds, spread=spread, instances=1)],
        of_fleet=True,
        evidence=evidence,
        source=source,
        spread_source=spread_source,
    )
