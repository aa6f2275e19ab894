"""Reductions on a cluster.

::

    job_spec        the job                          driver       round by round, with lost nodes
    messages        what the driver sends            worker       a node's part
    inputs          the input of all nodes           chunk_ledger which node has which chunk
    assignment      chunks for nodes                 tree_merge   merging their objects
    job_dir         the driver's state               round_state  results in it
    run_record      the record of the run
"""
