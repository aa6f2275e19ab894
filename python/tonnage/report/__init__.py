"""Render records as self-contained HTML pages that work offline.

Pages compute nothing: every number is in the record. Only counters are drawn as rates.
"""

from tonnage.report.study.page import write_report

__all__ = ["write_report"]
