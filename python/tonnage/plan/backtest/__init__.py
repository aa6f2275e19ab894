"""Hold the planner to runs of others whose time and dollars are known.

published_sorts.py    published sorts, and what is known of their set-ups
predict.py            plan a published sort, and compare
training_sets.py      which of the runs are known
runs.py               predict the others, and compare
chosen_runs.py        choose which run to know next
logged_runs.py        plan runs from event logs of others of the same job
summary.py            errors, intervals and regret, and those of simpler laws
"""
