"""Tonnage's errors: wrong usage, a failed run, a cancelled job. The compiled core raises them, too.

Messages name settings in words. ``setting`` is the name of the wrong one, which the command shows
as its flag and the Python API as its parameter.
"""


class UsageError(Exception):
    """Arguments or input cannot be used; nothing was started (the command's exit code 2)."""

    def __init__(self, why: str = "", setting: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.setting = setting

    def __str__(self) -> str:
        return f"{self.setting}: {self.why}" if self.setting else self.why


class RunError(Exception):
    """A run failed (the command's exit code 1); where, if known: stage, file and byte offset."""

    def __init__(
        self,
        why: str = "",
        stage: str | None = None,
        file: object = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(why, stage, file, offset)
        self.why = why
        self.stage = stage
        self.file = file
        self.offset = offset

    def __str__(self) -> str:
        return self.why


class Cancelled(Exception):
    """A job was cancelled."""


for _public in (UsageError, RunError):
    _public.__module__ = "tonnage"
