"""The `tonnage` command, its processes, and the calls that documents show."""
