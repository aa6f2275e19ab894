"""Object storage as a job's input and output: urls, how stores are reached, folders, uploads."""

import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonnage.base import core

SCHEME = "s3://"
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
REQUESTS, THREAD_REQUESTS, MOST_REQUESTS = 16, 4, 1024
"""Concurrent requests by default: at least, for each thread, and at most. A thread takes 3.75 s to
retrieve and partition a gigabyte; of 85 MB/s each, four connections carry more than that."""
HIDDEN = (".", "_")
"""Names that begin so in a directory or a folder are not input."""
RETRIES = 10
"""Of a request that failed for a transient reason: a job has thousands of requests."""
ENDPOINT = "AWS_ENDPOINT_URL"
"""The store's address by default; the core reads it."""
COUNTS = ("requests", "retries", "hedged")
"""The counters of requests, apart from errors by kind."""


def usual_requests(threads: int) -> int:
    """Concurrent requests of a machine with so many threads, unless a number is given."""
    return min(max(REQUESTS, THREAD_REQUESTS * threads), MOST_REQUESTS)


@dataclass(frozen=True)
class ObjectStoreOptions:
    """How to reach object storage. Keys and region come from the environment.

    Attributes:
        endpoint: The store's address; by default the environment's, else AWS.
        requests: Concurrent requests; by default as many as `usual_requests`.
    """

    endpoint: str | None = None
    requests: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the options as the core takes them."""
        return {"store": self._store, "requests": self.concurrency}

    def store(self, bucket: str) -> dict[str, Any]:
        """Return a bucket as the core takes it."""
        return {"bucket": bucket} | self._store

    @property
    def concurrency(self) -> int:
        """Concurrent requests on this machine."""
        return self.requests or usual_requests(core.workers())

    @property
    def address(self) -> str | None:
        """The store's address; ``None`` means AWS."""
        return self.endpoint or os.environ.get(ENDPOINT) or None

    @property
    def _store(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "retries": RETRIES}


@dataclass(frozen=True)
class ObjectInfo:
    """An object in a store; its etag, if the store tells one, identifies its content."""

    bucket: str
    key: str
    bytes: int
    etag: str | None

    @property
    def url(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}"


class ObjectFolder:
    """A folder of a bucket that a job writes its output to."""

    def __init__(self, url: str, options: ObjectStoreOptions) -> None:
        self._url = url.rstrip("/")
        bucket, key = split_url(url)
        self._place = {"store": options.store(bucket), "folder": key.strip("/")}

    def as_output(self) -> dict[str, Any]:
        return {"store": self._place["store"], "prefix": self._place["folder"]}

    def url(self, name: str) -> str:
        return f"{self._url}/{name}"

    def name(self, url: str) -> str:
        """The name below the folder of an object in it."""
        return url.removeprefix(f"{self._url}/")

    def objects(self) -> tuple[dict[str, int], dict[str, Any]]:
        """The names and sizes of its objects, and what was requested for that."""
        listed = core.run("folder_list", {"place": self._place})
        return {each["name"]: each["bytes"] for each in listed["objects"]}, listed["requests"]

    def put(self, name: str, text: str) -> None:
        core.run("folder_put", {"place": self._place, "name": name, "text": text})

    def clear(self, names: Collection[str], uploads: bool = False) -> dict[str, Any]:
        """Remove objects, and with ``uploads`` what unfinished uploads left."""
        config = {"place": self._place, "names": [*names], "uploads": uploads}
        return core.run("folder_clear", config)

    def upload(
        self,
        path: Path,
        name: str,
        memory_bytes: int,
        requests: int,
        on_progress: core.OnProgress = lambda _: None,
    ) -> dict[str, Any]:
        """Upload a file as an object, which appears whole or not at all."""
        config = {
            "path": str(path),
            "place": self._place,
            "name": name,
            "memory_bytes": memory_bytes,
            "requests": requests,
        }
        return core.run("upload", config, on_progress)


