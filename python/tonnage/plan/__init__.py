"""Plan: which offers, how many, laid out how, for a job of a size (-> `Plan`).

Pure computation over a job, catalogs and profiles: ``seconds(phase) = max over resources of
demand / capacity`` on the slowest of N nodes, phases add up, and money follows from the time.
``layouts`` says what an offer carries laid out so, ``table`` computes every number of nodes of all
of them at once, ``planner`` chooses, ``survey`` says what is worth measuring, ``explain`` shows the
arithmetic.
"""
