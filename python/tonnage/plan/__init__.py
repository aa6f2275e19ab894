"""Plan a job of a given size: which offers, how many nodes, which storage layout (-> `Plan`).

Pure computation over a job, catalogs and profiles:

    seconds(phase) = max over resources of demand / capacity

on the slowest of N nodes; phases add up, and the cost follows from the time. `resources` knows what
machines have, `layouts` enumerates storage layouts, `demand` states what each phase moves, `search`
tries every number of nodes, `monte_carlo` gives intervals, `planner` ranks the candidates.
"""
