"""Measure what machines' disks, networks and cores deliver: one module per kind of measurement."""
