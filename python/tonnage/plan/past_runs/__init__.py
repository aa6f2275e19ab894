"""Plan a job of which only past runs are known.

run_table.py      a table of runs of any jobs
run_machines.py   what the catalogs know of their machines
runs_of_job.py    a job's runs, and how they relate to those of its variants
known_runs.py     what they say of other clusters
clusters.py       which clusters to consider
planner.py        a question -> a plan
next_run.py       which run to make next
"""
