"""A node's steps in object storage: it finds the input's objects, and manages the output's folder.

::

    s3://BUCKET/PREFIX/.tonnage-unfinished-JOB   until all is done: `tonnage valsort` refuses it
    s3://BUCKET/PREFIX/part-00012                a partition, as its owner's upload was completed
    s3://BUCKET/PREFIX/_tonnage.json             the manifest, last

All nodes see the same objects, so one does this for all, with the keys of its environment.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tonnage.base import core
from tonnage.cluster.failure_kinds import InputChanged
from tonnage.cluster.step_worker import Handler, WorkerSteps
from tonnage.run.storage.object_store import (
    ObjectFolder,
    find_and_count,
    is_url,
    split_url,
    sum_requests,
)
from tonnage.run.two_pass import messages
from tonnage.run.two_pass.job_spec import WorkerConfig
from tonnage.run.two_pass.output.manifest import Manifest
from tonnage.run.two_pass.output.names import MANIFEST, UNFINISHED_PREFIX, is_part
from tonnage.run.two_pass.splits import FileId, object_id

OnProgress = core.OnProgress

OTHER_JOB = (
    "an unfinished job owns this place. If it is running, wait for it; if it was interrupted, "
    "resume it by running its command again with its job directory"
)


class ObjectStoreSteps(WorkerSteps):
    _config: WorkerConfig

    def store_handlers(self) -> Sequence[Handler[Any, Any]]:
        return (
            Handler(messages.FIND, self.find),
            Handler(messages.REACH, self.reach),
            Handler(messages.CLAIM, self.claim),
            Handler(messages.CLEAR, self.clear),
            Handler(messages.PUBLISH, self.publish),
            Handler(messages.RELEASE, self.release),
        )

    def find(self, request: messages.Paths, on_progress: OnProgress) -> messages.ObjectsFound:
        """Find the objects that urls mean; `UsageError` if there is none, or none to be used."""
        found, requests = find_and_count(request.paths, self._config.object_store)
        objects = [object_id(each.url, each.bytes, each.etag) for each in found]
        more = self._refuse_inputs(objects, on_progress)
        return messages.ObjectsFound(objects, sum_requests([requests, more]))

    def reach(self, request: messages.Paths, on_progress: OnProgress) -> messages.StoreRequests:
        """Looks at objects, to see that this node may; `UsageError` if it may not."""
        return messages.StoreRequests(find_and_count(request.paths, self._config.object_store)[1])

    def claim(self, _: None, on_progress: OnProgress) -> messages.FolderClaimed:
        """Make the output's folder the job's own, by an object; `UsageError` if it is another's."""
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
        parts = {self._url(name): size for name, size in sizes.items() if is_part(name)}
        return messages.FolderClaimed(parts, self._url(self._marker), requests)

    def clear(self, request: messages.Clear, on_progress: OnProgress) -> messages.StoreRequests:
        """Removes partitions, and uploads that were not completed."""
        only = None if request.partitions is None else {*request.partitions}
        names = [name for name in self._folder.objects()[0] if is_part(name, only=only)]
        return self._clear(names, uploads=True)

    def publish(self, request: messages.Publish, on_progress: OnProgress) -> messages.StoreRequests:
        """Writes the manifest; `RunError` if a part is not there, or not as it was put."""
        # First, so that nothing comes after it was looked for.
        cleared = self._clear([], uploads=True)
        listed, _ = self._folder.objects()
        wanted = {self._folder.name(url): size for url, size in request.sizes.items()}
        for name, size in wanted.items():
            if listed.get(name) != size:
                raise core.RunError(
                    f"{self._url(name)} was changed by another program that writes there"
                )
        left = [name for name in listed if is_part(name) and name not in wanted]
        if left:
            self._clear(left, uploads=False)
        text = manifest_json(request.manifest).decode()
        self._folder.put(MANIFEST, text)
        return cleared

    def release(self, _: None, on_progress: OnProgress) -> messages.StoreRequests:
        """Removes the object that makes the folder the job's."""
        return self._clear([self._marker], uploads=False)

    def _clear(self, names: Sequence[str], *, uploads: bool) -> messages.StoreRequests:
        return messages.StoreRequests(self._folder.clear(names, uploads)["requests"])

    @abstractmethod
    def _refuse_input(self, file: FileId) -> None:
        """Refuses a file or an object that this kind of job cannot read."""

    def _refuse_inputs(
        self, files: Sequence[FileId], on_progress: OnProgress
    ) -> messages.RequestTotals:
        """Refuses if one cannot be read; gives the requests that this took."""
        for each in files:
            self._refuse_input(each)
        return {}

    @contextmanager
    def _unchanged(self, splits: Iterable[messages.SplitToRead]) -> Iterator[None]:
        """While these are read: tells an object that was changed from other failures."""
        try:
            yield
        except core.RunError as why:
            # The core names files by paths, and a url as if it were one.
            if {Path(each.path) for each in splits if is_url(each.path)} & {*why.args[1:]}:
                raise InputChanged(why.why) from why
            raise

    def _split_config(self, split: messages.SplitToRead) -> dict[str, Any]:
        span: dict[str, Any] = {"offset": split.offset, "bytes": split.bytes}
        if not is_url(split.path):
            return {"path": split.path} | span
        bucket, key = split_url(split.path)
        store = self._config.object_store.store(bucket)
        about = {"store": store, "key": key, "etag": split.etag}
        return about | span | {"object_bytes": split.file_bytes or None}

    @property
    def _output(self) -> list[str] | dict[str, Any]:
        if self._config.output_url is None:
            return list(self._config.output)
        return self._folder.as_output()

    @property
    def _folder(self) -> ObjectFolder:
        assert self._config.output_url is not None
        return ObjectFolder(self._config.output_url, self._config.object_store)

    @property
    def _marker(self) -> str:
        return f"{UNFINISHED_PREFIX}{self._config.job}"

    def _url(self, name: str) -> str:
        return self._folder.url(name)

    def _refuse_folder(self, name: str) -> None:
        url = self._config.output_url
        if name.startswith(UNFINISHED_PREFIX):
            raise core.UsageError(
                f"{url}: {OTHER_JOB}, or remove {name} and the parts", setting="output"
            )
        raise core.UsageError(
            f"{url} is not empty (it contains {name}); use an unused URL",
            setting="output",
        )


def manifest_json(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
