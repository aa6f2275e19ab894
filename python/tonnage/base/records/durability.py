"""What happens to a cluster's output on local disks when a node is lost."""

from typing import Literal, get_args

Durability = Literal["none", "replicated"]
"""The node's share is computed again, or another node has a copy."""
DURABILITIES: tuple[Durability, ...] = get_args(Durability)
EARLIER_VOLUMES = "volumes"
"""In earlier records: no copies, since the output is not on local disks."""
