"""``tonnage launch`` and ``tonnage lab``."""
