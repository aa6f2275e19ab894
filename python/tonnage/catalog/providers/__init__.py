"""One file for each provider's tables and APIs."""
