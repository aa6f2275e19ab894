"""Sort fixed-length records, on one machine and on a cluster."""
