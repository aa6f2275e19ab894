"""Analysis of measurements: everything that a report draws, computed, and nothing drawn.

``analyse`` puts it together; each other file is one part of it. Samples of several instances are
never pooled, and a statistic that too few values cannot support is not estimable.
"""
