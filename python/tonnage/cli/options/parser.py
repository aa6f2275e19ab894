"""How a command reads its line and shows its help.

A flag whose value is shown with dots takes several values (``--dir A B``). An old name of a flag is
refused with its new one. Help shows required options in the usage line, and ends with examples.
"""

import inspect
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
    "--key": ("--key-pair",),
    "--objects": ("--from",),
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
FLAG_OF_SETTING = {
    "modes": "--mode",
    "operations": "--operation",
    "layouts": "--layout",
    "directory": "--dir",
    "file_bytes": "--file-size",
    "header": "--no-header",
    "object_bytes": "--object-size",
    "workers": "--processes",
    "every": "--every",
    "read": "--dir",
    "write": "--dir",
    "made_by": "--file-system",
    "rate_bits_per_second": "--rate",
    "explore": "--seconds",
    "blocking": "--engine",
    "batched": "--submission",
    "direct": "--buffered",
}
"""Settings of the runtime whose flag has another name, where the command has that flag."""
EXAMPLES = "\n\nExamples:\n"


class Command(TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the command's name in its usage line: all that is required, in order."""
        options = [each for each in self.params if each.param_type_name == "option"]
        arguments = [
            str(each.metavar) for each in self.params if each.param_type_name == "argument"
        ]
        return [
            *(each for each in arguments if "-- " not in each),
            *(f"{each.opts[0]} {each.metavar}" for each in options if each.required),
            "[OPTIONS]",
            *(each for each in arguments if "-- " in each),
        ]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        text, _, _ = inspect.cleandoc(self.help or "").partition(EXAMPLES)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if lines := examples(self):
            formatter.write_paragraph()
            formatter.write("Example:\n" if len(lines) == 1 else "Examples:\n")
            formatter.write("".join(f"  {line}\n" for line in lines))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        several = [
            flag
            for each in self.params
            if getattr(each, "multiple", False) and str(each.metavar).endswith("...")
            for flag in each.opts
        ]
        return super().parse_args(ctx, spread(args, several))

    def invoke(self, ctx: Any) -> Any:
        """Runs the command; an error names the flag of the wrong setting."""
        try:
            return super().invoke(ctx)
        except core.UsageError as error:
            if error.setting:
                name = flag_of(error.setting, self) or error.setting.replace("_", " ")
                error.why, error.setting = f"{name}: {error.why}", None
            raise


def examples(command: Any) -> list[str]:
    _, _, text = inspect.cleandoc(command.help or "").partition(EXAMPLES)
    return inspect.cleandoc(text).splitlines()


def flags_of(command: Any) -> list[str]:
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
    names = (setting, setting.removesuffix("_bytes"), setting.removesuffix("_seconds"))
    for name in names:
        flag = f"--{name.replace('_', '-')}"
        for each in (flag, *RENAMED_FLAGS.get(flag, ()), FLAG_OF_SETTING.get(name, flag)):
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
