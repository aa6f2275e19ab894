"""The two-pass model: cases calculated by hand, and properties for any measurement."""

import itertools
import math
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.data.copies import replace
from support.data.measurements import PHASE, measurement
from support.stores.disk import ROOT
from tonnage.base.records import Measurement, Prediction, RunRecord, Study
from tonnage.base.system.sampler import MachineSampler
from tonnage.model.capacity import Capacity, cpu_per_byte, throughput
from tonnage.model.study_findings import (
    CPU_STOLEN,
    CPU_UNUSED,
    CPU_USED,
    HIGH_LOAD,
    findings,
    warnings,
)
from tonnage.model.two_pass import CPU as CPU_LIMIT
from tonnage.model.two_pass import (
    DISK,
    DiskMeasurements,
    Rehearsal,
    SortShape,
    limit_seconds,
    predict,
)

MB = 1_000_000
GB = 1_000 * MB


def disk(
    rw: float | list[float], ro: float = 0, wo: float = 0, cpu: float = 1e-15, name: str = "disk"
) -> Measurement:
    """A disk's trials in MB/s; reading or writing alone is twice as fast if not told otherwise."""
    both = rw if isinstance(rw, list) else [rw]
    rates = {
        "rw": [each * MB for each in both],
        "ro": [(ro or 2 * both[0]) * MB],
        "wo": [(wo or 2 * both[0]) * MB],
    }
    return measurement(name, rates, {"rw": cpu})


def cores(partition: float = 1e-15, sort: float = 1e-15) -> Measurement:
    """CPU seconds for each byte of the two passes' work."""
    rates = {"partition": [100 * MB], "sort": [100 * MB]}
    return measurement("cpu", rates, {"partition": partition, "sort": sort})


def shape(size: int = 4 * GB, cores: int = 2, open_block: int = 0, partition: int = 0) -> SortShape:
    """A sort; without open blocks and partitions nothing has to fill or drain."""
    return SortShape(
        bytes=size, cores=cores, open_block_bytes=open_block, partition_bytes=partition
    )


def predicted(
    sort: SortShape, one: Measurement, cpu: Measurement, two: Measurement | None = None
) -> Prediction:
    """The prediction for one device, or for two."""
    disks = DiskMeasurements(pass_one=[one], pass_two=[two or one])
    return predict(sort, disks, [cpu], made_at="now")


def test_bound_by_the_disk_it_is_twice_the_bytes_over_the_rate() -> None:
    # 4 GB at 100 MB/s both ways, twice: the 2-IO limit, and nothing but it.
    done = predicted(shape(), disk(100), cores())
    assert done.seconds == pytest.approx(80)
    assert [phase.seconds for phase in done.phases] == pytest.approx([40, 40])
    assert {phase.limit for phase in done.phases} == {"disk: read and write at once"}
    assert limit_seconds(4 * GB, DiskMeasurements([disk(100)], [disk(100)])) == pytest.approx(80)


def test_each_pass_has_its_own_devices() -> None:
    done = predicted(shape(), disk(100), cores(), two=disk(50))
    assert [phase.seconds for phase in done.phases] == pytest.approx([40, 80])
    assert limit_seconds(4 * GB, DiskMeasurements([disk(100)], [disk(50)])) == pytest.approx(120)


def test_bound_by_the_cores_it_is_their_seconds_over_their_number() -> None:
    # 20 ns of work and 5 ns of moving for a byte on two cores: 4e9 * 25e-9 / 2 = 50 s, over 40 s
    # of the disk; in the second pass 10 ns and 5 ns: 30 s, under it.
    done = predicted(shape(), disk(100, cpu=5e-9), cores(partition=20e-9, sort=10e-9))
    assert [phase.seconds for phase in done.phases] == pytest.approx([50, 40])
    assert [phase.limit for phase in done.phases] == ["cpu", "disk: read and write at once"]
    first, second = (next(t for t in phase.terms if t.resource == "cpu") for phase in done.phases)
    assert (first.demand, first.capacity, first.seconds) == pytest.approx((100, 2, 50))
    assert (second.demand, second.capacity, second.seconds) == pytest.approx((60, 2, 30))
    twice = predicted(shape(cores=4), disk(100, cpu=5e-9), cores(partition=20e-9, sort=10e-9))
    assert [phase.seconds for phase in twice.phases] == pytest.approx([40, 40])


