"""Times as records have them."""

import datetime


def utc_now() -> str:
    """The time now, in UTC, as ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def time_after(start: str, seconds: float) -> str:
    """The time so many seconds after another."""
    after = datetime.datetime.fromisoformat(start) + datetime.timedelta(seconds=seconds)
    return after.isoformat(timespec="seconds")
