"""Read the results of other tools as metrics with one vocabulary; one file per tool.

Each has ``matches`` (whether a text or a JSON document is the tool's) and ``read`` (its metrics).
"""