def test_what_fills_and_drains_moves_one_way_only() -> None:
    # Open blocks of 800 MB are half full on average. These 400 MB are read alone at 250 MB/s, as
    # many written alone at 400 MB/s, instead of both ways at 100 MB/s: 1.6 + 1 - 4 s.
    device = disk(100, ro=250, wo=400)
    done = predicted(shape(open_block=800 * MB), device, cores())
    assert done.phases[0].ramp_seconds == pytest.approx(-1.4)
    assert done.phases[0].seconds == pytest.approx(40 - 1.4)
    assert done.phases[1].ramp_seconds == pytest.approx(0)
    # A partition of 200 MB: 0.8 + 0.5 - 2 s, and nothing moves while it is sorted: 2 s at 10 ns.
    done = predicted(shape(partition=200 * MB), device, cores(sort=10e-9))
    assert done.phases[0].ramp_seconds == pytest.approx(0)
    assert done.phases[1].ramp_seconds == pytest.approx(-0.7 + 2)
    assert done.phases[1].seconds == pytest.approx(40 + 1.3)


def test_the_limit_is_what_took_longest_with_filling_and_draining() -> None:
    # The disk has 40 s, or 38.6 with what its open blocks spare; then 39 s of the cores are more.
    device, work = disk(100, ro=250, wo=400), cores(partition=19.5e-9)
    for open_block, limit, seconds in ((0, DISK, 40), (800 * MB, CPU_LIMIT, 39)):
        first = predicted(shape(open_block=open_block), device, work).phases[0]
        assert (first.limit, first.seconds) == (limit, pytest.approx(seconds))
    # And 41 s of the cores are less than the disk's 41.3 with a partition to fill and to sort.
    work = cores(sort=20.5e-9)
    for partition, limit in ((0, CPU_LIMIT), (400 * MB, DISK)):
        second = predicted(shape(partition=partition), device, work).phases[1]
        assert second.limit == limit


def test_what_is_smaller_than_a_block_moves_one_way_all_the_time() -> None:
    # 100 MB within blocks of 800 MB: 0.4 s of reading, then 0.25 s of writing.
    sort = shape(size=100 * MB, open_block=800 * MB, partition=800 * MB)
    done = predicted(sort, disk(100, ro=250, wo=400), cores())
    assert [phase.seconds for phase in done.phases] == pytest.approx([0.65, 0.65])


def test_the_middle_of_the_trials_counts() -> None:
    # One trial that a neighbour hit does not move what is predicted.
    assert predicted(shape(), disk([100, 99, 101, 20, 100]), cores()).seconds == pytest.approx(80)


def test_figures_cite_their_measurements() -> None:
    done = predicted(shape(), disk(100, name="a"), cores(), two=disk(50, name="b"))
    cited = [{tuple(term.measurements) for term in phase.terms} for phase in done.phases]
    assert cited == [{("a",), ("cpu", "a")}, {("b",), ("cpu", "b")}]


@pytest.mark.parametrize("missing", ["rw", "ro", "wo", "partition", "sort"])
def test_a_missing_trial_is_named(missing: str) -> None:
    device = measurement("d", {name: [MB] for name in {"rw", "ro", "wo"} - {missing}})
    cpu = measurement("c", {name: [MB] for name in {"partition", "sort"} - {missing}})
    with pytest.raises(LookupError, match=f"no measurement contains a trial {missing}"):
        predicted(shape(), device, cpu)


def test_a_trial_that_moved_nothing_counts_as_missing() -> None:
    device = measurement("d", {"rw": [0.0], "ro": [MB], "wo": [MB]})
    with pytest.raises(LookupError, match="trial rw with non-zero bytes"):
        throughput([device], "rw")
    with pytest.raises(LookupError, match="trial none"):
        cpu_per_byte([device], "none")


def rehearsal(sort: SortShape, one: float, two: float, other: float) -> Rehearsal:
    """A small sort that took so many seconds in its passes and outside of them."""
    phases = [
        replace(PHASE, name=name, seconds=seconds)
        for name, seconds in (("sample", other), ("pass_one", one), ("pass_two", two))
    ]
    record = RunRecord.read(ROOT / "tests" / "support" / "recorded" / "artifacts" / "run-1.json")
    seconds = one + two + other
    return Rehearsal(sort, replace(record, phases=phases, seconds=seconds))


def test_rehearsals_correct_each_pass_by_what_they_took_beyond_the_model() -> None:
    # The model says 4 s for each pass of 400 MB. They took 5 and 6, and half a second besides.
    small = shape(size=400 * MB)
    rehearsals = [rehearsal(small, 5.0, 6.0, 0.5)] * 2
    disks = DiskMeasurements(pass_one=[disk(100)], pass_two=[disk(100)])
    done = predict(shape(), disks, [cores()], rehearsals, made_at="now")
    assert [phase.rehearsal_factor for phase in done.phases] == pytest.approx([1.25, 1.5])
    assert [phase.seconds for phase in done.phases] == pytest.approx([50, 60])
    assert done.other_seconds == pytest.approx(0.5)
    assert done.seconds == pytest.approx(110.5)
    # As the model says, they change nothing.
    exact = [rehearsal(small, 4.0, 4.0, 0.0)] * 2
    done = predict(shape(), disks, [cores()], exact, made_at="now")
    assert done.seconds == pytest.approx(80)


