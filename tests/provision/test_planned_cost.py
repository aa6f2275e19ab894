"""A launch that takes as long as planned costs what the plan says: the same bill, to the cent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from tonnage.base.records.plan import Plan
from tonnage.cli.output.candidates import usd

AWS = ("--provider", "aws")
BY_THE_HOUR = ("--catalog", "aws-us-east-1-2014", "--billing", "hours")


def dry_run(tonnage: Tonnage, plan: Path, *flags: str) -> dict[str, Any]:
    done = tonnage.run(
        "launch", plan, "--dry-run", "--lifetime", "30d", "--json", *flags, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def planned(tonnage: Tonnage, path: Path, *flags: str) -> Plan:
    path.write_text(tonnage.run("plan", *flags, "--json", check=True).stdout)
    return Plan.read(path)


@pytest.mark.parametrize(
    ("flags", "items"),
    [
        (("sort", "--data", "20TB", "--deadline", "2h", *AWS), {"object storage requests"}),
        (("sort", "--data", "1TB", "--from", "volumes", "--egress", "0.1", *AWS), {"egress"}),
        (("sort", "--data", "3TB", "--from", "local", "--nodes", "9", *AWS), set()),
        (("mapreduce", "--data", "2TB", "--purchase", "spot", *AWS), {"object storage requests"}),
        (("sort", "--data", "1TB", "--no-public-addresses", *AWS), {"object storage requests"}),
        (("reduce", "--data", "10TB", "--passes", "5", *AWS), {"object storage requests"}),
        (("sort", "--data", "1TB", "--from", "local", *BY_THE_HOUR), set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_dry_run_costs_what_the_plan_says_to_the_cent(
    tonnage: Tonnage, tmp_path: Path, flags: tuple[str, ...], items: set[str]
) -> None:
    path = tmp_path / "plan.json"
    made = planned(tonnage, path, *flags)
    for number, candidate in enumerate(made.candidates[:3], start=1):
        dry = dry_run(tonnage, path, "--candidate", str(number))
        assert round(dry["cost_usd"], 2) == round(candidate.cost_usd.median, 2)
        assert dry["cost_usd"] == pytest.approx(candidate.cost_usd.median, rel=1e-9)
        assert {each["item"]: each["usd"] for each in dry["costs"]} == pytest.approx(
            {each.item: each.usd for each in candidate.costs}
        )
        assert sum(each.usd for each in candidate.costs) == pytest.approx(dry["cost_usd"])
        found = {each.item for each in candidate.costs}
        assert found >= items | {"machines"}
        free = {"--no-public-addresses", "aws-us-east-1-2014"} & {*flags}
        assert ("public addresses" in found) is not bool(free)
        assert dry["seconds"] == candidate.seconds.median


def test_the_bill_is_printed_by_both(tonnage: Tonnage, tmp_path: Path) -> None:
    flags = ("sort", "--data", "2TB", "--nodes", "4", *AWS)
    best = planned(tonnage, tmp_path / "plan.json", *flags).candidates[0]
    total = f"${best.cost_usd.median:,.2f}"
    bill = ", ".join(f"{each.item} {usd(each.usd)}" for each in best.costs)
    done = tonnage.run("launch", tmp_path / "plan.json", "--dry-run", check=True)
    said = next(line for line in done.stderr.splitlines() if line.startswith("Planned cost"))
    assert said.startswith(f"Planned cost: {total} for ") and "from the request" in said
    assert said.endswith(bill.replace(", object", " and object"))
    assert bill.replace(", object", " and object") in tonnage.run("plan", *flags).stdout
    told = tonnage.run("plan", *flags, "--explain", f"aws/{best.offer}", check=True).stdout
    assert bill.replace(", object", " and object") in told


def test_a_plan_of_before_has_no_bill_but_its_launch_does(tonnage: Tonnage, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    best = planned(tonnage, path, "sort", "--data", "2TB", "--nodes", "4", *AWS).candidates[0]
    document = json.loads(path.read_text())
    for each in document["candidates"]:
        del each["costs"]
    del document["settings"]["charged"]
    path.write_text(json.dumps(document))
    assert dry_run(tonnage, path)["cost_usd"] == pytest.approx(best.cost_usd.median)


def test_own_prices_are_kept_by_the_plan_and_obeyed(tonnage: Tonnage, tmp_path: Path) -> None:
    own, path = tmp_path / "own.csv", tmp_path / "plan.json"
    own.write_text("provider,machine_type,usd_per_hour\naws,i4i.4xlarge,0.5\n")
    asked = ("sort", "--data", "20TB", "--nodes", "8", "--discount", "40%", *AWS)
    made = planned(tonnage, path, *asked, "--prices", str(own))
    own.unlink()
    assert made.settings["discount_percent"] == 40
    plain = planned(tonnage, tmp_path / "list.json", *asked[:-4], *AWS)
    for kind, usd_per_hour in (("i4i.4xlarge", 0.5), ("i4g.4xlarge", None)):
        number, best = next(
            (at, each)
            for at, each in enumerate(made.candidates, start=1)
            if each.offer == kind and each.layout == "local"
        )
        listed = next(
            each for each in plain.candidates if each.offer == kind and each.layout == "local"
        )
        machine = listed.usd_per_hour - 0.005
        assert best.usd_per_hour == pytest.approx((usd_per_hour or 0.6 * machine) + 0.005)
        dry = dry_run(tonnage, path, "--candidate", str(number))
        assert dry["cost_usd"] == pytest.approx(best.cost_usd.median, rel=1e-9)
        # Neither is of spot machines.
        spot = dry_run(tonnage, path, "--candidate", str(number), "--purchase", "spot")
        number = 1 + [*map(id, plain.candidates)].index(id(listed))
        same = dry_run(
            tonnage, tmp_path / "list.json", "--candidate", str(number), "--purchase", "spot"
        )
        assert spot["costs"] == same["costs"]


def test_own_prices_of_spot_machines_are_said_not_to_apply(tonnage: Tonnage) -> None:
    asked = ("plan", "sort", "--data", "2TB", "--purchase", "spot", *AWS, "--json")
    plain, less = (
        Plan.from_json(json.loads(tonnage.run(*asked, *flags, check=True).stdout))
        for flags in ((), ("--discount", "40"))
    )
    assert less.candidates[0] == plain.candidates[0]
    assert any("so they do not apply" in note for note in less.notes)


@pytest.mark.parametrize("percent", ["0", "100", "-1", "ten"])
def test_a_discount_is_a_percentage(tonnage: Tonnage, percent: str) -> None:
    done = tonnage.run("plan", "sort", "--data", "2TB", f"--discount={percent}")
    assert done.returncode == 2 and "is not a percentage between 0 and 100" in done.stderr
