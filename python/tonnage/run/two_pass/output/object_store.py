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
from tonnage.run.storage.object_store import is_url, split_url, sum_requests
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
        found = self._find(urls)
        objects = [
            object_id(f"s3://{each['bucket']}/{each['key']}", each["bytes"], each["etag"])
            for each in found["objects"]
        ]
        more = self._refuse_inputs(objects, on_progress)
        return {"objects": objects, "requests": sum_requests([found["requests"], more])}

    def reach(self, urls: Sequence[str], on_progress: OnProgress) -> dict[str, Any]:
        """Looks at these objects: it is let in.

        Raises:
            UsageError: It is not.
        """
        return {"requests": self._find(urls)["requests"]}

    def claim(self, _: None, on_progress: OnProgress) -> dict[str, Any]:
        """Makes the output's folder the job's own; tells the sizes of parts that are ``there``.

        It is by the object ``marker``.

        Raises:
            UsageError: It holds something else.
        """
        listed = self._run("folder_list")
        sizes = {each["name"]: each["bytes"] for each in listed["objects"]}
        if self._marker not in sizes:
            for name in sizes:
                self._refuse_folder(name)
            self._run("folder_put", name=self._marker, text="")
            # Another job may have looked just before, and put its own.
            for each in self._run("folder_list")["objects"]:
                if each["name"] != self._marker:
                    self._run("folder_clear", names=[self._marker], uploads=False)
                    self._refuse_folder(each["name"])
        there = {self._url(name): size for name, size in sizes.items() if is_part(name)}
        marker = self._url(self._marker)
        return {"there": there, "marker": marker, "requests": listed["requests"]}

    def clear(self, places: Collection[int] | None, on_progress: OnProgress) -> dict[str, Any]:
        """Removes partitions that are done again, or all, and uploads that somebody has left."""
        only = None if places is None else {*places}
        names = [
            each["name"]
            for each in self._run("folder_list")["objects"]
            if is_part(each["name"], only=only)
        ]
        return self._run("folder_clear", names=names, uploads=True)

    def publish(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Writes the manifest: from then on the output is whole.

        Args:
            asked: ``manifest``, and ``sizes``: of all parts, by their urls.
            on_progress: Not called.

        Raises:
            RunError: A part is not there, or not as it was put.
        """
        # First, so that nothing comes after it was looked for.
        cleared = self._run("folder_clear", names=[], uploads=True)
        listed = {each["name"]: each["bytes"] for each in self._run("folder_list")["objects"]}
        wanted = {self._name(url): size for url, size in asked["sizes"].items()}
        for name, size in wanted.items():
            if listed.get(name) != size:
                raise core.RunError(
                    f"{self._url(name)} is not as it was put: somebody else writes there"
                )
        left = [name for name in listed if is_part(name) and name not in wanted]
        if left:
            self._run("folder_clear", names=left, uploads=False)
        text = json.dumps(asked["manifest"], indent=1) + "\n"
        self._run("folder_put", name=MANIFEST, text=text)
        return cleared

    def release(self, _: None, on_progress: OnProgress) -> dict[str, Any]:
        """Has the folder be nobody's any more."""
        return self._run("folder_clear", names=[self._marker], uploads=False)

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
        folder = self._folder
        return {"store": folder["store"], "prefix": folder["folder"]}

    @property
    def _folder(self) -> dict[str, Any]:
        assert self._place.folder is not None
        bucket, key = split_url(self._place.folder)
        return {"store": self._place.volumes.store(bucket), "folder": key.strip("/")}

    @property
    def _marker(self) -> str:
        return f"{UNFINISHED_PREFIX}{self._place.job}"

    def _url(self, name: str) -> str:
        assert self._place.folder is not None
        return f"{self._place.folder.rstrip('/')}/{name}"

    def _name(self, url: str) -> str:
        return url.rpartition("/")[2]

    def _find(self, urls: Sequence[str]) -> dict[str, Any]:
        config = {"urls": list(urls), "volumes": self._place.volumes.to_json()}
        return core.run("object_find", config)

    def _run(self, job: str, **more: Any) -> dict[str, Any]:
        return core.run(job, {"place": self._folder} | more)

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
