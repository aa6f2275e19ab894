"""``tonnage gensort``, ``valsort`` and ``split``."""
