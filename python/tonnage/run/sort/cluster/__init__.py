"""Sorts on a cluster: two kinds of two-pass jobs, of records and of tables."""
