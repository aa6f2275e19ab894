"""What a machine does with objects: it finds those of the input, and sees to the output's folder.

::

    s3://BUCKET/PREFIX/.tonnage-unfinished-JOB   until all is done: `tonnage valsort` refuses it
    s3://BUCKET/PREFIX/part-00012                a partition, as its owner's upload was completed
    s3://BUCKET/PREFIX/_tonnage.json             the manifest, last

All machines see the same objects, so one of them does this for all. Keys are of its environment.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnage.base import core
from tonnage.run.storage.object_store import (
    ObjectFolder,
    find_and_count,
    is_url,
    split_url,
    sum_requests,
)
from tonnage.run.two_pass.output.names import MANIFEST, UNFINISHED_PREFIX, is_part
from tonnage.run.two_pass.splits import FileId, object_id

if TYPE_CHECKING:
    from tonnage.run.two_pass.worker import WorkerConfig

OnProgress = core.OnProgress

STEPS = ("find", "reach", "claim", "clear", "publish", "release")
"""What is asked of a store in them ends by itself, after so many tries; until then none is told."""


class InputChanged(Exception):
    """An input is not what it was: nothing that was sorted of it can be used."""


class ObjectStoreSteps(ABC):
    """A machine's part in a job, as far as objects are concerned.

    What it tells has ``requests``: what was asked of the store.
    """

    _place: WorkerConfig

    def find(self, urls: Sequence[str], on_progress: OnProgress) -> dict[str, Any]:
        """The objects that these mean, as ``objects``.

        Raises:
            UsageError: They mean none, or one cannot be used.
        """
        found, requests = find_and_count(urls, self._place.volumes)
        objects = [object_id(each.url, each.bytes, each.etag) for each in found]
        more = self._refuse_inputs(objects, on_progress)
        return {"objects": objects, "requests": sum_requests([requests, more])}

    def reach(self, urls: Sequence[str], on_progress: OnProgress) -> dict[str, Any]:
        """Looks at these objects: it is let in.

        Raises:
            UsageError: It is not.
        """
        return {"requests": find_and_count(urls, self._place.volumes)[1]}

    def claim(self, _: None, on_progress: OnProgress) -> dict[str, Any]:
        """Makes the output's folder the job's own; tells the sizes of parts that are ``there``.

        It is by the object ``marker``.

        Raises:
            UsageError: It holds something else.
        """
        sizes, requests = self._folder.objects()
        if self._marker not in sizes:
            for name in sizes:
                self._refuse_folder(name)
            self._folder.put(self._marker, "")
            # Another job may have looked just before, and put its own.
            for name in self._folder.objects()[0]:
                if name != self._marker:
                    self._folder.clear([self._marker])
                    self._refuse_folder(name)
        there = {self._url(name): size for name, size in sizes.items() if is_part(name)}
        marker = self._url(self._marker)
        return {"there": there, "marker": marker, "requests": requests}

    def clear(self, places: Collection[int] | None, on_progress: OnProgress) -> dict[str, Any]:
        """Removes partitions that are done again, or all, and uploads that somebody has left."""
        only = None if places is None else {*places}
        names = [name for name in self._folder.objects()[0] if is_part(name, only=only)]
        return self._folder.clear(names, uploads=True)

    def publish(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Writes the manifest: from then on the output is whole.

        Args:
            asked: ``manifest``, and ``sizes``: of all parts, by their urls.
            on_progress: Not called.

        Raises:
            RunError: A part is not there, or not as it was put.
        """
        # First, so that nothing comes after it was looked for.
        cleared = self._folder.clear([], uploads=True)
        listed, _ = self._folder.objects()
        wanted = {self._name(url): size for url, size in asked["sizes"].items()}
        for name, size in wanted.items():
            if listed.get(name) != size:
                raise core.RunError(
                    f"{self._url(name)} is not as it was put: somebody else writes there"
                )
        left = [name for name in listed if is_part(name) and name not in wanted]
        if left:
            self._folder.clear(left)
        text = json.dumps(asked["manifest"], indent=1) + "\n"
        self._folder.put(MANIFEST, text)
        return cleared

    def release(self, _: None, on_progress: OnProgress) -> dict[str, Any]:
        """Has the folder be nobody's any more."""
        return self._folder.clear([self._marker])

    @abstractmethod
    def _refuse_input(self, file: FileId) -> None:
        """Refuses a file or an object that this kind of job cannot read."""

    def _refuse_inputs(self, files: Sequence[FileId], on_progress: OnProgress) -> dict[str, Any]:
        """Refuses if one cannot be read; what was asked of stores for that."""
        for each in files:
            self._refuse_input(each)
        return {}

    @contextmanager
    def _unchanged(self, splits: Iterable[Mapping[str, Any]]) -> Iterator[None]:
        """While these are read: tells an object that was changed from other failures."""
        try:
            yield
        except core.RunError as why:
            # The core names files by paths, and a url as if it were one.
            if {Path(each["path"]) for each in splits if is_url(each["path"])} & {*why.args[1:]}:
                raise InputChanged(why.args[0]) from why
            raise

    def _split(self, split: Mapping[str, Any]) -> dict[str, Any]:
        """A part of the input as the core takes it."""
        if not is_url(split["path"]):
            return {name: split[name] for name in ("path", "offset", "bytes")}
        bucket, key = split_url(split["path"])
        store = self._place.volumes.store(bucket)
        of_object = {name: split[name] for name in ("etag", "offset", "bytes")}
        return {"store": store, "key": key} | of_object

    @property
    def _output(self) -> list[str] | dict[str, Any]:
        """Where the output goes, as the core takes it."""
        if self._place.folder is None:
            return list(self._place.output)
        return self._folder.as_output()

    @property
    def _folder(self) -> ObjectFolder:
        assert self._place.folder is not None
        return ObjectFolder(self._place.folder, self._place.volumes)

    @property
    def _marker(self) -> str:
        return f"{UNFINISHED_PREFIX}{self._place.job}"

    def _url(self, name: str) -> str:
        return self._folder.url(name)

    def _name(self, url: str) -> str:
        return url.rpartition("/")[2]

    def _refuse_folder(self, name: str) -> None:
        place = f"--output {self._place.folder}"
        if name.startswith(UNFINISHED_PREFIX):
            raise core.UsageError(
                f"{place}: another job writes there, or was interrupted: wait for it, go on "
                "with it (the same command with --job-dir of the first), or remove "
                f"{name} and the parts"
            )
        raise core.UsageError(
            f"{place} is not empty (it holds {name}): give a url under which nothing is"
        )
