"""The checklist of a release, and wheels for other platforms: what passes and what is refused."""

import importlib.machinery
import importlib.util
import re
import struct
import sys
from types import ModuleType

import pytest

from support.stores.disk import ROOT
from tonnage.cli.options.optional_dependencies import EXTRAS

pytestmark = pytest.mark.slow

PYPROJECT = '[project]\nversion = "1.2.0"\n'
CARGO = '[workspace.package]\nversion = "1.2.0"\n'
PACKAGE = '__version__ = "1.2.0"\n'
CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2030-01-01\n\n### Added\n\n- A thing.\n"
FILES = [
    "tonnage/__init__.py",
    "tonnage/py.typed",
    "tonnage/_core.pyi",
    "tonnage/_core.abi3.so",
    "tonnage-1.2.0.dist-info/METADATA",
    "tonnage-1.2.0.dist-info/licenses/LICENSE",
]
METADATA = """Metadata-Version: 2.4
Name: tonnage
Version: 1.2.0
Requires-Dist: numpy>=2.2,<3
Requires-Dist: boto3>=1.35 ; extra == 'aws'
Requires-Dist: ray>=2.52 ; extra == 'cluster'
Requires-Dist: plotly>=6 ; extra == 'report'
Provides-Extra: aws
Provides-Extra: cluster
Provides-Extra: report

Text.
"""
NAME = "tonnage-1.2.0-cp311-abi3-linux_x86_64.whl"


@pytest.fixture(scope="module")
def checklist() -> ModuleType:
    """Return the checklist as a module."""
    return loaded("release-check")


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    """Return the tool that builds wheels for other platforms, as a module."""
    return loaded("wheels")


def loaded(tool: str) -> ModuleType:
    """Load a tool as a module."""
    name = tool.replace("-", "_")
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / tool))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def test_one_version_is_returned(checklist: ModuleType) -> None:
    assert checklist.version_of(PYPROJECT, CARGO, PACKAGE, CHANGELOG) == "1.2.0"
    linked = CHANGELOG.replace("## 1.2.0", "## [1.2.0]")
    assert checklist.version_of(PYPROJECT, CARGO, PACKAGE, linked) == "1.2.0"


@pytest.mark.parametrize(
    ("place", "text", "reason"),
    [
        (
            0,
            PYPROJECT.replace("1.2.0", "1.2.1"),
            "pyproject.toml says 1.2.1; Cargo.toml says",
        ),
        (1, CARGO.replace("1.2.0", "1.3.0"), "Cargo.toml says 1.3.0"),
        (2, "", "tonnage.__version__ says none"),
        (3, CHANGELOG.replace("1.2.0", "1.2.01"), "has no section 1.2.0"),
        (3, CHANGELOG.replace("1.2.0", "1x2x0"), "has no section 1.2.0"),
        (3, CHANGELOG.replace("- A thing.", ""), "lists no changes of 1.2.0"),
    ],
)
def test_versions_that_differ_are_refused(
    checklist: ModuleType, place: int, text: str, reason: str
) -> None:
    texts = [PYPROJECT, CARGO, PACKAGE, CHANGELOG]
    texts[place] = text
    with pytest.raises(checklist.Unfit, match=re.escape(reason)):
        checklist.version_of(*texts)


def test_a_correct_wheel_passes(checklist: ModuleType) -> None:
    checklist.refuse_wheel(NAME, FILES, METADATA, "1.2.0")


@pytest.mark.parametrize("missing", [each for each in FILES if "METADATA" not in each])
def test_a_wheel_with_a_missing_file_is_refused(checklist: ModuleType, missing: str) -> None:
    with pytest.raises(checklist.Unfit, match=r"it does not contain|it has no license"):
        checklist.refuse_wheel(NAME, [each for each in FILES if each != missing], METADATA, "1.2.0")


