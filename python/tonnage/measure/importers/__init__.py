"""Read the results of other tools as metrics with one vocabulary; one file per tool."""
