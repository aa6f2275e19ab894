"""Plan a job of which only past runs are known.

known_runs.py   the runs of a job and its variants -> times of other clusters
clusters.py     which clusters to consider
planner.py      a question -> a plan
next_run.py     which run to make next
"""
