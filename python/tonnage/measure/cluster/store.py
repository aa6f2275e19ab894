"""A fleet's measurement on file: each node's files as they come, so that nothing is lost twice.

See `tonnage.base.records.cluster_measurement` for what a directory holds. A command that was killed is gone on with:
nodes that had answered are not asked again, and the others go on after their last trial.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.records import (
    ClusterMeasurement,
    ClusterNode,
    Measurement,
    RecordError,
    Trial,
    load_measurement,
    write_atomically,
)
from tonnage.base.records.cluster_measurement import CLUSTER_BEGUN_FILE, CLUSTER_FILE, NODE_FILE
from tonnage.base.records.discovery import BEGUN, TRIALS
from tonnage.base.records.network_rounds import NET
from tonnage.measure.cluster.aggregate import aggregate_nodes
from tonnage.measure.net.shuffle_analysis import analyse_shuffle
from tonnage.measure.trial.session import locked_parent_dir, require_same_settings
from tonnage.measure.trial.trial import new_id, utc_now


class ClusterMeasurementDir:
    """A fleet's directory, held by one command at a time; made by `kept`."""

    def __init__(self, out: Path, begun: ClusterMeasurement, nodes: Sequence[str]) -> None:
        self._out, self._begun = out, begun
        self._there = {node_directory(node): node for node in nodes}

    def begin(self) -> None:
        """Writes what was begun, if nobody has."""
        if not (path := self._out / CLUSTER_BEGUN_FILE).exists():
            self._begun.write(path)

    def place(self, node: str) -> Path:
        """A node's directory."""
        return self._out / node_directory(node)

    def files(self, node: str) -> dict[str, bytes]:
        """What an earlier command has of a node, for it to go on with; the whole is made anew."""
        place = self.place(node)
        found = [*place.glob(BEGUN), *place.glob(TRIALS)]
        return {path.name: path.read_bytes() for path in sorted(found)}

    def take(self, node: str, files: Mapping[str, bytes]) -> None:
        """Writes what a node has told."""
        for name in sorted(files):
            if Path(name).name != name:
                raise core.RunError(f"{node} told of a file called {name}")
            write_atomically(self.place(node) / name, files[name])

    def trial(self, node: str, name: str) -> Trial:
        """One of the trials that a node has told."""
        return Trial.read(self.place(node) / name)

    def trials(self, node: str) -> list[Trial]:
        """All that a node has told."""
        return [Trial.read(path) for path in sorted(self.place(node).glob(TRIALS))]

    def keep(self, row: ClusterNode) -> ClusterNode:
        """Writes how it went on a node; gives it with the measurement."""
        row.write(self.place(row.node) / NODE_FILE)
        return self._whole(row)

    @property
    def rows(self) -> dict[str, ClusterNode]:
        """How it went on each node that is known, with its measurement.

        Also on one that had begun, of which no command has said how it went.
        """
        places = {
            path.parent for name in (NODE_FILE, BEGUN) for path in self._out.glob(f"*/{name}")
        }
        return {row.node: self._whole(row) for row in map(self._row, sorted(places))}

    def close(self) -> ClusterMeasurement:
        """Writes what all nodes come to."""
        rows = list(self.rows.values())
        late = [row.skew_seconds for row in rows if row.together > 1]
        began = [each for each in late if each is not None]
        errors = [row.clock_error_seconds for row in rows if row.clock_error_seconds is not None]
        took = [row.seconds for row in rows if row.ok and row.seconds is not None]
        first, last = min(took, default=None), max(took, default=None)
        whole = structs.replace(
            self._begun,
            nodes=rows,
            across=aggregate_nodes(rows),
            skew_seconds=max(began) - min(began) if began else None,
            clock_error_seconds=max(errors, default=None),
            first_done_seconds=first,
            last_done_seconds=last,
            tail_seconds=None if first is None or last is None else last - first,
        )
        if whole.kind == NET:
            whole = analyse_shuffle(whole)
        whole.write(self._out / CLUSTER_FILE)
        return whole

    def _row(self, place: Path) -> ClusterNode:
        if (path := place / NODE_FILE).exists():
            return ClusterNode.read(path)
        node = self._there.get(place.name)
        why = "is not in the cluster any more" if node is None else "was not asked to go on"
        return ClusterNode(node=node or place.name, ok=False, why=why, faulty=node is None)

    def _whole(self, row: ClusterNode) -> ClusterNode:
        measurement = self._measurement(row.node)
        if measurement is None or measurement.environment is None:
            return row
        known = measurement.environment
        return structs.replace(
            row,
            host=known.host,
            provider=known.provider,
            machine_type=known.machine_type,
            measurement=measurement,
        )

    def _measurement(self, node: str) -> Measurement | None:
        place = self.place(node)
        try:
            return load_measurement(place) if (place / BEGUN).exists() else None
        except RecordError as why:
            raise core.UsageError(f"--output {self._out}: {why}: give another directory") from None


@contextmanager
def open_measurement_dir(
    out: Path,
    kind: str,
    settings: Mapping[str, Any],
    nodes: Sequence[str],
    *,
    command: list[str],
    labels: Mapping[str, str],
    one_at_a_time: bool,
) -> Iterator[ClusterMeasurementDir]:
    """The directory ``out``, with what an earlier command of the same settings left in it.

    Raises:
        UsageError: It holds something else, or is in use; or nodes' names cannot be told apart.
    """
    places = [node_directory(node) for node in nodes]
    if len(set(places)) < len(places):
        raise core.UsageError("nodes have names that are alike: start Ray there with --node-name")
    # Whoever wrote there may have been killed at the first of its files.
    first = [each for name in (BEGUN, NODE_FILE) for each in (name, f".{name}.*")]
    earlier = [path.parent.name for each in first for path in out.glob(f"*/{each}")]
    wanted = json.loads(json.dumps(settings, default=str))
    with locked_parent_dir(out, [*places, *earlier, CLUSTER_FILE, CLUSTER_BEGUN_FILE]):
        if (path := out / CLUSTER_BEGUN_FILE).exists():
            begun = ClusterMeasurement.read(path)
            if begun.kind != kind:
                raise core.UsageError(
                    f"--output {out} holds a measurement of {begun.kind}: give another directory"
                )
            how = {"one_at_a_time": begun.one_at_a_time}
            require_same_settings(
                out, begun.settings | how, wanted | {"one_at_a_time": one_at_a_time}
            )
        else:
            begun = ClusterMeasurement(
                id=new_id(f"fleet-{kind}"),
                kind=kind,
                began_at=utc_now(),
                command=command,
                settings=wanted,
                labels=dict(labels),
                one_at_a_time=one_at_a_time,
            )
        yield ClusterMeasurementDir(out, begun, nodes)


def node_directory(node: str) -> str:
    """What a node's directory is called."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", node).lstrip(".") or "node"
