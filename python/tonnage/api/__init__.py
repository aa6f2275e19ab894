"""The Python API: jobs made of one's own functions."""
