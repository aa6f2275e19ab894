"""Model: from measurements to times, pure computation over artifacts.

``seconds(phase) = max over resources of demand / capacity``, plus what fills and drains the
pipeline; phases add up. ``capacity`` turns trials into distributions, ``two_pass`` is the sort.
"""
