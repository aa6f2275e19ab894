"""Measure sequential reads and writes of files, as IOR does."""
