"""Run: the jobs. Each module runs one kind of job -> `RunRecord`, or what the job found."""
