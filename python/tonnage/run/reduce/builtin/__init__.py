"""The reductions that come with Tonnage, one file each."""
