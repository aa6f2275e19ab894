"""Random pages answer random questions as the planner does, to the cent (Chromium).

Pages differ in their job, catalogs, profiles, start-up, public addresses, own prices and discounts,
egress and the memory's limits; questions in all that the form has.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.browser.chromium import Browser
from support.browser.plan_pages import assert_same_plan, open_page
from support.browser.random_pages import page_plans, random_pages
from tonnage.base.records.job import START_UP
from tonnage.base.records.plan import INTERRUPTIONS
from tonnage.model.jobs.mapreduce import THIRD_PASS

pytestmark = pytest.mark.browser
SEED = 2
"""The questions of its first pages reach every term."""
BATCH = 20
"""Questions that a page answers by one call."""
ITEMS = {"machines", "public addresses", "volumes", "object storage requests", "egress"}
PHASES = {START_UP, INTERRUPTIONS, THIRD_PASS}


@pytest.mark.parametrize(
    ("pages", "questions"),
    [
        pytest.param(6, 8, id="few"),
        pytest.param(25, 40, id="thousand", marks=[pytest.mark.slow, pytest.mark.timeout(3000)]),
    ],
)
def test_pages_answer_as_the_planner_does(
    browser: Browser, tmp_path: Path, pages: int, questions: int
) -> None:
    answers, terms = set(), set()
    for at, asked in enumerate(random_pages(pages, SEED)):
        file = asked.write(tmp_path / f"{at}.html")
        forms = list(asked.forms(questions, at))
        with open_page(browser, file) as page:
            for begin in range(0, questions, BATCH):
                some = forms[begin : begin + BATCH]
                for fields, found in zip(some, page_plans(page, some), strict=True):
                    made = asked.planned(fields)
                    assert_same_plan(found, made)
                    answers.add((bool(made.candidates), made.nearest is not None))
                    for each in made.candidates:
                        terms |= {line.item for line in each.costs}
                        terms |= {phase.name for phase in each.phases}
    # Some questions have an answer; for others the page shows only the nearest plan.
    assert answers >= {(True, False), (False, True)}
    assert terms >= ITEMS | PHASES
