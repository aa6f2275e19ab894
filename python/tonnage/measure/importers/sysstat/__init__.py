"""sysstat: what sar, sadf and iostat sampled of a host, as text, CSV or JSON."""

from tonnage.measure.importers.sysstat.documents import matches
from tonnage.measure.importers.sysstat.metrics import read, read_text
from tonnage.measure.importers.sysstat.tables import matches as matches_text

__all__ = ["matches", "matches_text", "read", "read_text"]
