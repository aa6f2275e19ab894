"""The resources that reading and writing use, and the space that data takes, by its location."""

from collections.abc import Mapping
from typing import Literal

from tonnage.base.records.job import Resource
from tonnage.base.records.location import Location

READS: Mapping[Location, Resource] = {
    "local": "local read",
    "volumes": "volume read",
    "objects": "object get",
}
WRITES: Mapping[Location, Resource] = {
    "local": "local write",
    "volumes": "volume write",
    "objects": "object put",
}
SPACES: Mapping[Location, Literal["local", "volume", "object"]] = {
    "local": "local",
    "volumes": "volume",
    "objects": "object",
}
