"""Object storage in commands: urls among paths, and how stores are reached."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tonnage import engine
from tonnage.cli.arguments import HIDDEN, bytes_in, whole_number
from tonnage.cli.measured import NODE
from tonnage.run.volumes import is_url

if TYPE_CHECKING:
    from tonnage.run.volumes import Volumes

Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
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
            parse_place(place)
            urls.append(place)
        else:
            paths.append(Path(place))
    return paths, urls


def reached(endpoint: str | None, requests: int | None) -> Volumes:
    """How stores are reached, as the flags say."""
    from tonnage.run.volumes import Volumes

    refuse_endpoint(endpoint)
    return Volumes(endpoint=endpoint, requests=requests)


def bytes_to_read(paths: Iterable[Path], urls: list[str], volumes: Volumes) -> int:
    """Bytes of files and objects, for progress only.

    Raises:
        Refused: A url means nothing that is there, or the store does not answer.
    """
    from tonnage.run.volumes import find

    found = find(urls, volumes) if urls else []
    return bytes_in(paths) + sum(each.bytes for each in found)


def parse_place(text: str) -> tuple[str, str]:
    """The bucket and the folder in it that ``s3://BUCKET/PREFIX`` names."""
    found = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", text)
    prefix = (found[2] or "").strip("/") if found else ""
    if found is None or any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
        raise engine.Refused(f"{text}: write s3://BUCKET or s3://BUCKET/PREFIX")
    return found[1], prefix


def refuse_endpoint(endpoint: str | None) -> None:
    """Refuses what is no address of a store."""
    if endpoint is not None and not re.fullmatch(r"https?://[^/\s]+/?", endpoint):
        raise engine.Refused(f"--endpoint {endpoint}: write it like http://127.0.0.1:9000")


def refuse_of_nodes(urls: Iterable[str]) -> None:
    """Refuses urls that mean something else on each machine of a fleet."""
    for url in urls:
        if NODE in url:
            raise engine.Refused(f"{url}: a url is the same for all nodes: write it without {NODE}")


def refuse_twice_read(urls: list[str]) -> None:
    """Refuses urls of which one holds another: its objects would be read twice."""
    for place, url in enumerate(urls):
        for other in urls[:place]:
            if _within(url, other) is not None or _within(other, url) is not None:
                raise engine.Refused(f"input {url} is given twice, also by {other}: give it once")


def refuse_read_again(outputs: list[str], inputs: list[str]) -> None:
    """Refuses outputs that would be taken for records of a folder that is an input."""
    for output in outputs:
        for folder in inputs:
            inside = _within(output, folder)
            if inside and not any(part.startswith(HIDDEN) for part in inside):
                raise engine.Refused(
                    f"--output {output} lies in {folder} and would be taken for records there: "
                    "give a url elsewhere"
                )


def _within(url: str, folder: str) -> list[str] | None:
    """The names that lead from a folder to what is in it; None if it is elsewhere."""
    (bucket, key), (other_bucket, other) = parse_place(url), parse_place(folder)
    names, above = ([part for part in each.split("/") if part] for each in (key, other))
    inside = bucket == other_bucket and names[: len(above)] == above
    return names[len(above) :] if inside else None
