"""Runs that were observed, or that logs report, on the terminal."""
