"""Read the event logs of Apache Spark, 3.0 and later.

    log_files.py     the files of a log, decompressed and in order, line by line
    codecs.py        the compressed streams that Spark writes
    events.py        the events that matter, and the fields of them that do
    read.py          lines -> events
    application.py   events -> an application: its stages, executors and settings

A log is read once, as a stream; what is kept of it grows with stages, and by four bytes a task.
"""
