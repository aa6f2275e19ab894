"""How a command reads its line: flags with several values, and old names of flags and commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand

from tonnage.base import core

RENAMED_FLAGS = {
    "--cap-usd": ("--budget",),
    "--chunk": ("--chunk-size",),
    "--chunk-bytes": ("--chunk-size",),
    "--endpoint": ("--endpoint-url",),
    "--fleet": ("--cluster",),
    "--format": ("--output-format", "--input-format"),
    "--instances": ("--nodes",),
    "--on-demand": ("--purchase",),
    "--out": ("--job-dir", "--output"),
    "--outstanding": ("--queue-depth",),
    "--patience": ("--timeout",),
    "--profiles": ("--profile",),
    "--rounds": ("--repetitions",),
    "--size": ("--data",),
    "--spot": ("--purchase",),
    "--take-out": ("--egress",),
    "--threads": ("--requests",),
}
"""Flags of earlier versions, and what they are called now: the first that the command has."""
RENAMED_COMMANDS = {"fleet": "cluster"}


class Command(TyperCommand):
    """A command whose flags may be followed by several values, and whose errors name its flags."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the line."""
        several = [
            flag
            for each in self.params
            if getattr(each, "multiple", False) and str(each.metavar).endswith("...")
            for flag in each.opts
        ]
        return super().parse_args(ctx, spread(args, several))

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except core.UsageError as error:
            if not error.setting:
                raise
            flag = flag_of(error.setting, self) or error.setting.replace("_", " ")
            raise core.UsageError(f"{flag}: {error.why}") from error


def flags_of(command: Any) -> list[str]:
    """The flags that a command's help shows."""
    return [
        flag
        for each in command.params
        if not getattr(each, "hidden", False)
        for flag in (*each.opts, *each.secondary_opts)
        if flag.startswith("-")
    ]


def flag_of(setting: str, command: Any) -> str | None:
    """The flag of a command that sets what the runtime calls ``setting``."""
    known = flags_of(command)
    for name in (setting, setting.removesuffix("_bytes"), setting.removesuffix("_seconds")):
        flag = f"--{name.replace('_', '-')}"
        for each in (flag, *RENAMED_FLAGS.get(flag, ())):
            if each in known:
                return each
    return None


def spread(arguments: list[str], several: Iterable[str]) -> list[str]:
    """The arguments with a flag before each value: ``--dir A B`` becomes ``--dir A --dir B``.

    That is for the flags in ``several``. All values up to the next option or ``--`` belong to one.
    """
    flags = set(several)
    result: list[str] = []
    flag, has_value = "", False
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[place:]]
        name, equals, _ = argument.partition("=")
        if argument.startswith("-"):
            flag, has_value = name if name in flags else "", bool(equals)
        elif flag and has_value:
            result.append(flag)
        else:
            has_value = True
        result.append(argument)
    return result
