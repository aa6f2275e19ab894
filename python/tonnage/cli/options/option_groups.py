"""Groups of options that several commands share: a dataclass, each field an option.

A command takes the group as one parameter. `flattened` gives the parser one parameter for each
field, and the command the group.
"""

import dataclasses
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints


def default(text: str) -> Any:
    """A default as it is typed: the option's parser reads it, and the help shows it."""
    return text


def flags_and_values(group: Any) -> dict[str, Any]:
    """The flags of a group's options, and their values; ``from_`` is that of ``--from``."""
    return {
        f"--{field.name.rstrip('_').replace('_', '-')}": getattr(group, field.name)
        for field in dataclasses.fields(group)
    }


def flattened(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each group of options replaced by its options."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        if not dataclasses.is_dataclass(hint):
            parameters.append(parameter.replace(annotation=hint))
            continue
        assert isinstance(hint, type)
        groups[name] = hint
        fields = get_type_hints(hint, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty
                if field.default is dataclasses.MISSING
                else field.default,
                annotation=fields[field.name],
            )
            for field in dataclasses.fields(hint)
        ]

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            names = [field.name for field in dataclasses.fields(group)]
            values[name] = group(**{field: values.pop(field) for field in names if field in values})
        command(**values)

    ordered = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    call.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in ordered}
    return call
