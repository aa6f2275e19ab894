"""Object storage in commands: URLs among paths, and how stores are reached."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tonnage.base import core
from tonnage.cli.options.files import bytes_in
from tonnage.cli.options.types import Argument, Count, Option
from tonnage.run.storage.object_store import is_url, parse_url

if TYPE_CHECKING:
    from tonnage.run.storage.object_store import ObjectStoreOptions

Inputs = Annotated[
    list[str],
    Argument(
        "INPUT...",
        "Files, directories, or objects: s3://BUCKET/KEY or s3://BUCKET/PREFIX/. Put them before "
        "the options. With --cluster: the files of all nodes; one on a shared file system counts "
        "once.",
    ),
]
EndpointUrl = Annotated[
    str | None,
    Option(
        "URL",
        "URL of the object store, like http://127.0.0.1:9000. Default: the environment variable "
        "AWS_ENDPOINT_URL, otherwise AWS.",
        flag="--endpoint-url",
    ),
]


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    endpoint_url: EndpointUrl = None
    requests: Annotated[
        int | None,
        Count("Concurrent requests to object storage. Default: 4 a core, at least 16.", 1, 1024),
    ] = None

    @property
    def store(self) -> ObjectStoreOptions:
        from tonnage.run.storage.object_store import ObjectStoreOptions

        refuse_endpoint(self.endpoint_url)
        return ObjectStoreOptions(endpoint=self.endpoint_url, requests=self.requests)


class Locations(NamedTuple):
    paths: list[Path]
    urls: list[str]


def locations(given: Iterable[str]) -> Locations:
    result = Locations([], [])
    for each in given:
        if is_url(each):
            parse_url(each)
            result.urls.append(each)
        else:
            result.paths.append(Path(each))
    return result


def bytes_to_read(inputs: Locations, store: ObjectStoreOptions) -> int:
    from tonnage.run.storage.object_store import find_objects

    objects = find_objects(inputs.urls, store) if inputs.urls else []
    return bytes_in(inputs.paths) + sum(each.bytes for each in objects)


def refuse_endpoint(endpoint: str | None) -> None:
    if endpoint is not None and not re.fullmatch(r"https?://[^/\s]+/?", endpoint):
        raise core.UsageError(f"--endpoint-url {endpoint}: use a URL like http://127.0.0.1:9000")
