"""The names of the programs, for who does not have PySpark."""

PROGRAMS = ("wordcount", "sort", "join", "kmeans", "pagerank", "aggregate")
