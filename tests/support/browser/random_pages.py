"""Random plan pages, and questions to them: all that `tonnage explore` and a form may be given."""

from __future__ import annotations

import dataclasses
import datetime
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from support.browser.chromium import Page
from support.browser.plan_pages import JOBS, random_forms, to_request
from support.data.copies import replace
from support.data.questions import (
    random_catalogs,
    random_mapreduce,
    random_prices,
    random_profiles,
    random_reduction,
    random_startup,
)
from tonnage.base.core.sockets import DESCRIPTORS
from tonnage.base.records.job import Job
from tonnage.base.records.plan import Plan
from tonnage.catalog import Catalog
from tonnage.model.profiles.repository import ProfileIndex
from tonnage.plan.planner import plan
from tonnage.report.explorer import page_data, write_explorer


@dataclasses.dataclass(frozen=True)
class RandomPage:
    """What a page plans, and from what."""

    jobs: dict[str, Job]
    """By the location of their data."""
    catalogs: list[Catalog]
    known: ProfileIndex
    settings: dict[str, Any]
    """Of the page's data, and of the planner's requests."""

    def write(self, file: Path) -> Path:
        data = page_data(self.jobs, self.catalogs, self.known, **self.settings)
        return write_explorer(data, "job", [], file)

    def forms(self, count: int, seed: int) -> Iterator[dict[str, str]]:
        providers = sorted({each.provider for each in self.catalogs})
        return random_forms(count, seed, locations=[*self.jobs], providers=providers)

    def planned(self, fields: dict[str, str]) -> Plan:
        """What the planner answers."""
        request = replace(to_request(fields, self.jobs), **self.settings)
        provider = fields["provider"]
        some = [each for each in self.catalogs if provider in ("", each.provider)]
        return plan(request, some, self.known)


def random_pages(count: int, seed: int) -> Iterator[RandomPage]:
    """Pages of sorts, MapReduces and reductions by turns; all else at random."""
    dice = random.Random(seed)
    kinds = (_sorts, _mapreduces, _reductions)
    for at in range(count):
        yield RandomPage(
            kinds[at % len(kinds)](dice),
            random_catalogs(dice),
            random_profiles(dice),
            {
                "startup": random_startup(dice),
                "memory": dice.random() < 0.8,
                "public_addresses": dice.random() < 0.5,
                "own_prices": random_prices(dice),
                "today": dice.choice([None, datetime.date(2026, 11, 1)]),
                "descriptors": DESCRIPTORS,
            },
        )


def page_plans(page: Page, forms: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """The page's plans of several forms, by one call."""
    found: list[dict[str, Any]] = page.inner.evaluate(
        "forms => forms.map((fields) => tonnage.plan(fields))", forms
    )
    return found


def _sorts(dice: random.Random) -> dict[str, Job]:
    return _with_egress(JOBS, dice.choice([0.0, 1.0]))


def _mapreduces(dice: random.Random) -> dict[str, Job]:
    mapreduce = random_mapreduce(dice)
    jobs = {
        "objects": mapreduce(read_from="objects", written_to="objects"),
        "local": mapreduce(read_from="local", written_to="volumes"),
        "replicated": mapreduce("replicated", read_from="objects"),
    }
    return _with_egress(jobs, dice.choice([0.0, 0.3]))


def _reductions(dice: random.Random) -> dict[str, Job]:
    return _with_egress({"": random_reduction(dice)}, dice.choice([0.0, 0.01]))


def _with_egress(jobs: dict[str, Job], per_byte: float) -> dict[str, Job]:
    return {name: replace(job, taken_out_per_byte=per_byte) for name, job in jobs.items()}
