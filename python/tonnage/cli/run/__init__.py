"""``tonnage run``."""
