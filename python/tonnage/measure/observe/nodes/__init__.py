"""Nodes of one run, each observed whole by its system's counters, and cut into phases together."""
