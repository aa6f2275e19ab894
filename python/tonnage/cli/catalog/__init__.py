"""``tonnage catalog``."""
