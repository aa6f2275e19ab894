"""Providers: how each one's tables become offers, and how AWS is asked for a new catalog."""
