"""The same measurement on every node of a cluster."""
