"""How long a cluster takes to start: as long as the slowest of its machines.

The start of a machine is a capacity like any other, in starts per second, so the slowest of N
follows from the distribution of single starts. It counts from the request until the machine runs
what it was given. Billing begins with the boot, some seconds after the request; the difference is
billed here, too.
"""

from collections.abc import Mapping

from tonnage.base import formatting
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.catalog.published import start_times
from tonnage.model.profiles.fit import fit_distribution

Startup = Mapping[str, CapacityDistribution]
"""Starts per second of a machine, by provider; those of other providers run already."""
RESOURCE = "start"
PROVIDERS = ("aws", "gcp", "azure")


def published_startup() -> Startup:
    """As others measured the starts of each provider's machines."""
    found = {}
    for provider in PROVIDERS:
        seconds = start_times.start_seconds(provider)
        source = (
            f"{formatting.several(len(seconds), 'start')} of machines without accelerators "
            f"({start_times.SOURCE})"
        )
        rates = [1 / each for each in seconds]
        found[provider] = fit_distribution(RESOURCE, [rates], evidence="measured", source=source)
    return found


def fixed_startup(seconds: float) -> Startup:
    """So many seconds, whatever the provider and the number of machines; 0: they run already."""
    if not seconds:
        return {}
    law = CapacityDistribution(
        resource=RESOURCE,
        modes=[Mode(median=1 / seconds, spread=0.0, instances=1)],
        of_fleet=True,
        evidence="measured",
        source="specified",
        spread_source="specified",
    )
    return dict.fromkeys((*PROVIDERS, "lab"), law)
