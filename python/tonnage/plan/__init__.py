"""Plan: which offers, how many, laid out how, for a job of a size (-> `Plan`).

Pure computation over a job, catalogs and profiles: ``seconds(phase) = max over resources of
demand / capacity`` on the slowest of N nodes, phases add up, and money follows from the time.
``machines``, ``options`` and ``shapes`` say what each layout of each offer has to carry and
carries, ``search``
computes every number of nodes of all of them, ``draws`` what may come, ``planner`` chooses,
``front`` and ``survey`` say what else could be chosen or is worth measuring, ``explain`` shows the
arithmetic, ``handover`` writes what rents a candidate.
"""
