"""Object storage in commands: urls among paths, and how stores are reached."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tonnage.base import core
from tonnage.cli.measure.options import NODE
from tonnage.cli.options.files import bytes_in
from tonnage.cli.options.types import whole_number
from tonnage.run.storage.object_store import is_url, parse_url

if TYPE_CHECKING:
    from tonnage.run.storage.object_store import ObjectStoreOptions

Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint-url",
        metavar="URL",
        help="The store's address, like http://127.0.0.1:9000. Default: AWS_ENDPOINT_URL, or AWS.",
    ),
]
Requests = Annotated[
    int | None,
    typer.Option(
        "--requests",
        parser=whole_number(1, 1024),
        metavar="N",
        help="Requests to object storage at once. Default: 16.",
    ),
]


def divided(places: Iterable[str]) -> tuple[list[Path], list[str]]:
    """The paths among places, and the urls."""
    paths, urls = [], []
    for place in places:
        if is_url(place):
            parse_url(place)
            urls.append(place)
        else:
            paths.append(Path(place))
    return paths, urls


def reached(endpoint: str | None, requests: int | None) -> ObjectStoreOptions:
    """How stores are reached, as the flags say."""
    from tonnage.run.storage.object_store import ObjectStoreOptions

    refuse_endpoint(endpoint)
    return ObjectStoreOptions(endpoint=endpoint, requests=requests)


def asked_of_stores(requests: Mapping[str, Any]) -> str:
    """What a record's requests to object storage were, in words."""
    said = f"{requests['requests']} requests to object storage, {requests['retries']} of them "
    hedged = requests.get("hedged")
    return said + "repetitions" + (f", {hedged} beside one that was slow" if hedged else "")


def bytes_to_read(paths: Iterable[Path], urls: list[str], volumes: ObjectStoreOptions) -> int:
    """Bytes of files and objects, for progress only.

    Raises:
        UsageError: A url means nothing that is there, or the store does not answer.
    """
    from tonnage.run.storage.object_store import find_objects

    found = find_objects(urls, volumes) if urls else []
    return bytes_in(paths) + sum(each.bytes for each in found)


def refuse_endpoint(endpoint: str | None) -> None:
    """Refuses what is no address of a store."""
    if endpoint is not None and not re.fullmatch(r"https?://[^/\s]+/?", endpoint):
        raise core.UsageError(f"--endpoint-url {endpoint}: write it like http://127.0.0.1:9000")


def refuse_of_nodes(urls: Iterable[str]) -> None:
    """Refuses urls that mean something else on each machine of a fleet."""
    for url in urls:
        if NODE in url:
            raise core.UsageError(
                f"{url}: a url is the same for all nodes: write it without {NODE}"
            )
