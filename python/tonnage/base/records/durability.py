"""What happens to a cluster's output when a node is lost."""

from typing import Literal, get_args

Durability = Literal["none", "replicated", "volumes"]
"""The node's share is computed again; another node has a copy; or object storage has it."""
DURABILITIES: tuple[Durability, ...] = get_args(Durability)
