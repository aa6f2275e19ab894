"""Clusters for the tests: nodes that are threads of the test, or Ray's own processes."""
