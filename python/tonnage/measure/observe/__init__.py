"""Watches a command, or processes that run already, by the kernel's counters (-> `Observation`).

`launch` starts the command so that nothing that it starts gets out of sight, `groups` makes a
control group for it where that may be, `processes` reads what a tree has used, `machine` what
devices, cores and network did beside. `watch` samples these into a `series` until the command ends.
`cuts` finds where demands change, `border` shares out what was counted there, `bottleneck` says
what limited a phase, and `phases` makes records of them. `as_job` makes them demands for each byte
of input, `observation` writes the records.
"""
