"""How fast a core does the work of the built-in jobs, as Tonnage's own benchmarks measured it.

benches/cluster_sort on two cores of an AMD EPYC, without steal: 3.1 core seconds for each GB of a
sort, 4.6 with a copy of the output on another node, 7.1 with input and output in an object store.
Of the 3.1, a profile of the same sort on the same type of machine (docs/concepts/cluster-sort.md)
gives partitioning 0.9, receiving and sending 0.7, sorting 1.3, and writing 0.3, half of it in each
pass. Outside of its passes the command took 3.5 s there, 3.2 s with copies: four nodes on two cores
start a process each and end it. A core of another machine is faster or slower as it sorts strings
(`catalog.published`), compared with the median core of AMD's EPYC.

benches/reduce_peers on two cores of the same processor, which retrieved 1 GB of rows of eight
float64 from an S3 server on the same machine: an iteration of k-means with 16 centres in 0.86 s
(the median of three processes), and the sums that PCA needs in 1.29 s (one process). A reduction
takes at most both cores for that time, as the server had a part of it. Getting objects is included.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tonnage.base.records.job import Resource
from tonnage.base.records.profile import CapacityDistribution, Mode
from tonnage.model.capacity import UNKNOWN_SPREAD

EPYC_SORTING = 4493.0
"""Thousands of strings that the median core of 743 types with AMD's EPYC sorts in a second."""
BENCH_CORES = 2
CORE_SECONDS_PER_GB: Mapping[str, float] = MappingProxyType(
    {
        "cpu partition": 0.9 + 0.7 + 0.15,
        "cpu sort": 1.3 + 0.15,
        "cpu copy": 4.56 - 3.08,
        "cpu object": (7.06 - 3.08) / 2,
        "cpu kmeans": BENCH_CORES * 0.86,
        "cpu pca": BENCH_CORES * 1.29,
    }
)
REDUCTIONS: Mapping[str, Resource] = MappingProxyType({"kmeans": "cpu kmeans", "pca": "cpu pca"})
"""What the built-in reductions that were measured take of cores; of each pass."""
BEGIN = "cpu begin"
NODE_CORE_SECONDS = (3.5 + 3.2) / 2 * 2 / 4
"""Of one core of a node, before the first pass and after the last."""
ENGINE_JOBS = ("sort", "mapreduce", "reduce")
"""The jobs that are this engine's."""
SOURCE = "Tonnage's own, benches/cluster_sort on two cores of an AMD EPYC"
SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "cpu kmeans": "Tonnage's own, benches/reduce_peers on two cores of an AMD EPYC, 16 centres "
        "and rows of eight float64 from S3",
        "cpu pca": "Tonnage's own, benches/reduce_peers on two cores of an AMD EPYC, rows of eight "
        "float64 from S3",
    }
)
"""Of what others than `SOURCE` measured."""


def core_throughput() -> dict[str, CapacityDistribution]:
    """Bytes a second of the median core of AMD's EPYC, by resource; of `BEGIN` core seconds."""
    return {
        resource: _of_core(resource, 1e9 / seconds, f"{seconds:.3g} core seconds per GB")
        for resource, seconds in CORE_SECONDS_PER_GB.items()
    } | {BEGIN: _of_core(BEGIN, 1.0, f"{NODE_CORE_SECONDS:.3g} core seconds for each node")}


def _of_core(resource: str, median: float, what: str) -> CapacityDistribution:
    return CapacityDistribution(
        resource=resource,
        modes=[Mode(median=median, spread=UNKNOWN_SPREAD, instances=1)],
        of_fleet=True,
        evidence="advertised",
        source=f"{SOURCES.get(resource, SOURCE)}: {what}",
        spread_source="assumed, as other processors do the work at another speed than they sort "
        "strings",
    )
