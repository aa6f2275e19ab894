"""Demands of an application, and what of its time no number of nodes shortens."""

from __future__ import annotations

import pytest

from support.data.applications import GB, application, stage, turn
from tonnage.base.executor_memory import MEMORY_FOR_DATA
from tonnage.base.records.application import CachedDataSet
from tonnage.base.records.job import Job, JobPhase
from tonnage.model.jobs.application import (
    DRIVER,
    MOST_PHASES,
    OTHER_STAGES,
    WARM_UP,
    application_job,
)

MB = 10**6


def amount(job: Job, phase: JobPhase, resource: str) -> float:
    """Bytes or seconds of a resource."""
    found = [each.per_byte for each in phase.demands if each.resource == resource]
    assert job.seen_bytes is not None
    return sum(found) * job.seen_bytes


def seconds_on(job: Job, slots: int) -> float:
    """What the slots of the seen cluster, or others, need for a job of even tasks."""
    total = 0.0
    for phase in job.phases:
        busy = amount(job, phase, "cpu") + amount(job, phase, "task wait")
        assert job.seen_bytes is not None
        longest = phase.longest_task_per_byte * job.seen_bytes
        total += max(busy / slots, longest, phase.warm_up_seconds) + phase.fixed_seconds
    return total


def test_times_without_any_stage_are_the_drivers() -> None:
    job = application_job(application(stage(0, 10, 20, 40), stage(1, 40, 30, 40), seconds=90))
    assert (job.phases[0].name, job.phases[0].fixed_seconds) == (DRIVER, 40)
    assert seconds_on(job, 4) == pytest.approx(90)


def test_stages_that_ran_at_once_are_one_phase() -> None:
    some = [stage(0, 0, 20, 40, task_seconds=30.0), stage(1, 5, 15, 40, task_seconds=50.0)]
    job = application_job(application(*some, stage(2, 20, 10, 40), seconds=30))
    assert [each.name for each in job.phases[1:]] == [
        "0: call at line 0 and 1 more",
        "2: call at line 2",
    ]
    assert amount(job, job.phases[1], "cpu") == pytest.approx(80)


def test_iterations_are_one_phase() -> None:
    some = [
        stage(at + 3, 10 * at, 10, 40, operators=["Scan", "Project (4)", "Project (5)"])
        for at in range(6)
    ]
    job = application_job(application(*some, seconds=60))
    assert [each.name for each in job.phases[1:]] == ["3: Scan, Project, 6 times"]
    assert amount(job, job.phases[1], "cpu") == pytest.approx(240)
    assert job.phases[1].tasks == 40


def test_many_phases_are_planned_as_some() -> None:
    some = [stage(at, 10 * at, 10 if at < 3 else 2, 40) for at in range(100)]
    job = application_job(application(*some, seconds=1_000))
    assert len(job.phases) == MOST_PHASES + 1
    assert job.phases[-1].name.startswith(OTHER_STAGES)
    assert seconds_on(job, 4) == pytest.approx(1_000)


def test_waits_for_shuffled_data_hold_slots_and_use_no_cores() -> None:
    waits = {"fetch_wait_seconds": 20.0, "shuffle_write_seconds": 10.0}
    job = application_job(application(stage(0, 0, 20, 40, **waits), seconds=20))
    phase = job.phases[1]
    assert amount(job, phase, "task wait") == pytest.approx(30)
    assert amount(job, phase, "cpu") == pytest.approx(50)


def test_slots_that_shared_cores_had_a_part_of_one() -> None:
    some = application(stage(0, 0, 20, 40), seconds=20)
    shared, own = application_job(some, vcpus=2), application_job(some, vcpus=16)
    assert amount(shared, shared.phases[1], "cpu") == pytest.approx(40)
    assert amount(own, own.phases[1], "cpu") == pytest.approx(80)


