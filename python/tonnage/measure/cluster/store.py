"""A cluster measurement on disk: each node's files, written as they arrive.

See `tonnage.base.records.cluster_measurement` for what a directory holds. The same command resumes
a killed one: nodes that were done are not asked again, others resume after their last trial.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core
from tonnage.base.clock import utc_now
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
from tonnage.base.records.find_measurements import BEGUN, TRIALS
from tonnage.base.records.network_rounds import NET
from tonnage.measure.cluster.aggregate import aggregate_nodes
from tonnage.measure.net.shuffle_analysis import analyse_shuffle
from tonnage.measure.trial.session import locked_parent_dir, require_same_settings
from tonnage.measure.trial.trial import new_id


class ClusterMeasurementDir:
    """The directory, locked by one command at a time; made by `open_measurement_dir`."""

    def __init__(self, out: Path, begun: ClusterMeasurement, nodes: Sequence[str]) -> None:
        self._out, self._begun = out, begun
        self._there = {node_directory(node): node for node in nodes}

    def begin(self) -> None:
        if not (path := self._out / CLUSTER_BEGUN_FILE).exists():
            self._begun.write(path)

    def directory(self, node: str) -> Path:
        return self._out / node_directory(node)

    def files(self, node: str) -> dict[str, bytes]:
        """A node's files of an earlier command, for it to resume; not its finished measurement."""
        place = self.directory(node)
        paths = [*place.glob(BEGUN), *place.glob(TRIALS)]
        return {path.name: path.read_bytes() for path in sorted(paths)}

    def take(self, node: str, files: Mapping[str, bytes]) -> None:
        for name in sorted(files):
            if Path(name).name != name:
                raise core.RunError(f"{node} sent a file with an invalid name: {name}")
            write_atomically(self.directory(node) / name, files[name])

    def trial(self, node: str, name: str) -> Trial:
        return Trial.read(self.directory(node) / name)

    def trials(self, node: str) -> list[Trial]:
        return [Trial.read(path) for path in sorted(self.directory(node).glob(TRIALS))]

    def write_row(self, row: ClusterNode) -> ClusterNode:
        """Writes a node's row; gives it with the node's measurement."""
        row.write(self.directory(row.node) / NODE_FILE)
        return self._with_measurement(row)

    @property
    def rows(self) -> dict[str, ClusterNode]:
        """The rows of all nodes that began, with their measurements.

        A node whose row no command has written has a row that says so.
        """
        places = {
            path.parent for name in (NODE_FILE, BEGUN) for path in self._out.glob(f"*/{name}")
        }
        return {
            row.node: self._with_measurement(row) for row in map(self._read_row, sorted(places))
        }

    def close(self) -> ClusterMeasurement:
        rows = list(self.rows.values())
        late = [row.skew_seconds for row in rows if row.together > 1]
        began = [each for each in late if each is not None]
        errors = [row.clock_error_seconds for row in rows if row.clock_error_seconds is not None]
        took = [row.seconds for row in rows if row.ok and row.seconds is not None]
        first, last = min(took, default=None), max(took, default=None)
        measurement = structs.replace(
            self._begun,
            nodes=rows,
            across=aggregate_nodes(rows),
            skew_seconds=max(began) - min(began) if began else None,
            clock_error_seconds=max(errors, default=None),
            first_done_seconds=first,
            last_done_seconds=last,
            tail_seconds=None if first is None or last is None else last - first,
        )
        if measurement.kind == NET:
            measurement = analyse_shuffle(measurement)
        measurement.write(self._out / CLUSTER_FILE)
        return measurement

    def _read_row(self, place: Path) -> ClusterNode:
        if (path := place / NODE_FILE).exists():
            return ClusterNode.read(path)
        node = self._there.get(place.name)
        why = "is no longer in the cluster" if node is None else "was not included in this run"
        return ClusterNode(node=node or place.name, ok=False, why=why, faulty=node is None)

    def _with_measurement(self, row: ClusterNode) -> ClusterNode:
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
        place = self.directory(node)
        try:
            return load_measurement(place) if (place / BEGUN).exists() else None
        except RecordError as why:
            raise core.UsageError(
                f"{self._out}: {why}; choose another directory", setting="output"
            ) from None


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
    """Open ``out``, perhaps of an earlier command; `UsageError` if it is another's, or in use."""
    places = [node_directory(node) for node in nodes]
    if len(set(places)) < len(places):
        raise core.UsageError(
            "several nodes have the same name; start Ray on the nodes with unique --node-name"
        )
    # An earlier command may have been killed at the first of its files.
    first = [each for name in (BEGUN, NODE_FILE) for each in (name, f".{name}.*")]
    earlier = [path.parent.name for each in first for path in out.glob(f"*/{each}")]
    wanted = json.loads(json.dumps(settings, default=str))
    with locked_parent_dir(out, [*places, *earlier, CLUSTER_FILE, CLUSTER_BEGUN_FILE]):
        if (path := out / CLUSTER_BEGUN_FILE).exists():
            begun = ClusterMeasurement.read(path)
            if begun.kind != kind:
                raise core.UsageError(
                    f"{out} contains a measurement of kind {begun.kind}; choose another directory",
                    setting="output",
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
    return re.sub(r"[^A-Za-z0-9_.-]", "_", node).lstrip(".") or "node"
