"""How command lines are read: flags with several values, settings and their flags."""

import dataclasses
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from tonnage.cli.commands import app
from tonnage.cli.options.parser import RENAMED_FLAGS, flag_of, flags_of, spread
from tonnage.measure import disk, over_time
from tonnage.measure import object as store
from tonnage.measure.layouts.compare import LayoutSettings
from tonnage.measure.net.local import NetSettings
from tonnage.measure.random_io import suite
from tonnage.measure.stream.trial import StreamSettings

WORDS = st.sampled_from(["a", "b", "1GiB", "-", "--json", "--memory", "--dir", "--dir=a", "--"])


SEVERAL = ("--output", "--scratch", "--dir")


@given(st.lists(WORDS | st.sampled_from(SEVERAL)))
@settings(derandomize=True)
def test_spreading_only_adds_flags(words: list[str]) -> None:
    done = spread(words, SEVERAL)
    assert spread(done, SEVERAL) == done
    kept = iter(done)
    assert all(word in kept for word in words)  # All are there, in this order.
    assert set(done) <= set(words) | {word.partition("=")[0] for word in words}
    if "--" in words:
        assert done[done.index("--") :] == words[words.index("--") :]


@pytest.mark.parametrize(
    ("words", "done"),
    [
        ("study --dir a b --json", "study --dir a --dir b --json"),
        ("in --output a b --scratch c", "in --output a --output b --scratch c"),
        ("in --output=a b", "in --output=a --output b"),
        ("--memory 1 in", "--memory 1 in"),
        ("--output a -- b", "--output a -- b"),
    ],
)
def test_values_are_spread(words: str, done: str) -> None:
    assert spread(words.split(), SEVERAL) == done.split()


def command_of(*names: str) -> Any:
    """The command of this name."""
    command: Any = typer.main.get_command(app)
    for name in names:
        command = command.get_command(None, name)
    return command


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ops", suite.RandomIoSettings),
        ("stream", StreamSettings),
        ("over-time", over_time.OverTimeSettings),
        ("net", NetSettings),
        ("layouts", LayoutSettings),
        ("disk", disk.DiskSettings),
        ("object", store.ObjectSettings),
    ],
)
def test_each_setting_has_a_flag(name: str, kind: type) -> None:
    command = command_of("measure", name)
    arguments = {"devices", "bucket", "prefix"}
    fields = {field.name for field in dataclasses.fields(kind)} - arguments
    assert [field for field in sorted(fields) if not flag_of(field, command)] == []


def test_a_setting_without_a_flag_has_none() -> None:
    assert flag_of("colour", command_of("run", "sort")) is None


@pytest.mark.parametrize("names", [("run", "sort"), ("measure", "disk"), ("plan",), ("launch",)])
def test_no_command_has_an_old_name(names: tuple[str, ...]) -> None:
    old = set(RENAMED_FLAGS) - {"--size", "--key", "--objects"}  # A trial's, a sort's, a store's.
    assert old.isdisjoint(flags_of(command_of(*names)))
