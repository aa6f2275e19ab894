"""The report: a study as one page of HTML that opens anywhere, offline.

It computes nothing. Every figure it states is in the record; counters are differenced into rates
only to be drawn.
"""

from tonnage.report.study.page import write_report

__all__ = ["write_report"]
