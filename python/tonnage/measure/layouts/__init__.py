"""Measure the same devices under several layouts: single file systems, JBOD, RAID 0."""
