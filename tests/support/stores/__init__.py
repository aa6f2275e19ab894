"""Directories on a real disk, and an S3 server."""
