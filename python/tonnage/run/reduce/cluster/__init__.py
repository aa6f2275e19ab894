"""Reductions on a fleet.

::

    asked        what is asked
    site         a machine's part: steps, objects; `reducer`, its agent, is given chunks meanwhile
    found        the chunks of what all machines have, and who can read them
    dealing      chunks dealt to machines while they reduce
    merging      the objects of all, two by two; when it has failed often enough
    driver       round by round: deals, merges, loses machines, takes them in again
    home         what is on file, so that the same command goes on
    recording    what machines told, as the record

Who has which chunk, so that each counts once: `tonnage.run.reduce.cluster.chunk_ledger`.
"""
