"""The scenario of a plan's candidate: its job, machines, layout and number of nodes.

What the job takes of which resource, and what the machines have of it, is the plan's own arithmetic
(`plan.demand`). Which byte waits for which other is simulated.
"""

from tonnage.base.records.plan import Candidate, Plan
from tonnage.plan.candidates import Choice
from tonnage.plan.resources.engine_memory import MEMORY_SHARE, TWO_PASS, local_devices
from tonnage.simulate.cluster import SimulationError
from tonnage.simulate.division import Machine
from tonnage.simulate.scenario import PlannedSeconds, Scenario


def planned_scenario(
    made: Plan,
    candidate: Candidate,
    choice: Choice,
    *,
    memory_bytes: int | None = None,
    connections: int | None = None,
) -> Scenario:
    """The scenario of a candidate, whose machines and demands are ``choice``.

    ``memory_bytes`` of each node are the job's, or else the share that plans assume.

    Raises:
        SimulationError: The job has no two passes, or the machine's memory or cores are unknown.
    """
    if made.job.name not in TWO_PASS:
        raise SimulationError(f"{made.job.name} is not simulated; plan a sort or mapreduce")
    offer = choice.machine.offer
    memory_bytes = memory_bytes or (offer.memory_bytes or 0) // MEMORY_SHARE
    if not memory_bytes or not offer.vcpus:
        raise SimulationError(f"the memory or the number of cores of {offer.type} is unknown")
    volumes = None if candidate.own_disks else candidate.volumes
    machine = Machine.for_job(
        made.job,
        memory_bytes=memory_bytes,
        cores=int(offer.vcpus),
        devices=volumes.count if volumes else local_devices(offer),
        connections=connections,
    )
    return Scenario(
        nodes=candidate.nodes,
        data_bytes=made.bytes,
        machine=machine,
        job=made.job,
        demand=choice.group.demand,
        buckets=choice.machine.buckets,
        planned=PlannedSeconds.of(candidate),
    )
