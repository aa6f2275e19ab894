"""Model: from measurements to times; pure computation over records.

``seconds(phase) = max over resources of demand / capacity``; phases add up. Each file is one term:
``capacity`` turns trials into distributions, ``two_pass`` predicts a sort on one machine, ``jobs``
are rows of demands. ``profiles`` are the capacities of offers; ``slowest_node`` and
``token_bucket`` derive a cluster's capacity from them. ``run_comparison`` compares runs with plans,
``analysis`` computes what reports draw.
"""
