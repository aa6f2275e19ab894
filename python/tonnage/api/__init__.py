"""The Python API: jobs of a user's functions."""
