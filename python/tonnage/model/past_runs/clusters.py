"""What clusters have of each resource, as arrays over clusters, and the sizes of their runs."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Clusters:
    """Identical machines each; of each array the first axis are clusters.

    All but ``nodes`` are of one machine. ``cores`` counts them in cores of the reference: a core
    that is twice as fast counts as two.
    """

    nodes: Floats
    vcpus: Floats
    cores: Floats
    memory_bytes: Floats
    disk_bytes_per_second: Floats
    network_bytes_per_second: Floats
    machine_types: Integers
    """A number for each type, and one for each family of types."""
    families: Integers

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def memory_gib(self) -> Floats:
        """Of one machine."""
        return self.memory_bytes / (1 << 30)

    def at(self, places: npt.ArrayLike) -> "Clusters":
        where = np.asarray(places, dtype=np.int64)
        return Clusters(*(getattr(self, name)[where] for name in self.__dataclass_fields__))

    def __add__(self, other: "Clusters") -> "Clusters":
        return Clusters(
            *(
                np.concatenate([getattr(self, name), getattr(other, name)])
                for name in self.__dataclass_fields__
            )
        )


REFERENCE = Clusters(
    nodes=np.array([12.0]),
    vcpus=np.array([4.0]),
    cores=np.array([4.0]),
    memory_bytes=np.array([16.0 * (1 << 30)]),
    disk_bytes_per_second=np.array([93.75e6]),
    network_bytes_per_second=np.array([1.5e9 / 8]),
    machine_types=np.array([-1]),
    families=np.array([-1]),
)
"""Where a job's demands are compared with each other: a cluster of twelve m4.xlarge."""
REFERENCE_SPEED = 5621.11 / 4
"""Of an m4.xlarge's thread, in thousands of strings that it sorts a second."""
