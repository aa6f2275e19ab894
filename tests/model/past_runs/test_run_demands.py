"""What a run took, added up over its phases, and compared as on the reference cluster."""

from tonnage.base.records.job import Demand, Job, JobPhase
from tonnage.model.past_runs.clusters import REFERENCE
from tonnage.model.past_runs.run_demands import demand_shares, run_demands

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
STORE = Demand(resource="object get", per_byte=1.0, source="a log")


def test_demands_of_all_phases_are_added_up() -> None:
    found = run_demands(job(CORES, DISK, STORE, core_speed=1.5))
    assert found is not None
    assert (round(found.core_seconds), found.disk_bytes, found.network_bytes) == (6000, 3 * GB, GB)
    assert found.serial_seconds == 40.0


def test_without_a_run_or_its_cores_nothing_is_told() -> None:
    assert run_demands(job(DISK)) is None
    assert (
        run_demands(Job(name="any", phases=[JobPhase(name="a", demands=[CORES])], room=[])) is None
    )


def test_shares_are_those_of_the_reference_cluster() -> None:
    nodes, cores = float(REFERENCE.nodes[0]), float(REFERENCE.cores[0])
    found = run_demands(job(CORES, DISK, STORE))
    assert found is not None
    shares = demand_shares(found)
    taken = 4000.0 / (nodes * cores)
    assert shares.serial == 40.0 / taken
    assert shares.disk == 3 * GB / (nodes * 93.75e6) / taken
