"""``tonnage measure``, ``observe`` and ``import``."""
