"""The two ways in which anything of Tonnage fails, and the one in which it is stopped.

The compiled core raises these, too. A message names settings in words; ``setting`` names the one
that is wrong, and whoever asked says it in their own terms: the command as its flag, the Python API
as its parameter.
"""

from __future__ import annotations


class UsageError(Exception):
    """Arguments or input cannot be used; nothing was started (the command's exit code 2)."""

    def __init__(self, why: str = "", *, setting: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.setting = setting

    def __str__(self) -> str:
        return f"{self.setting}: {self.why}" if self.setting else self.why


class RunError(Exception):
    """What ran has failed (the command's exit code 1).

    Where it failed, if known: the stage, the file and the offset in it in bytes.
    """

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
