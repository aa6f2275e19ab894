"""Model: from measurements to times, pure computation over artifacts.

``seconds(phase) = max over resources of demand / capacity``, where the disk's time includes what
fills and drains the pipeline; phases add up. ``capacity`` turns trials into distributions,
``two_pass`` is the sort, ``findings`` are what came of it in words. ``jobs`` are rows of demands;
``profiling`` turns measurements of offers into laws, ``profiles`` has those of published studies,
``known`` puts them together; ``slowest``, ``scaling`` and ``bucket`` say what of a law a fleet has.
"""
