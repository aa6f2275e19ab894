"""Simulate a sort on a cluster: real schedule and sizing, simulated I/O and clock.

::

    cluster.py              nodes and their capacities, drawn from the distributions of plans
    flow.py                 rates of flows that share nodes, by progressive filling
    events.py               events of a round of pass one, and of pass two
    sort.py                 the whole sort, driven by `run.two_pass.schedule`
    scalability_limits.py   limits of growing clusters, by the core's and the driver's arithmetic
    scenario.py             a sort with failures and slow nodes, and the limits of other sizes

It moves no data and needs no cluster.
"""
