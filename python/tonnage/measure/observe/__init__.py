"""Observe a command, or running processes, by the kernel's counters (-> `Observation`)."""
