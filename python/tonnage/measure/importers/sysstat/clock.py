"""Dates and times as sysstat prints them, which depends on the locale.

A date is three numbers: the one with four digits is the year. Slashes have the month first, unless
that is more than 12; dots have the day first. A time has 24 hours, or 12 and AM or PM. Times have
no time zone; they are seconds since 1970 of a clock that shows them.
"""

import re
from calendar import timegm
from datetime import datetime

from tonnage.measure.importers.metric import UnreadableFile

HALF_DAY, DAY = 43_200, 86_400
_TIME = re.compile(
    r"([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
    "|([0-9]{1,2})\N{CJK UNIFIED IDEOGRAPH-6642}([0-9]{2})\N{CJK UNIFIED IDEOGRAPH-5206}"
    "([0-9]{2})\N{CJK UNIFIED IDEOGRAPH-79D2}"
)
_HALF = re.compile(r"([AaPp])\.?[Mm]\.?")
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)([+-]\d\d):?(\d\d)|(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z?"
)
_CENTURY, _FIRST_YEAR = 2000, 1970


def day_seconds(text: str, where: str) -> float:
    """The start of a day, like ``11/20/26``, ``20.11.2026`` or ``2026-11-20``."""
    numbers = re.findall(r"[0-9]+", text)
    if len(numbers) == 3 and all(len(number) <= 4 for number in numbers):
        if len(numbers[0]) == 4:
            year, month, day = numbers
        elif "." in text or ("/" in text and int(numbers[0]) > 12):
            day, month, year = numbers
        elif "/" in text:
            month, day, year = numbers
        else:
            year, month, day = numbers
        try:
            full = _full_year(year)
            return float(timegm(datetime(full, int(month), int(day)).timetuple()))
        except ValueError:
            pass
    raise UnreadableFile("a date in numbers (set LC_ALL=C when sysstat runs)", where)


def take_time(tokens: list[str]) -> tuple[float, list[str]] | None:
    """The seconds of the day at the start of a line, and the rest of it; None if there are none."""
    match = _TIME.fullmatch(tokens[0]) if tokens else None
    if not match:
        return None
    hours, minutes, seconds = (int(part) for part in match.groups() if part)
    rest = tokens[1:]
    if rest and (half := _HALF.fullmatch(rest[0])):
        hours = hours % 12 + (12 if half[1] in "Pp" else 0)
        rest = rest[1:]
    return float(hours * 3600 + minutes * 60 + seconds), rest


def moment_seconds(text: str, where: str) -> float:
    """A date with a time, like ``11/20/26 10:01:51 PM`` or ``2026-11-20T22:01:51+0100``."""
    if iso := _ISO.fullmatch(text.strip()):
        day, time = iso[1] or iso[5], iso[2] or iso[6]
        tokens = [day, time]
    else:
        tokens = text.split()
    taken = take_time(tokens[1:])
    if taken is None or taken[1] not in ([], ["UTC"]):
        raise UnreadableFile("a date and a time", where)
    return day_seconds(tokens[0], where) + taken[0]


class DayClock:
    """The times of one table of a day's file, of which only the first has its date."""

    def __init__(self, day: float) -> None:
        self._day = day
        self._last: float | None = None

    def seconds(self, time_of_day: float, where: str) -> float:
        now = self._day + time_of_day
        if self._last is not None and now < self._last - HALF_DAY:
            self._day += DAY
            now += DAY
        if self._last is not None and now < self._last:
            raise UnreadableFile("times that do not go back (sadf -d has UTC)", where)
        self._last = now
        return now


def _full_year(year: str) -> int:
    full = int(year) if len(year) == 4 else _CENTURY + int(year)
    if full < _FIRST_YEAR:
        raise ValueError(year)
    return full
