"""MapReduce as a user has it: functions, and `MapReduce.run`, which knows its machine."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import core
from tonnage.base.formatting import bytes_of
from tonnage.base.records import RunRecord
from tonnage.measure.trial import environment
from tonnage.measure.trial.trial import now
from tonnage.run.mapreduce import Functions, Input, run_map_reduce
from tonnage.run.storage.object_store import ObjectStoreOptions, is_url

if TYPE_CHECKING:
    from tonnage.run.mapreduce.cluster import MapReduceJob

Source = Path | str | Input


@dataclass(frozen=True)
class Fleet:
    """The machines of a Ray cluster, for a job of all of them.

    Args:
        out: Where what befell is kept, a directory: a job that was begun there goes on.
        address: HOST:PORT of the cluster, or ``auto``: the one that this machine is in.
        connections: From each machine to each other.
        patience_seconds: A machine that says nothing for so long (at most 3 s, if others find its
            connections broken) is lost, as is one for which nobody has moved anything for twice as
            long: more than a function may take for a batch.
        instances: On so many machines; by default all.
        weights: What share of the partitions each machine has; by default the same.
        durability: What becomes of the output when a machine is lost: with ``none`` its share is
            done again while the job runs, and gone afterwards; with ``replicated`` another machine
            has a copy of each file; with ``volumes``, which is the default if the output is a url,
            it is in object storage.
    """

    out: Path | str
    address: str = "auto"
    connections: int = 1
    patience_seconds: float = 60.0
    instances: int | None = None
    weights: Mapping[str, float] | None = None
    durability: str | None = None


class MapReduce(Functions):
    """A job of functions over Arrow record batches; see `Functions` for what they get and give."""

    def run(
        self,
        inputs: Source | Sequence[Source],
        output: Path | str,
        scratch: Path | str | Sequence[Path | str],
        memory: str | int = "1GiB",
        workers: int | None = None,
        input_format: str = "auto",
        format: str = "parquet",
        on_progress: Callable[[int, int], None] | None = None,
        fleet: Fleet | None = None,
        volumes: ObjectStoreOptions | None = None,
    ) -> RunRecord:
        """Reads ``inputs`` and leaves parts, and a list of them, in ``output``.

        Args:
            inputs: Files or directories of them, objects or folders of them
                (``s3://BUCKET/KEY``), or an `Input` where one has a map of its own.
            output: A new or empty directory; with ``fleet`` it may be ``s3://BUCKET/PREFIX``.
            scratch: Directories, one for each device.
            memory: For buffers and gathered rows, like ``1GiB``, or a number of bytes.
            workers: Threads; by default as many as there are cores.
            input_format: What paths are that are given as such; see `Input`.
            format: What is written: ``parquet``, ``arrow``, ``csv`` or ``json``.
            on_progress: Called with bytes done of how many, now and then.
            fleet: Whose machines do it, instead of this one alone. Then paths are on each of them,
                and begin with ``/``; ``{node}`` in one is the machine's name, and output and
                scratch have to be its own. Memory and workers are of each.
            volumes: How object storage is reached; by default as the environment says.

        Raises:
            UsageError: Arguments or inputs cannot be used.
            RunError: A function failed (its exception is the cause), or a device; nothing is left.
            KeyboardInterrupt: Ctrl-C; nothing is left.
        """
        sources = [inputs] if isinstance(inputs, (Path, str, Input)) else inputs
        places = [scratch] if isinstance(scratch, (Path, str)) else scratch
        reached = volumes or ObjectStoreOptions()
        memory_bytes = bytes_of(memory) if isinstance(memory, str) else memory
        if memory_bytes is None:
            raise core.UsageError(f"memory {memory!r} is no size: write it like 1GiB")
        given = [_as_input(source, input_format) for source in sources]
        if fleet is not None:
            asked = asked_of_fleet(
                self,
                fleet,
                given,
                str(output),
                [str(each) for each in places],
                reached,
                memory_bytes,
                workers,
                format,
            )
            from tonnage.cluster.ray_adapter import connect
            from tonnage.run.two_pass.driver import sort_fleet

            with connect(fleet.address) as cluster:
                return sort_fleet(cluster, Path(fleet.out), asked, on_progress or (lambda *_: None))
        if is_url(str(output)):
            raise core.UsageError(
                f"output {output}: of one machine it goes to a directory; give a fleet, which may "
                "be of one, for object storage"
            )
        directories = [Path(output), *map(Path, places)]
        near = (path if path.exists() else path.parent for path in directories)
        return run_map_reduce(
            self,
            given,
            directories[0],
            directories[1:],
            memory_bytes=memory_bytes,
            environment=environment.capture([path for path in near if path.exists()]),
            began_at=now(),
            command=list(sys.argv),
            workers=workers,
            format=format,
            volumes=reached,
            on_progress=on_progress,
        )


def asked_of_fleet(
    functions: Functions,
    fleet: Fleet,
    inputs: Sequence[Input],
    output: str,
    scratch: Sequence[str],
    volumes: ObjectStoreOptions,
    memory_bytes: int,
    workers: int | None,
    format: str,
) -> MapReduceJob:
    """What is asked of the machines of a fleet, whoever attaches to them.

    Args:
        functions: What to do.
        fleet: How they do it.
        inputs: What to read; paths on each of them, or urls.
        output: Where to, a directory of each, or ``s3://BUCKET/PREFIX``.
        scratch: Directories of each.
        volumes: How object storage is reached.
        memory_bytes: Of each machine.
        workers: Threads of each; by default as many as it has cores.
        format: What is written.

    Raises:
        UsageError: Ray is not there, or nobody could do it.
    """
    if importlib.util.find_spec("ray") is None:
        raise core.UsageError("a fleet needs Ray: pip install 'tonnage[cluster]'")
    from tonnage.run.mapreduce.cluster import map_reduce_job
    from tonnage.run.two_pass.job_spec import refuse_nowhere

    for flag, given in (("input", (str(each.path) for each in inputs)), ("--output", [output])):
        refuse_nowhere(flag, (each for each in given if not is_url(each)))
    refuse_nowhere("--scratch", scratch)
    return map_reduce_job(
        functions,
        inputs,
        format=format,
        workers=workers,
        output=[output],
        scratch=scratch,
        volumes=volumes,
        memory_bytes=memory_bytes,
        connections=fleet.connections,
        patience_seconds=fleet.patience_seconds,
        command=list(sys.argv),
        instances=fleet.instances,
        weights=fleet.weights,
        durability=fleet.durability,
    )


def _as_input(source: Source, format: str) -> Input:
    if isinstance(source, Input):
        return source if source.format != "auto" else replace(source, format=format)
    return Input(source, format=format)
