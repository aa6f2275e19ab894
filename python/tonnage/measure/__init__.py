"""Measure: what a machine carries. Each module does one kind of measurement -> `Measurement`."""
