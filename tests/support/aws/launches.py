"""Launches for the tests: a plan, and the command in a process of its own that starts at once.

Processes are forked from one that has all imported already (multiprocessing's fork server), so
that a test can end many of them, by any signal, at any step.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from msgspec import structs

from tonnage.base.records.plan import AttachedVolumes, Candidate, Plan, Range, SpaceFit
from tonnage.catalog import find_offer, load_catalog
from tonnage.cli.main import main
from tonnage.model.jobs.mapreduce import sort_job
from tonnage.provision import cost
from tonnage.provision.aws import launcher, teardown

PATIENCE_SECONDS = 120
CATALOG = "aws-us-east-1-2026"
OFFER = "i4i.large"
GP3 = AttachedVolumes(kind="gp3", count=1, gib_each=10)
SSH = Path(__file__).with_name("ssh.sh")


def hasten() -> None:
    """Nothing is waited for longer than it takes."""
    launcher.PAUSE_SECONDS = teardown.PAUSE_SECONDS = 0.01
    teardown.SETTLE = timedelta(0)


def candidate(
    nodes: int = 3,
    *,
    volumes: AttachedVolumes | None = GP3,
    placement: bool = True,
    spot: bool = False,
    own_disks: bool = False,
) -> Candidate:
    """A candidate of a shipped offer, at its price; what it takes is nobody's business here."""
    catalog = load_catalog(CATALOG)
    offer = find_offer([catalog], OFFER)[1]
    nothing = Range(low=0.0, median=0.0, high=0.0)
    made = Candidate(
        catalog=CATALOG,
        provider="aws",
        offer=OFFER,
        layout="as it is",
        placement=placement,
        nodes=nodes,
        seconds=nothing,
        cost_usd=nothing,
        usd_per_hour=0.0,
        phases=[],
        capacity=SpaceFit(needed_bytes=0, have_bytes=0),
        evidence="advertised",
        deadline_probability=None,
        own_disks=own_disks,
        volumes=volumes,
    )
    told = cost.find_tariff(catalog, offer, made, spot)
    return structs.replace(made, usd_per_hour=cost.usd_per_hour(told))


def plan(
    path: Path, *candidates: Candidate, spot: bool = False, public_addresses: bool | None = None
) -> Path:
    """A plan with these candidates, on file; without a word of addresses it is one of before."""
    addresses = {} if public_addresses is None else {"public_addresses": public_addresses}
    return Plan(
        job=sort_job("none"),
        bytes=1,
        settings={
            "deadline_seconds": None,
            "budget_usd": None,
            "least_nodes": 1,
            "most_nodes": 100,
            "purchase": "spot" if spot else "on-demand",
            **addresses,
        },
        made_at="2026-11-25T00:00:00+00:00",
        catalogs=[CATALOG],
        profiles=[],
        confidence=0.9,
        interval_rule="",
        candidates=list(candidates),
        pareto=[],
        excluded=[],
        survey=[],
    ).write(path)


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its exit code, or a signal's number below zero; what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        """The document that it printed."""
        found: dict[str, object] = json.loads(self.out)
        return found


class Command:
    """The command `tonnage`, in a process of its own, from a directory of its own."""

    def __init__(
        self, arguments: Sequence[str | Path], here: Path, room: Path, env: dict[str, str]
    ) -> None:
        self._files = [room / "out", room / "err"]
        self._process = _CONTEXT.Process(
            target=_called, args=([str(each) for each in arguments], here, self._files, env)
        )
        self._process.start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid or 0

    def wait(self) -> Ended:
        """Waits for its end."""
        self._process.join(PATIENCE_SECONDS)
        code = self._process.exitcode
        if code is None:
            self._process.kill()
            self._process.join()
            raise AssertionError(f"it did not end: {self._files[1].read_text()}")
        return Ended(code, *(file.read_text() for file in self._files))


def _called(arguments: list[str], here: Path, files: list[Path], env: dict[str, str]) -> None:
    os.chdir(here)
    # Whichever test starts the process that this is forked from may have had other keys.
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(env)
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hasten()
    sys.argv = ["tonnage", *arguments]
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["support.aws.launch_preload"])
