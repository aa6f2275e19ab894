"""The two-pass job on a cluster, which sorting and MapReduce share."""
