"""Statistics of measurements: pure functions of numbers, which know nothing of what was measured.

``fleet`` puts the others together for many instances over time; ``repetitions`` says when to stop
repeating. What each file computes, from where, and its limits: docs/concepts/statistics.md.

Values are of any unit, and what comes back has the same; shares are of one, not of a hundred. Every
function that draws takes a ``seed``, and the same input with the same seed gives the same output.
"""
