"""Profiles: the capacities of offers, as distributions over their nodes and over time.

``build`` derives a profile from measurements and finished runs, ``repository`` loads and indexes
profiles; ``published`` holds those of published studies.
"""
