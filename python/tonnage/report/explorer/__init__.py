"""Explore: a plan to turn over in a page, which plans again by itself, as `tonnage plan` does.

``world`` writes down what can be planned with, resolved by the planner's own `options`: of each
layout what a node has to carry for a byte of input, of each machine what it carries and costs;
``chances`` the dice of the imagined fleets. ``page`` puts both into one file of HTML with the
scripts of ``assets``, which do what is left: sizes, numbers of nodes, prices, what may come.

The scripts are the one other place where a plan is computed. They go through `tonnage.plan` line
by line, in the same order of operations and the same precision (`search` in single, the rest in
double), and each says whose counterpart it is; `tests/report/explorer/test_explorer.py` asks both the same.
"""

from tonnage.report.explorer.page import render, write_explorer
from tonnage.report.explorer.page_data import PageData, page_data

__all__ = ["PageData", "page_data", "render", "write_explorer"]
