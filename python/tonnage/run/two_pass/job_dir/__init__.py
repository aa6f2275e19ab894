"""A job's own directory: all that its driver knows, so that the same command resumes it.

::

    job.json       settings, and the job's name, which its directories on nodes have too
    plan.json      the input as it was, boundaries of partitions, weights of nodes
    rounds.json    the events in order: rounds, losses, steps
    sorted.json    the files of the output, in the order of keys; of a MapReduce reduced.json
    run.json       the record, when the output is whole
    left.json      the nodes whose scratch is removed: nothing is left to do

Each is written whole or not at all. The secret of a round's network is nowhere among them.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.base.records import write_atomically
from tonnage.base.records.base import RecordError, read_values
from tonnage.measure.trial.session import locked_parent_dir
from tonnage.run.two_pass.job_dir.schemas import (
    SCHEMA,
    Events,
    InputFiles,
    JobFile,
    OutputFiles,
    PlanFile,
)
from tonnage.run.two_pass.schedule import Finished, Outcome, Round, Schedule, Total
from tonnage.run.two_pass.splits import FileId

JOB, PLAN, ROUNDS, RUN, LEFT = ("job.json", "plan.json", "rounds.json", "run.json", "left.json")
IN_WORDS = {
    "memory_bytes": "memory",
    "chunk_bytes": "size of chunks",
    "record_bytes": "size of records",
    "instances": "number of nodes",
    "weights": "capacities",
    "endpoint": "endpoint URL",
    "code": "files with the functions",
    "input_formats": "input formats",
    "format": "output format",
    "of_reduction": "settings of the reduction",
    "state": "contents of the reduction",
}
"""Settings whose names in `JOB` say less."""

Event = dict[str, Any]


class FatalJobError(core.RunError):
    """The job failed, and so would the same command."""


class LockedDir:
    """A job's directory, locked by one command at a time; made of what `locked_job_dir` gives."""

    PLAN_FILE: type[InputFiles] = PlanFile

    def __init__(self, out: Path, job: Mapping[str, Any]) -> None:
        self._out = out
        self.job: str = job["job"]
        self.began_at: str = job["began_at"]
        self.plan: dict[str, Any] | None = self._read(PLAN, self.PLAN_FILE)

    def begin(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self._write(PLAN, plan)

    def _read(self, name: str, kind: Any) -> Any:
        try:
            return _read(self._out / name, kind)
        except FileNotFoundError:
            return None

    def _write(self, name: str, values: Any) -> None:
        write_atomically(self._out / name, json.dumps(values).encode() + b"\n")


class JobDir(LockedDir):
    """The directory of a job that has an output; made by `open_job_dir`."""

    def __init__(self, out: Path, job: Mapping[str, Any], listed: str) -> None:
        super().__init__(out, job)
        self._listed = listed
        self.events: list[Event] = self._read(ROUNDS, Events) or []

    def forget(self) -> None:
        """Forgets the job: what was refused leaves nothing behind."""
        for name in (ROUNDS, PLAN, JOB):
            (self._out / name).unlink(missing_ok=True)
        self.plan, self.events = None, []

    def append(self, event: Event) -> None:
        self.events.append(event)
        self._write(ROUNDS, self.events)

    def list_files(self, files: Sequence[Mapping[str, Any]]) -> None:
        self._write(self._listed, files)

    @property
    def files(self) -> list[dict[str, Any]]:
        return self._read(self._listed, OutputFiles) or []

    @property
    def run(self) -> Path:
        return self._out / RUN

    @property
    def is_left(self) -> bool:
        return (self._out / LEFT).exists()

    def leave(self, nodes: Sequence[str]) -> None:
        self._write(LEFT, list(nodes))


@contextmanager
def open_job_dir(out: Path, settings: Mapping[str, Any], listed: str) -> Iterator[JobDir]:
    """Open ``out`` for a job of these settings; `UsageError` if it is another's, or in use."""
    with locked_job_dir(out, settings, [PLAN, ROUNDS, listed, RUN, LEFT]) as job:
        yield JobDir(out, job, listed)


@contextmanager
def locked_job_dir(
    out: Path, settings: Mapping[str, Any], parts: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Lock ``out`` for a job of these settings; gives what `JOB` has of it.

    ``parts`` are what else may be in it. `UsageError` if it holds something else, was begun with
    other settings, or is in use.
    """
    wanted = json.loads(json.dumps(settings))
    with locked_parent_dir(out, [JOB, *parts]):
        path = out / JOB
        if path.exists():
            job = _read(path, JobFile)
            for name in wanted | job["settings"]:
                was, given = job["settings"].get(name), wanted.get(name)
                if was != given:
                    words = IN_WORDS.get(name, name)
                    raise core.UsageError(
                        f"{out} was started with {words} {was}, not {given}; use the original "
                        "value to resume, or another directory",
                        setting="job_dir",
                    )
        else:
            job = {
                "schema": SCHEMA,
                "job": secrets.token_hex(8),
                "began_at": utc_now(),
                "settings": wanted,
            }
            write_atomically(path, json.dumps(job).encode() + b"\n")
        yield job


def _read(path: Path, kind: Any) -> Any:
    try:
        return read_values(path, kind)
    except RecordError as why:
        raise core.UsageError(f"{why}; use another directory", setting="job_dir") from why


def holders_to_json(held: Mapping[FileId, tuple[str, ...]]) -> dict[str, Any]:
    """Files with their holders, as JSON values; the same holders once."""
    several = {nodes: number for number, nodes in enumerate(dict.fromkeys(held.values()))}
    return {
        "holders": [list(nodes) for nodes in several],
        "files": [[*each, several[nodes]] for each, nodes in held.items()],
    }


def holders_from_json(values: Mapping[str, Any]) -> dict[FileId, tuple[str, ...]]:
    several = [tuple(nodes) for nodes in values["holders"]]
    return {FileId(*each): several[number] for *each, number in values["files"]}


def round_event(
    each: Round, outcomes: Mapping[str, Outcome], blames: Mapping[str, Sequence[str]]
) -> Event:
    return {
        "event": "round",
        "number": each.number,
        "reads": {node: list(splits) for node, splits in each.reads.items()},
        "owners": list(each.owners.items()),
        "outcomes": {
            node: {
                "read": list(vars(outcome.read).values()),
                "lost": list(outcome.lost),
                "partitions": list(outcome.partitions.items()),
            }
            for node, outcome in outcomes.items()
        },
        "blames": {node: list(others) for node, others in blames.items()},
    }


def lost_event(
    node: str,
    why: str,
    reads: bool,
    joins: bool,
    keeps: Mapping[int, Sequence[Finished]],
    new_owners: Mapping[int, tuple[str, Sequence[Finished]]],
) -> Event:
    return {
        "event": "lost",
        "node": node,
        "why": why,
        "reads": reads,
        "joins": joins,
        "keeps": [[place, files_to_json(files)] for place, files in keeps.items()],
        "heirs": [
            [place, owner, files_to_json(files)] for place, (owner, files) in new_owners.items()
        ],
    }


def files_to_json(files: Sequence[Finished]) -> list[Any]:
    return [[each.path, *vars(each.total).values()] for each in files]


def files_from_json(values: Sequence[Any]) -> list[Finished]:
    return [Finished(path, Total(*total)) for path, *total in values]


def new_owners_from_json(event: Event) -> dict[int, tuple[str, Sequence[Finished]]]:
    return {place: (owner, files_from_json(files)) for place, owner, files in event["heirs"]}


def replay(schedule: Schedule, event: Event) -> list[str]:
    """Reports an event to a schedule; gives the nodes to lose, as `Schedule.round_ended`."""
    if event["event"] == "round":
        each = Round(event["number"], event["reads"], dict(map(tuple, event["owners"])))
        outcomes = {
            node: Outcome(
                Total(*told["read"]), tuple(told["lost"]), dict(map(tuple, told["partitions"]))
            )
            for node, told in event["outcomes"].items()
        }
        return schedule.round_ended(each, outcomes, event["blames"])
    if event["event"] == "lost":
        for place, files in event["keeps"]:
            schedule.partition_finished(place, files_from_json(files))
        keeps = [place for place, _ in event["keeps"]]
        schedule.lose(
            event["node"],
            reads=event["reads"],
            keeps=keeps,
            joins=event["joins"],
            new_owners=new_owners_from_json(event),
        )
    return []
