"""Statistics of measurements: pure functions of numbers, which know nothing of what was measured.

``cluster_time_series`` combines the others for many instances over time; ``sample_size`` decides
when to stop repeating. Methods, sources and limits: docs/concepts/statistics.md.

Results have the unit of the values; shares are of one, not of a hundred. Every function that draws
takes a ``seed``: the same input with the same seed gives the same output.
"""