def find_objects(urls: Sequence[str], options: ObjectStoreOptions) -> list[ObjectInfo]:
    """The objects of urls, by name; `UsageError` if there are none, or only a part of an output."""
    return find_and_count(urls, options)[0]


def find_and_count(
    urls: Sequence[str], options: ObjectStoreOptions
) -> tuple[list[ObjectInfo], dict[str, Any]]:
    """The same as `find_objects`, and the requests that it took.

    Objects whose names cannot be requested are left out, and named on standard error.
    """
    outcome = core.run("object_find", {"urls": list(urls), "volumes": options.to_json()})
    for url in outcome["unreadable"]:
        print(
            f"tonnage: {url!r} is left out: a name with an empty part, '.', '..' or a control "
            "character cannot be requested; rename it to have it read",
            file=sys.stderr,
        )
    return [ObjectInfo(**each) for each in outcome["objects"]], outcome["requests"]


def is_url(place: str) -> bool:
    return place.startswith(SCHEME)


def is_url_as_path(place: object) -> bool:
    """Whether this is a url that went through `pathlib`, as in errors of the core."""
    return str(place).startswith(str(Path(SCHEME)) + "/")


def split_url(url: str) -> tuple[str, str]:
    bucket, _, key = url.removeprefix(SCHEME).partition("/")
    return bucket, key


def parse_url(text: str) -> tuple[str, str]:
    """The bucket and the folder of ``s3://BUCKET/PREFIX``; `UsageError` if it is not such a url."""
    bucket, prefix = split_url(text)
    prefix = prefix.strip("/")
    parts = prefix.split("/") if prefix else []
    if not is_url(text) or "\n" in text or any(part in ("", ".", "..") for part in parts):
        raise core.UsageError(
            f"{text}: not an object store URL; write s3://BUCKET or s3://BUCKET/PREFIX"
        )
    if not BUCKET.fullmatch(bucket):
        raise core.UsageError(
            f"{text}: {bucket!r} is not a bucket name, which has 3 to 63 lowercase letters, "
            "digits, "
            "dots and hyphens; write s3://BUCKET or s3://BUCKET/PREFIX"
        )
    return bucket, prefix


def sum_requests(counts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of counted requests; empty if there were none."""
    used = [each for each in counts if each.get("requests")]
    errors: Counter[str] = Counter()
    for each in used:
        errors.update(each["errors"])
    sums = {name: sum(each.get(name, 0) for each in used) for name in COUNTS}
    return sums | {"errors": dict(errors)} if sums["requests"] else {}


def refuse_overlapping_inputs(urls: list[str]) -> None:
    """Refuse urls of which one contains another: its objects would be read twice."""
    for place, url in enumerate(urls):
        for other in urls[:place]:
            if _is_read_with(url, other) or _is_read_with(other, url):
                raise core.UsageError(
                    f"input {url} is specified twice, also as {other}; specify it once"
                )


def refuse_output_in_input(outputs: list[str], inputs: list[str]) -> None:
    """Refuse outputs in a folder that is an input: the next run would read them."""
    for output in outputs:
        for folder in inputs:
            if _parts_below(output, folder):
                raise core.UsageError(
                    f"{output} is inside the input {folder}; use a URL outside the input",
                    setting="output",
                )


def _is_read_with(url: str, folder: str) -> bool:
    return _parts_below(url, folder) is not None


def _parts_below(url: str, folder: str) -> list[str] | None:
    """The names that lead from a folder to an object that is read with it; else ``None``."""
    (bucket, key), (other_bucket, other) = parse_url(url), parse_url(folder)
    names, above = ([part for part in each.split("/") if part] for each in (key, other))
    inside = names[len(above) :]
    if bucket != other_bucket or names[: len(above)] != above:
        return None
    return None if any(part.startswith(HIDDEN) for part in inside) else inside