RATES = st.floats(1, 10_000)
SPREAD = st.sampled_from([0.02, 0.05, 0.1, 0.2])
SORTS = st.builds(
    shape,
    size=st.integers(MB, 100 * GB),
    cores=st.integers(1, 64),
    open_block=st.integers(0, GB),
    partition=st.integers(0, 100 * MB),
)
CPU = st.floats(1e-11, 1e-7)


@given(sort=SORTS, rates=st.tuples(RATES, RATES, RATES), gain=st.floats(1, 10), cpu=CPU)
@settings(derandomize=True, max_examples=30)
def test_more_bandwidth_never_predicts_slower(
    sort: SortShape, rates: tuple[float, float, float], gain: float, cpu: float
) -> None:
    before = predicted(sort, disk(*rates), cores(cpu, cpu)).seconds
    for place in range(3):
        faster = list(rates)
        faster[place] *= gain
        after = predicted(sort, disk(*faster), cores(cpu, cpu)).seconds
        assert after <= before * (1 + 1e-9)
    assert predicted(sort, disk(*rates), cores(cpu * gain, cpu)).seconds >= before * (1 - 1e-9)


@given(sort=SORTS, centre=RATES, spread=SPREAD, cpu=CPU, trials=st.integers(3, 8))
@settings(derandomize=True, max_examples=60)
def test_the_interval_holds_the_prediction(
    sort: SortShape, centre: float, spread: float, cpu: float, trials: int
) -> None:
    done = predicted(sort, disk(_around(centre, spread, trials)), cores(cpu, cpu))
    for part in (done, *done.phases):
        assert 0 < part.low_seconds <= part.seconds <= part.high_seconds
    assert done.seconds == pytest.approx(sum(phase.seconds for phase in done.phases))


@given(centre=RATES, trials=st.sampled_from([3, 5, 7]))
@settings(derandomize=True, max_examples=10)
def test_the_interval_is_wider_when_trials_differ_more(centre: float, trials: int) -> None:
    done = [
        predicted(shape(), disk(_around(centre, spread, trials)), cores())
        for spread in (0.02, 0.05, 0.1, 0.2)
    ]
    for narrow, wide in itertools.pairwise(done):
        assert wide.low_seconds < narrow.low_seconds
        assert wide.high_seconds > narrow.high_seconds
        assert wide.seconds == pytest.approx(narrow.seconds)


@given(sort=SORTS, centre=RATES, spread=SPREAD, cpu=CPU)
@settings(derandomize=True, max_examples=20)
def test_the_same_measurements_predict_the_same(
    sort: SortShape, centre: float, spread: float, cpu: float
) -> None:
    first, second = (
        predicted(sort, disk(_around(centre, spread, 4)), cores(cpu, cpu)) for _ in range(2)
    )
    assert first == second


def test_nine_of_ten_next_trials_lie_in_the_interval_of_five() -> None:
    # From Student's t: the middle 90 % for one more draw after five of a normal population is
    # the mean +- s * sqrt(1 + 1/5) * 2.1318 (4 degrees of freedom).
    samples = tuple(100 * math.exp(step) for step in (-0.2, -0.1, 0.0, 0.1, 0.2))
    deviation = math.sqrt((0.04 + 0.01 + 0.01 + 0.04) / 4)
    reach = deviation * math.sqrt(1 + 1 / 5) * 2.1318
    low, high = Capacity(samples, ("m",)).interval(0.9)
    assert math.log(low / 100) == pytest.approx(-reach, rel=0.05)
    assert math.log(high / 100) == pytest.approx(reach, rel=0.05)


def test_one_trial_is_believed_less_than_two_that_agree() -> None:
    low_of_one, high_of_one = Capacity((100.0,), ("m",)).interval(0.9)
    low_of_three, high_of_three = Capacity((100.0, 100.0, 100.0), ("m",)).interval(0.9)
    assert low_of_one < low_of_three < 100 < high_of_three < high_of_one


