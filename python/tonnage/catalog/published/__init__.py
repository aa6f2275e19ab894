"""What others published about machine types: documented figures, and measured speeds of cores.

Each table is a CSV file next to the module of the same name, which reads it; README.md has their
sources, dates and licences.
"""