@pytest.mark.parametrize(
    ("name", "more", "metadata", "version", "reason"),
    [
        (NAME, ["tests/test_x.py"], METADATA, "1.2.0", "it must not contain tests/test_x.py"),
        (
            NAME,
            ["tonnage/x.cpython-311.pyc"],
            METADATA,
            "1.2.0",
            "it must not contain tonnage/x.cpython",
        ),
        (NAME, [], METADATA, "1.3.0", "it is 1.2.0, not 1.3.0"),
        (NAME.replace("abi3", "cp311"), [], METADATA, "1.2.0", "not for every Python"),
        (NAME, [], METADATA.replace("Extra: aws", "Extra: s3"), "1.2.0", "there is no extra aws"),
        (NAME, [], METADATA.replace(" ; extra == 'report'", ""), "1.2.0", "plotly is needed"),
    ],
)
def test_a_wrong_wheel_is_refused(
    checklist: ModuleType, name: str, more: list[str], metadata: str, version: str, reason: str
) -> None:
    with pytest.raises(checklist.Unfit, match=re.escape(reason)):
        checklist.refuse_wheel(name, [*FILES, *more], metadata, version)


ELF = b"\x7fELF" + bytes(14) + struct.pack("<H", 183)
FOR_ARM = "tonnage-1.2.0-cp311-abi3-manylinux_2_17_aarch64.manylinux2014_aarch64.whl"


def test_a_wheel_for_its_platform_passes(wheels: ModuleType) -> None:
    wheels.refuse_wheel(FOR_ARM, ELF, *wheels.PLATFORMS["aarch64-unknown-linux-gnu"])


@pytest.mark.parametrize(
    ("name", "core", "target", "reason"),
    [
        (FOR_ARM.replace("abi3", "cp311"), ELF, "aarch64-unknown-linux-gnu", "not for every Pyth"),
        (FOR_ARM, ELF, "aarch64-unknown-linux-musl", "not for musllinux_1_2_aarch64"),
        (FOR_ARM.replace("2_17", "2_34"), ELF, "aarch64-unknown-linux-gnu", "not for manylinux"),
        (FOR_ARM, ELF[:18] + b">\0", "aarch64-unknown-linux-gnu", "for machine 62 of ELF, not 183"),
        (FOR_ARM, b"MZ" + bytes(30), "aarch64-unknown-linux-gnu", "is not an ELF file"),
    ],
)
def test_a_wheel_for_another_platform_is_refused(
    wheels: ModuleType, name: str, core: bytes, target: str, reason: str
) -> None:
    with pytest.raises(wheels.Unfit, match=re.escape(reason)):
        wheels.refuse_wheel(name, core, *wheels.PLATFORMS[target])


def test_sources_with_a_missing_file_are_refused(checklist: ModuleType) -> None:
    names = ["pyproject.toml", "Cargo.toml", "Cargo.lock", "LICENSE", "crates/py/Cargo.toml"]
    files = [f"tonnage-1.2.0/{each}" for each in names]
    checklist.refuse_sdist(files)
    with pytest.raises(checklist.Unfit, match=re.escape("it does not contain Cargo.lock")):
        checklist.refuse_sdist([each for each in files if "lock" not in each])


def test_this_tree_has_one_version(checklist: ModuleType) -> None:
    """The changelog may not have its section yet, which only a release needs."""
    texts = [
        (ROOT / name).read_text()
        for name in ("pyproject.toml", "Cargo.toml", "python/tonnage/__init__.py")
    ]
    version = checklist.version_of(*texts, _changelog_of(texts[2]))
    assert checklist._version() == version


def _changelog_of(package: str) -> str:
    """Return a changelog with a section for the package's version."""
    found = re.search(r'__version__ = "(.+)"', package)
    assert found is not None
    return f"## {found[1]}\n\n- A thing.\n"


def test_extras_are_those_of_the_commands(checklist: ModuleType) -> None:
    assert {extra: module for extra, (module, _) in EXTRAS.items()} == checklist.EXTRAS
