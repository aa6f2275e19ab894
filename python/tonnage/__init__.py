"""Tonnage: how much a machine, or a fleet of them, can carry, and at what price.

The loop is in the packages: ``measure`` gives a `Measurement`, ``model`` turns measurements into a
`Prediction`, ``run`` does the job and gives a `RunRecord`, ``report`` shows one beside the other.
``artifacts`` holds those records; ``study`` is the whole loop on one machine.
"""

__version__ = "0.1.0"
