"""Where an application's core seconds went, what limited its phases, and what to change first."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.data import applications as made
from support.data.copies import replace
from support.data.fuzz_importers import SAMPLES
from tonnage.base.records.application import Application, ApplicationStage, Executor
from tonnage.base.records.application_analysis import ApplicationAnalysis
from tonnage.model.jobs.application import application_job
from tonnage.model.jobs.application_analysis import analyse_application

LONG_TASK = {
    "tasks": 16,
    "run_seconds": 110.0,
    "median_task_seconds": 5.0,
    "longest_task_seconds": 40.0,
    "early_tasks": [],
}


def stage(id: int = 0, began: float = 0.0, seconds: float = 10.0, **given: Any) -> ApplicationStage:
    """A stage of eight tasks that keep eight slots busy, on the CPU unless it is given."""
    run_seconds = given.setdefault("run_seconds", 8 * seconds)
    all_seconds = run_seconds + given.get("deserialize_seconds", 0.0)
    usual = {"task_seconds": all_seconds, "cpu_seconds": run_seconds, "early_tasks": []}
    given = usual | given
    return made.stage(id, began, seconds, given.pop("tasks", 8), **given)


def application(*stages: ApplicationStage, **given: Any) -> Application:
    """An application on two executors of four cores, from its beginning to its end."""
    last = max(each.began_seconds + each.seconds for each in stages)
    seconds = given.setdefault("seconds", last)
    executors = [
        Executor(host=host, cores=4, memory_bytes=1 << 30, began_seconds=0.0, ended_seconds=seconds)
        for host in range(2)
    ]
    return made.application(*stages, **{"executors": executors} | given)


def used(analysis: ApplicationAnalysis) -> dict[str, float]:
    return {each.kind: pytest.approx(each.core_seconds) for each in analysis.uses}


def names(analysis: ApplicationAnalysis) -> list[str]:
    return [each.name for each in analysis.findings]


def test_core_seconds_of_tasks_and_of_idle_slots() -> None:
    one = stage(
        0,
        5.0,
        20.0,
        run_seconds=100.0,
        deserialize_seconds=4.0,
        cpu_seconds=50.0,
        gc_seconds=10.0,
        fetch_wait_seconds=8.0,
        shuffle_write_seconds=6.0,
        lost_seconds=7.0,
        task_seconds=113.0,
        longest_task_seconds=13.0,
    )
    analysis = analyse_application(application(one, seconds=30.0))
    assert analysis.core_seconds == 240.0 and analysis.slots == 8
    assert used(analysis) == {
        "computing": 50.0,
        "garbage collection": 10.0,
        "shuffle fetch": 8.0,
        "shuffle write": 6.0,
        "loading of tasks": 4.0,
        "lost tasks": 7.0,
        "launch and results": 9.0,
        "other waits": 19.0,
        "no stage": 80.0,  # 10 s without a stage
        "between tasks": 47.0,  # 8 x 20 s less the 113 of the tasks
    }
    assert {each.kind for each in analysis.uses if not each.estimated} == {
        "computing",
        "shuffle fetch",
        "no stage",
    }


def test_counters_that_overlap_are_not_counted_twice() -> None:
    one = stage(cpu_seconds=70.0, gc_seconds=30.0, fetch_wait_seconds=5.0)
    assert used(analyse_application(application(one))) == {
        "computing": 70.0,
        "shuffle fetch": 5.0,
        "garbage collection": 5.0,
    }


def test_time_of_python_workers_is_not_called_waiting() -> None:
    analysis = analyse_application(application(stage(cpu_seconds=20.0, python=True)))
    assert used(analysis) == {"computing": 20.0, "Python or waiting": 60.0}
    assert analysis.phases[0].limit == "computing" and "Python" in analysis.phases[0].why


def test_idle_slots_of_too_few_tasks_and_of_the_last_task() -> None:
    few = stage(0, 0.0, 10.0, tasks=2, run_seconds=20.0)
    analysis = analyse_application(application(few))
    assert used(analysis) == {"computing": 20.0, "too few tasks": 60.0}
    assert analysis.phases[0].limit == "too few tasks"
    assert names(analysis) == ["Too few tasks for the slots"]
    assert analysis.findings[0].core_seconds == 60.0 and analysis.findings[0].seconds == 7.5
    skewed = stage(0, 0.0, 40.0, **LONG_TASK)
    analysis = analyse_application(application(skewed))
    assert used(analysis) == {"computing": 110.0, "last tasks": 210.0}
    assert analysis.phases[0].limit == "longest task"
    assert names(analysis) == ["A task that takes longer than others"]


def test_a_long_task_with_much_data_is_skewed_data() -> None:
    one = stage(
        0,
        0.0,
        40.0,
        **LONG_TASK,
        shuffle_remote_bytes=1_600_000_000,
        longest_task_bytes=900_000_000,
    )
    (finding,) = analyse_application(application(one)).findings
    assert finding.name == "Uneven data" and "900 MB, the mean task 100 MB" in finding.fact
    assert "spark.sql.adaptive.skewJoin.enabled" in finding.settings
    # What a phase took beyond an even division, as a plan counts it.
    assert finding.core_seconds == pytest.approx(8 * (40 - 110 / 8))


def test_executors_that_come_late_and_leave_early_count_while_they_are_there() -> None:
    one = application(stage(0, 10.0, 10.0, run_seconds=40.0), seconds=30.0)
    first, second = one.executors
    executors = [
        replace(first, began_seconds=5.0, ended_seconds=30.0),
        replace(second, began_seconds=15.0, ended_seconds=20.0),
    ]
    analysis = analyse_application(replace(one, executors=executors))
    assert analysis.core_seconds == 120.0
    assert used(analysis) == {"computing": 40.0, "no stage": 60.0, "between tasks": 20.0}


def test_without_cores_only_the_time_of_tasks_is_known() -> None:
    one = application(stage())
    analysis = analyse_application(
        replace(one, executors=[replace(each, cores=None) for each in one.executors])
    )
    assert analysis.core_seconds is None and not analysis.slots_reported
    assert used(analysis) == {"computing": 80.0} and analysis.slots == 8


def test_tasks_of_several_cores_hold_all_of_them() -> None:
    one = application(stage(tasks=4, run_seconds=40.0), settings={"spark.task.cpus": "2"})
    analysis = analyse_application(one)
    assert analysis.slots == 4 and used(analysis) == {"computing": 80.0}
    job = application_job(one)
    (driver, phase) = job.phases
    assert driver.fixed_seconds == 0 and phase.fixed_seconds == 0
    (cpu,) = phase.demands
    assert cpu.per_byte * 1_000 == pytest.approx(80.0)  # Of the least input, 1 kB
    assert job.settings["busy_vcpus"] == 8


def test_waves_of_tasks_of_several_cores_are_of_all_their_cores() -> None:
    cpus = {"spark.task.cpus": "2"}
    one = application(stage(seconds=12.0, tasks=10, run_seconds=40.0), settings=cpus)
    assert application_job(one).phases[-1].tasks == 20


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({}, "computing"),
        ({"cpu_seconds": 10.0}, "other waits"),
        ({"cpu_seconds": 10.0, "fetch_wait_seconds": 60.0}, "shuffle waits"),
        ({"run_seconds": 20.0}, "fixed"),
        ({"tasks": 6, "run_seconds": 60.0}, "computing"),
        ({"tasks": 4, "run_seconds": 40.0}, "too few tasks"),
        ({"longest_task_seconds": 10.0, "run_seconds": 24.0, "early_tasks": []}, "longest task"),
        ({"tasks": 3, "run_seconds": 30.0}, "too few tasks"),
    ],
)
def test_limit_is_the_largest_term_of_the_phase(changes: dict[str, float], limit: str) -> None:
    (phase,) = analyse_application(application(stage(**changes))).phases
    assert phase.limit == limit


def test_findings_name_the_settings_and_are_in_order_of_what_they_save() -> None:
    read = {"files": 10_000_000}
    stages = [
        stage(0, 20.0, 10.0, read_bytes=read, cpu_seconds=40.0, gc_seconds=30.0),
        stage(1, 30.0, 10.0, cpu_seconds=60.0, spilled_bytes=10**9),
        stage(2, 40.0, 10.0, cpu_seconds=50.0, fetch_wait_seconds=30.0),
        stage(3, 50.0, 10.0, cpu_seconds=50.0, killed_tasks=3, lost_seconds=25.0),
        stage(4, 60.0, 10.0, cpu_seconds=50.0, shuffle_write_seconds=25.5),
        stage(
            5,
            70.0,
            10.0,
            tasks=900,
            run_seconds=30.0,
            median_task_seconds=0.01,
            longest_task_seconds=0.02,
        ),
    ]
    findings = analyse_application(application(*stages)).findings
    assert [each.name for each in findings] == [
        "Executors without work",
        "Many short tasks",
        "Tasks that waited without the CPU",
        "Garbage collection",
        "Waiting for shuffled data",
    ]
    saved = [each.core_seconds for each in findings]
    assert saved == sorted(saved, reverse=True) and saved[0] == pytest.approx(160.0)
    assert findings[0].seconds == pytest.approx(20.0)
    assert all(setting.startswith("spark.") for each in findings for setting in each.settings)


def test_nothing_is_found_where_all_cores_compute() -> None:
    assert analyse_application(application(stage())).findings == []


def test_one_stage_of_no_seconds() -> None:
    one = stage(0, 0.0, 0.0, tasks=1, run_seconds=0.0)
    analysis = analyse_application(application(one, seconds=0.0))
    assert analysis.core_seconds is None and analysis.uses == [] and analysis.findings == []
    assert len(analysis.phases) == 1


IDLE_FINDINGS = {
    "Too few tasks for the slots": ["too few tasks"],
    "A task that takes longer than others": ["last tasks"],
    "Uneven data": ["last tasks"],
    "Executors without work": ["no stage"],
}
"""Findings of idle cores, and the kinds of core time that they can save no more than."""
amounts = st.floats(0, 1000, allow_nan=False)


@st.composite
def applications(draw: st.DrawFn) -> Application:
    stages = [
        stage(
            number,
            draw(amounts),
            draw(amounts),
            tasks=draw(st.integers(1, 50)),
            **{
                name: draw(amounts)
                for name in (
                    *("run_seconds", "cpu_seconds", "gc_seconds", "deserialize_seconds"),
                    *("fetch_wait_seconds", "shuffle_write_seconds", "lost_seconds"),
                    *("median_task_seconds", "longest_task_seconds"),
                )
            },
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    return application(*stages)


@settings(max_examples=100, deadline=None)
@given(applications())
def test_core_seconds_add_up_whatever_the_log_has(one: Application) -> None:
    analysis = analyse_application(one)
    total = sum(each.core_seconds for each in analysis.uses)
    in_tasks = sum(each.run_seconds + each.deserialize_seconds for each in one.stages)
    lost = sum(each.lost_seconds for each in one.stages)
    # All cores' time, unless tasks report more than there was.
    assert total >= (analysis.core_seconds or 0.0) * (1 - 1e-9)
    assert total <= (analysis.core_seconds or 0.0) + in_tasks + lost + 1e-6
    assert analysis.stage_seconds <= one.seconds + 1e-9
    assert all(each.core_seconds > 0 for each in analysis.findings) and len(analysis.findings) <= 5
    idle = {each.kind: each.core_seconds for each in analysis.uses}
    for name, kinds in IDLE_FINDINGS.items():
        saved = sum(each.core_seconds or 0.0 for each in analysis.findings if each.name == name)
        assert saved <= sum(idle.get(kind, 0.0) for kind in kinds) + 1e-6
    assert ApplicationAnalysis.from_json(analysis.to_json()) == analysis


def test_a_recorded_application_adds_up() -> None:
    one = Application.read(SAMPLES.parent / "artifacts" / "application-1.json")
    analysis = analyse_application(one)
    total = sum(each.core_seconds for each in analysis.uses)
    assert total == pytest.approx(analysis.core_seconds, rel=1e-6)
    assert names(analysis)[0] == "Executors without work"
