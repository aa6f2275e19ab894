"""Simulate a sort or a MapReduce on a cluster: real schedule and sizing, simulated I/O and clock.

::

    cluster.py              what a byte takes of each node, by the demands and capacities of plans
    flow.py                 rates of flows that share nodes, by progressive filling
    events.py               events of a round of pass one, of pass two and of copying
    division.py             partitions, blocks and memory of a sort and of a MapReduce
    two_pass.py             the whole job, driven by `run.two_pass.schedule`
    scalability_limits.py   limits of growing clusters, by the core's and the driver's arithmetic
    scenario.py             a job with failures and slow nodes, and the limits of other sizes

It moves no data and needs no cluster.
"""
