"""Compare runs with their plan and with the limit of their hardware.

``two_pass`` compares a sort or a MapReduce, ``reduction`` a reduction, and ``plan_accuracy`` sums
up how close a run was to its plan.
"""
