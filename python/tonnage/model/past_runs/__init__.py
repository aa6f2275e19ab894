"""Predict a job that is known by some of its runs: on other machines, and other numbers of them.

    clusters.py    what a cluster has of each resource, as arrays over clusters
    law.py         how long a job takes on a cluster, by its demands: the physics
    prior.py       which demands jobs have, before any run is known
    misfit.py      how far jobs are from the law, and how alike that is on similar clusters
    posterior.py   runs -> likely demands -> times of other clusters, with intervals
    choice.py       which cluster to choose
    next_run.py     which run to make next
    baselines.py   what simpler laws say, to compare with

Follows Ernest (Venkataraman et al., NSDI 2016) in what it asks, a law with a part that shrinks with
machines and parts that do not; but its parts are resources, so that it holds for other types, and
it has a prior, so that one run gives an interval and each further run narrows it.
"""
