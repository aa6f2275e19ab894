"""Measure what machines' disks, networks and cores deliver: one module per kind of measurement.

Functions called ``measure_...`` run the trials that are not in the directory ``out`` yet, and yield
each, then the measurement. ``command`` is recorded, for repeating it, and ``labels`` say what else
is known about the machine, like its region. ``on_progress`` is called with bytes, first those of
test data. `UsageError` means that ``out`` holds trials of other settings or that a place cannot
be used, `RunError` that a device, store or endpoint failed; completed trials are in ``out`` then,
also after Ctrl-C.
"""