@pytest.mark.parametrize(("tasks", "kept"), [(4, None), (8, None), (16, None), (10, 10), (40, 40)])
def test_a_number_of_tasks_that_followed_the_slots_will_again(tasks: int, kept: int | None) -> None:
    seconds = -(-tasks // 4) * 4.0
    even = stage(0, 0, seconds, tasks, task_seconds=tasks * 4.0)
    job = application_job(application(even, seconds=seconds))
    assert job.phases[1].tasks == kept
    assert job.phases[1].fixed_seconds == pytest.approx(0.0)


def test_a_task_that_read_more_stays_long_and_one_that_did_not_does_not() -> None:
    long = {"longest_task_seconds": 15.0, "shuffle_remote_bytes": 40 * GB}
    skewed = stage(0, 0, 20, 40, longest_task_bytes=8 * GB, largest_task_bytes=8 * GB, **long)
    disturbed = stage(0, 0, 20, 40, longest_task_bytes=GB, largest_task_bytes=GB, **long)
    for each, seconds in ((skewed, 15.0), (disturbed, 0.0)):
        job = application_job(application(each, seconds=20))
        assert job.seen_bytes is not None
        assert job.phases[-1].longest_task_per_byte * job.seen_bytes == pytest.approx(seconds)


def test_what_first_tasks_take_longer_each_slot_takes_longer() -> None:
    """Of 40 tasks the first four took 5 s, the next four 3 s, all others 1 s."""
    turns = [turn(4, each) for each in (5.0, 3.0, 1.0)]
    warm = stage(0, 0, 16, 40, task_seconds=64.0, early_tasks=turns, median_task_seconds=1.0)
    job = application_job(application(warm, seconds=16))
    warm_up, phase = job.phases[1:]
    assert (warm_up.name, phase.fixed_seconds) == (WARM_UP, pytest.approx(0.0))
    assert warm_up.warm_up_seconds == pytest.approx(6.0)
    assert amount(job, phase, "cpu") == pytest.approx(40.0)


def test_the_small_rest_of_a_file_does_not_make_the_other_tasks_slow() -> None:
    """On four slots, 16 tasks of 10 s and one of 2 s."""
    split = stage(
        *(0, 0, 42, 17),
        task_seconds=162.0,
        early_tasks=[turn(4, 10.0, MB)] * 4,
        read_bytes={"files": 16 * MB + MB // 5},
        median_task_seconds=10.0,
    )
    job = application_job(application(split, seconds=42))
    assert [each.name for each in job.phases] == [DRIVER, "0: call at line 0"]
    assert amount(job, job.phases[-1], "cpu") == pytest.approx(162.0)


def test_only_slots_that_began_a_stage_warmed_up_in_it() -> None:
    """Two of four slots ran it: their eight later tasks took 1 s, the first two 9 s."""
    turns = [turn(2, 9.0), turn(2, 1.0)]
    few = stage(0, 0, 13, 10, task_seconds=26.0, early_tasks=turns, median_task_seconds=1.0)
    job = application_job(application(few, seconds=13))
    assert job.phases[1].warm_up_seconds == pytest.approx(8.0)
    assert amount(job, job.phases[-1], "cpu") == pytest.approx(10.0)


def test_tasks_of_several_cores_hold_all_of_them_while_they_wait() -> None:
    waits = stage(0, 0, 20, 40, fetch_wait_seconds=20.0)
    one, two = (
        application_job(application(waits, seconds=20, settings={"spark.task.cpus": cores}))
        for cores in ("1", "2")
    )
    assert amount(one, one.phases[-1], "task wait") == pytest.approx(20.0)
    assert amount(two, two.phases[-1], "task wait") == pytest.approx(40.0)


def test_what_a_slot_with_a_part_of_a_vcpu_took_is_of_a_whole_one() -> None:
    turns = [turn(4, 5.0), turn(4, 1.0)]
    warm = stage(0, 0, 16, 40, task_seconds=56.0, early_tasks=turns, median_task_seconds=1.0)
    one = application(warm, seconds=16)
    whole, half = (application_job(one, vcpus=vcpus).phases[1] for vcpus in (4.0, 2.0))
    assert half.warm_up_seconds == pytest.approx(whole.warm_up_seconds / 2)


def test_bytes_go_where_they_were_read_and_written_or_where_the_user_says() -> None:
    moves = stage(
        *(0, 0, 20, 40),
        read_bytes={"objects": 10 * GB, "cache": 90 * GB},
        shuffle_remote_bytes=3 * GB,
        shuffle_local_bytes=GB,
        shuffle_written_bytes=4 * GB,
        spilled_bytes=2 * GB,
        written_bytes={"objects": 5 * GB},
    )
    some = application(moves, seconds=20)
    job = application_job(some)
    phase = job.phases[1]
    assert job.seen_bytes == 10 * GB
    for resource, count in {
        "object get": 10,
        "object put": 5,
        "network": 4,
        "local write": 6,
    }.items():
        assert amount(job, phase, resource) == pytest.approx(count * GB), resource
    assert [each.shuffled for each in phase.demands if each.resource == "network"] == [True]
    moved = application_job(some, read_from="volumes", written_to="local")
    resources = {each.resource for each in moved.phases[1].demands}
    assert {"volume read", "local write"} <= resources
    assert not {"object get", "object put"} & resources
    assert (moved.input_location, moved.output_location) == ("volumes", "local")


def test_cached_data_and_tasks_need_memory() -> None:
    cached = [CachedDataSet(name="points", memory_bytes=6 * GB, disk_bytes=0)]
    some = application(stage(0, 0, 20, 40, peak_memory_bytes=GB), seconds=20, cached=cached)
    job = application_job(some)
    (room,) = [each for each in job.room if each.where == "memory"]
    assert job.seen_bytes is not None
    assert room.per_byte * job.seen_bytes == pytest.approx(6 * GB / MEMORY_FOR_DATA)
    # Two cores of an executor shared 2 GB; a task alone took more once.
    assert job.least_memory_per_vcpu == pytest.approx(GB / MEMORY_FOR_DATA, abs=1)
    alone = application(stage(0, 0, 20, 40, peak_memory_bytes=2 * GB), seconds=20)
    assert application_job(alone).least_memory_per_vcpu == job.least_memory_per_vcpu


def test_cached_data_of_unknown_size_is_at_least_what_a_stage_read_of_it() -> None:
    some = [stage(at, 20 * at, 20, 40, read_bytes={"cache": (3 - at) * GB}) for at in range(2)]
    job = application_job(application(*some, seconds=40))
    (room,) = job.room
    assert job.seen_bytes is not None and room.where == "memory"
    assert room.per_byte * job.seen_bytes == pytest.approx(3 * GB / MEMORY_FOR_DATA)


def test_time_that_the_log_does_not_name_is_a_share() -> None:
    some = stage(0, 0, 20, 40, cpu_seconds=40.0, gc_seconds=8.0, fetch_wait_seconds=12.0)
    job = application_job(application(some, seconds=20))
    assert job.settings["unnamed_share"] == pytest.approx(0.25)


def test_slots_that_no_log_reports_are_those_that_were_busy() -> None:
    job = application_job(application(stage(0, 0, 20, 40), seconds=20, executors=[]))
    assert job.settings["busy_vcpus"] == 4