def test_warnings_come_once_and_in_order() -> None:
    path = ROOT / "tests" / "support" / "recorded" / "artifacts" / "study-1.json"
    study = Study.read(path)
    calm = replace(study.environment, load_average=HIGH_LOAD * study.environment.cores)
    study = replace(study, environment=calm, measurements=[], run=None)
    assert warnings(study) == []
    doubtful = replace(calm, load_average=9.5, debug_build=True)
    good = {"engine": "io_uring", "registered": True, "direct": True, "why": None}
    modes = [
        *(good, good | {"registered": False, "why": "b"}, good | {"direct": False, "why": "a"}),
        *(good | {"direct": False, "why": "c"}, good | {"registered": False, "why": "b"}),
        good | {"engine": "threads", "registered": False, "why": "d"},
    ]
    measured = measurement("disk", {"rw": [MB]})
    trial = replace(measured.trials[0], phase=replace(PHASE, disk_modes=modes))
    measured = replace(measured, trials=[trial, trial])
    study = replace(study, environment=doubtful, measurements=[measured])
    debug, busy, *disks = warnings(study)
    assert "debug build" in debug and "load average 9.5 on 2 cores" in busy
    assert disks == [
        "Buffers were not registered with the kernel (b).",
        "Files went through the page cache because O_DIRECT was refused (a).",
        "Files went through the page cache because O_DIRECT was refused (c).",
        "Files were read and written by threads because io_uring was refused (d).",
    ]
    assert set(findings(study)).isdisjoint(warnings(study))


HOST = ("user", "system", "idle", "iowait", "steal")


def _host(**rose: float) -> dict[str, list[float]]:
    """The machine's counters at the begin, somewhere between and at the end of a sort."""
    return {
        f"cpu_{name}_seconds": [500.0, 500.0 + rose.get(name, 0.0) / 3, 500.0 + rose.get(name, 0.0)]
        for name in HOST
    }


@pytest.mark.parametrize(
    ("rose", "told"),
    [
        # The sort's own are 8 of 20; 0.9 more of others are let pass, 1.2 are not.
        ({"user": 7.0, "system": 1.0, "idle": 2.0, "iowait": 10.0}, []),
        ({"user": 7.9, "system": 1.0, "idle": 1.1, "iowait": 10.0}, []),
        (
            {"user": 7.0, "system": 2.2, "idle": 0.8, "iowait": 10.0},
            ["During the sort, other programs on this machine used 1.20 of 20.0 core seconds."],
        ),
        ({"user": 8.0, "idle": 11.1, "steal": 0.9}, []),
        (
            {"user": 8.0, "idle": 8.0, "steal": 4.0},
            ["During the sort, the hypervisor stole 4.00 of 20.0 core seconds."],
        ),
        # Ticks are coarse: what was used by all may seem less than what the sort used.
        ({"user": 7.9, "idle": 12.1}, []),
    ],
)
def test_a_busy_machine_gets_a_warning(rose: dict[str, float], told: list[str]) -> None:
    study = Study.read(ROOT / "tests" / "support" / "recorded" / "artifacts" / "study-1.json")
    calm = replace(study.environment, load_average=0.0)
    record = RunRecord.read(ROOT / "tests" / "support" / "recorded" / "artifacts" / "run-1.json")
    run = replace(record, cpu_seconds=8.0, phases=[])
    study = replace(study, environment=calm, measurements=[], run=run)
    assert warnings(study, _host(**rose)) == told
    assert warnings(study) == []


def test_watching_lasts_until_the_job_ends() -> None:
    with MachineSampler([]) as watch:
        began = time.process_time()
        while time.process_time() - began < 0.1:
            pass
    host = watch.host
    # A sample when it begins, one when it ends; all that passed is somewhere.
    assert len(host["seconds"]) >= 2
    used = sum(host[name][-1] - host[name][0] for name in CPU_USED)
    assert used > 0.0
    assert set(host) >= {*CPU_USED, *CPU_UNUSED, CPU_STOLEN}


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.4, "0.400 s"), (0.041, "0.0410 s"), (41, "41.0 s")]
)
def test_findings_have_digits_that_say_something(seconds: float, told: str) -> None:
    study = Study.read(ROOT / "tests" / "support" / "recorded" / "artifacts" / "study-1.json")
    assert study.run and study.limit and study.predicted
    study = replace(
        study,
        run=replace(study.run, seconds=seconds),
        predicted=replace(study.predicted, low_seconds=seconds * 1.01, high_seconds=seconds * 1.02),
    )
    first, second, *_ = findings(study)
    assert first.startswith(f"The sort took {told};")
    low, high = re.findall(r"interval of (\S+) – (\S+) s", first)[0]
    assert float(low) < float(high)
    assert "exceed 100 %" not in second
    above = replace(study, limit=replace(study.limit, efficiency=1.07))
    assert "reached 107 % " in findings(above)[1] and "exceed 100 %, since" in findings(above)[1]


def _around(centre: float, spread: float, count: int) -> list[float]:
    """Rates whose logarithms lie evenly around the centre's, an interval of four spreads wide."""
    steps = [4 * place / (count - 1) - 2 for place in range(count)]
    return [centre * math.exp(spread * step) for step in steps]
