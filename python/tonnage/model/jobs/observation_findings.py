"""What to change first about an observed run: the resources that limited its phases.

If the resource that limited a phase were infinitely fast, the phase would still last as long as it
used the next one: it could save at most its time x (1 - share of the next). A machine's disks are
one resource. Faster cores speed up all threads, and division of one thread's work uses all cores.
"""

from collections.abc import Sequence

from tonnage.base import formatting
from tonnage.base.records.finding import Finding
from tonnage.base.records.observation import Observation, ObservedPhase
from tonnage.base.records.observation_analysis import ObservationAnalysis

MOST = 5
LEAST_SHARE = 0.02
"""Of the run's time; what could save less is not worth a change."""
NOT_USED = "waits for a core"
"""A share that no faster resource of the phase's own would lower."""
WAITS = "none: waits"
CHANGES = {
    "cpu": "Use more or faster cores; profile what it computes.",
    "one core": "Divide its work among threads or processes, or use a machine with faster cores: "
    "more of them change nothing.",
    "network": "Use a machine with a faster network; send less, or compressed.",
    "disk: read": "Use faster disks, or several; keep more of the input in memory, or compressed.",
    "disk: write": "Use faster disks, or several; write less, or compressed.",
    "disk: read and write at once": "Use faster disks, or put input and output on different ones.",
    WAITS: "Find out what it waits for: one resource after another (then overlap them, with more "
    "threads or requests at once), locks, or other machines.",
}
FORMULA = "sum over these phases of seconds x (1 - share of the resource used next)"


def analyse_observation(observation: Observation) -> ObservationAnalysis:
    return ObservationAnalysis(observation=observation, findings=observation_findings(observation))


def observation_findings(observation: Observation) -> list[Finding]:
    """A finding for each bottleneck, the one that could save most first; at most five."""
    by_bottleneck: dict[str, list[ObservedPhase]] = {}
    for phase in observation.phases:
        by_bottleneck.setdefault(phase.bottleneck, []).append(phase)
    findings = [_finding(name, phases) for name, phases in by_bottleneck.items()]
    worth = [each for each in findings if each.seconds > LEAST_SHARE * observation.seconds]
    return sorted(worth, key=lambda each: -each.seconds)[:MOST]


def _finding(bottleneck: str, phases: Sequence[ObservedPhase]) -> Finding:
    seconds = sum(each.seconds for each in phases)
    longest = max(phases, key=lambda each: each.seconds)
    is_waiting = bottleneck == WAITS
    fact = (
        "No resource was used for half of the time"
        if is_waiting
        else f"{formatting.sentence(formatting.resource(bottleneck))[:-1]} limited"
    )
    of = formatting.listing(formatting.phase(each.name) for each in phases)
    during = "in" if is_waiting else ""
    together = " together" if len(phases) > 1 else ""
    words = " ".join(filter(None, [fact, during, of]))
    return Finding(
        name="Waits" if is_waiting else formatting.sentence(formatting.resource(bottleneck))[:-1],
        fact=f"{words}, {formatting.duration(seconds)}{together}. In {longest.name}: "
        f"{longest.why}.",
        change=CHANGES.get(bottleneck, "Use more or a faster one of this resource."),
        settings=[],
        core_seconds=None,
        seconds=sum(each.seconds * (1 - _next_share(each)) for each in phases),
        formula=FORMULA,
    )


def _next_share(phase: ObservedPhase) -> float:
    """How far it used the resource that would limit it next."""
    sped_up = {"cpu": {"cpu", "one core"}, WAITS: set()}.get(phase.bottleneck, {phase.bottleneck})
    shares = [
        share
        for name, share in phase.shares.items()
        if name not in sped_up | {NOT_USED}
        and not (phase.bottleneck.startswith("disk") and _is_disk(name))
    ]
    return min(max(shares, default=0.0), 1.0)


def _is_disk(name: str) -> bool:
    return name not in ("cpu", "one core", "network")
