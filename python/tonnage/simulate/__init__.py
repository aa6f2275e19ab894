"""A sort on a fleet that is not there: real schedule and division, simulated I/O and clock.

::

    fleet.py    the nodes, and what each carries: drawn from the laws that plans have
    flow.py     rates of flows that share nodes, by progressive filling
    clock.py    events of a round of pass one, and of pass two
    sort.py     the whole sort: asks `run.schedule` what is next, tells it what came
    limits.py   what breaks first as fleets grow, by the core's and the driver's own arithmetic

Nothing is moved and nobody is asked: it runs anywhere.
"""
