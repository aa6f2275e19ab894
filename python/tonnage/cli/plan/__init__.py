"""``tonnage plan``, ``profile`` and ``explore``."""
