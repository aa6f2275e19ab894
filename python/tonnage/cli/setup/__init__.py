"""``tonnage doctor`` and ``tonnage completion``."""
