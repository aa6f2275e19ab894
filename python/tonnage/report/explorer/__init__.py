"""Write an interactive plan page that plans in the browser as `tonnage plan` does.

`page_data` resolves offers, layouts and demands with the planner's own code and writes them as
tables; `random_draws` adds the draws of the sampled clusters. `page` puts both into one HTML file
with the scripts of ``assets``, which do the rest of the arithmetic: sizes, numbers of nodes,
prices, intervals.

Each script is named like the module of `tonnage.plan` that it mirrors, and keeps its order of
operations and precision (single in `search`, double elsewhere). `tests/report/explorer/` compares
the two: each field that the planner uses, each term of each candidate, and that no line of the
arithmetic on either side goes without comparison.
"""

from tonnage.report.explorer.page import render, write_explorer
from tonnage.report.explorer.page_data import PageData, page_data

__all__ = ["PageData", "page_data", "render", "write_explorer"]
