"""Object storage as a job's input and output: what urls mean, and how stores are reached."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tonnage.base import core

SCHEME = "s3://"
HIDDEN = (".", "_")
"""What begins so in a directory or a folder of input is no input."""
REQUESTS = 16
"""At once, if nobody says how many."""
RETRIES = 10
"""How often a request is repeated that failed for a reason that may pass: a job has thousands."""

ENDPOINT = "AWS_ENDPOINT_URL"
"""Has the store's address where nobody gives it; the core reads it."""
COUNTS = ("requests", "retries", "hedged")
"""What is counted of requests, beside errors by kind."""


@dataclass(frozen=True)
class ObjectStoreOptions:
    """How stores are reached. Keys and region are the environment's.

    Attributes:
        endpoint: The store's address; AWS if it is nobody else's.
        requests: Requests at once; None is the usual number.
    """

    endpoint: str | None = None
    requests: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As the core takes it."""
        return {"store": self._store, "requests": self.concurrency}

    def store(self, bucket: str) -> dict[str, Any]:
        """A bucket, as the core takes it."""
        return {"bucket": bucket} | self._store

    @property
    def concurrency(self) -> int:
        """Requests at once."""
        return self.requests or REQUESTS

    @property
    def address(self) -> str | None:
        """The store's address, as given or as the environment says; None of AWS."""
        return self.endpoint or os.environ.get(ENDPOINT) or None

    @property
    def _store(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "retries": RETRIES}


@dataclass(frozen=True)
class ObjectInfo:
    """An object that is there.

    Attributes:
        bucket: Its bucket.
        key: Its name there.
        bytes: Its length.
        etag: What tells it from any other of its name; None if the store does not say.
    """

    bucket: str
    key: str
    bytes: int
    etag: str | None


def find_objects(urls: Sequence[str], options: ObjectStoreOptions) -> list[ObjectInfo]:
    """The objects that urls mean: the one of that name, or all of a folder, in the order of names.

    Raises:
        UsageError: A url means none, or a part of an output only, or the store lets nobody in.
    """
    outcome = core.run("object_find", {"urls": list(urls), "volumes": options.to_json()})
    return [ObjectInfo(**each) for each in outcome["objects"]]


def is_url(place: str) -> bool:
    """Whether a place is one of object storage."""
    return place.startswith(SCHEME)


def split_url(url: str) -> tuple[str, str]:
    """The bucket of a url, and the key or the folder in it."""
    bucket, _, key = url.removeprefix(SCHEME).partition("/")
    return bucket, key


def sum_requests(asked: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What was asked of object storage in all; nothing if it was not used."""
    used = [each for each in asked if each.get("requests")]
    errors: Counter[str] = Counter()
    for each in used:
        errors.update(each["errors"])
    counts = {name: sum(each.get(name, 0) for each in used) for name in COUNTS}
    return counts | {"errors": dict(errors)} if counts["requests"] else {}


def parse_url(text: str) -> tuple[str, str]:
    """The bucket and the folder in it that ``s3://BUCKET/PREFIX`` names."""
    found = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", text)
    prefix = (found[2] or "").strip("/") if found else ""
    if found is None or any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
        raise core.UsageError(f"{text}: write s3://BUCKET or s3://BUCKET/PREFIX")
    return found[1], prefix


def refuse_overlapping_inputs(urls: list[str]) -> None:
    """Refuses urls of which one holds another: its objects would be read twice."""
    for place, url in enumerate(urls):
        for other in urls[:place]:
            if _within(url, other) is not None or _within(other, url) is not None:
                raise core.UsageError(f"input {url} is given twice, also by {other}: give it once")


def refuse_output_in_input(outputs: list[str], inputs: list[str]) -> None:
    """Refuses outputs that would be taken for records of a folder that is an input."""
    for output in outputs:
        for folder in inputs:
            if _within(output, folder):
                raise core.UsageError(
                    f"--output {output} lies in {folder} and would be taken for records there: "
                    "give a url elsewhere"
                )


def _within(url: str, folder: str) -> list[str] | None:
    """The names that lead from a folder to what is read with it; ``None`` if it is not."""
    (bucket, key), (other_bucket, other) = parse_url(url), parse_url(folder)
    names, above = ([part for part in each.split("/") if part] for each in (key, other))
    inside = names[len(above) :]
    if bucket != other_bucket or names[: len(above)] != above:
        return None
    return None if any(part.startswith(HIDDEN) for part in inside) else inside
