"""Where a job's input is, or its output goes."""

from typing import Literal, get_args

Location = Literal["objects", "volumes", "local"]
"""Object storage, network block storage that outlives the nodes, or disks that do not."""
LOCATIONS: tuple[Location, ...] = get_args(Location)
