"""Hold the planner to runs of others whose time and dollars are known."""
