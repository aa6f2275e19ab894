"""``tonnage study``."""
