"""Watches a command, or processes that run already, by the kernel's counters (-> `Observation`).

`launch` starts the command so that nothing that it starts gets out of sight, `groups` makes a
control group for it where that may be, `processes` reads what a tree has used, `machine` what
devices, cores and network did beside. `watch` samples these into a `series` until the command ends.
`phases` cuts the series where demands change, `bottleneck` says what each phase was limited by,
`as_job` makes them demands for each byte of input, `observation` writes the records.
"""
