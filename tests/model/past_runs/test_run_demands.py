"""What a run took, added up over its phases, and compared as on the reference cluster."""

import pytest

from tonnage.base.records.job import Demand, Job, JobPhase
from tonnage.base.records.past_run import Outcome, PastRun
from tonnage.model.past_runs.clusters import REFERENCE
from tonnage.model.past_runs.run_demands import demand_shares, run_demands, run_that_took

GB = 10**9


def job(*demands: Demand, **given: object) -> Job:
    phases = [
        JobPhase(name="driver", demands=[], fixed_seconds=30.0),
        JobPhase(name="warm-up", demands=[], warm_up_seconds=10.0),
        JobPhase(name="first", demands=list(demands)),
        JobPhase(name="last", demands=list(demands[:1])),
    ]
    return Job(
        name="seen",
        phases=phases,
        room=[],
        seen_bytes=GB,
        **given,  # type: ignore[arg-type]
    )


CORES = Demand(resource="cpu", per_byte=2e-6, source="a log")
DISK = Demand(resource="local write", per_byte=3.0, source="a log")
SENT = Demand(resource="network", per_byte=2.0, source="a log", shuffled=True)
STORE = Demand(resource="object get", per_byte=1.0, source="a log")
SPARK: dict[str, object] = {"engine": "spark", "seconds": 100.0}


def run(seconds: float = 110.0, outcome: Outcome = "ok", nodes: int = 4) -> PastRun:
    return PastRun(
        job="nightly", machine_type="m4.xlarge", nodes=nodes, seconds=seconds, outcome=outcome
    )


def test_demands_of_all_phases_are_added_up() -> None:
    found = run_demands(job(CORES, DISK, SENT, STORE, settings=SPARK), run())
    assert found is not None and round(found.core_seconds) == 4000
    assert (found.disk_bytes, found.network_bytes, found.object_bytes) == (3 * GB, 2 * GB, GB)
    assert (found.serial_seconds, found.machine_type) == (40.0, "m4.xlarge")


def test_what_a_log_does_not_have_is_none_and_what_was_not_sampled_is_unknown() -> None:
    logged, sampled = (run_demands(job(CORES, settings=its), run()) for its in (SPARK, {}))
    assert logged is not None and sampled is not None
    assert (logged.disk_bytes, logged.network_bytes, logged.serial_seconds) == (0, 0, 40.0)
    assert sampled.disk_bytes is sampled.network_bytes is sampled.serial_seconds is None
    assert run_demands(job(DISK), run()) is None


def test_the_run_is_the_one_that_took_as_long() -> None:
    runs = [run(200.0), run(115.0), run(104.0, nodes=8), run(100.0, "failed")]
    assert run_that_took(100.0, runs) is runs[2]
    assert run_that_took(100.0, [run(130.0), run(79.0)]) is None


def test_shares_are_those_of_the_reference_cluster() -> None:
    nodes, cores = float(REFERENCE.nodes[0]), float(REFERENCE.cores[0])
    found = run_demands(job(CORES, DISK, SENT, STORE, settings=SPARK), run())
    assert found is not None
    taken = 4000.0 / (nodes * cores)
    shares = demand_shares(found, 1.0)
    assert shares.serial == pytest.approx(40.0 / taken)
    assert shares.disk == pytest.approx(3 * GB / (nodes * 93.75e6) / taken)
    assert shares.network == pytest.approx(2 * GB / (nodes * 187.5e6) / taken)
    assert shares.store == pytest.approx(GB / (nodes * 187.5e6) / taken)
    # Cores that are twice as fast: the reference takes twice as long, also for what is serial.
    fast = demand_shares(found, 2.0)
    assert fast.disk == pytest.approx((shares.disk or 0) / 2)
    assert fast.serial == pytest.approx(shares.serial)
