"""Names and words: no bare participles or pronouns as names, no words that are out in any text."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from house.words import ALLOWED, WORDS

from support.stores.disk import ROOT

BARE = {
    *("asked", "told", "found", "seen", "said", "kept", "came", "shown", "known", "given", "taken"),
    *("met", "heard", "parted", "chosen", "held", "whole", "beside", "lost", "gone", "done"),
    *("wanted", "tried", "followed", "gathered", "carried", "screened", "combined", "cut"),
    *("what", "who", "whose", "they", "own", "together", "more", "here", "there"),
    *("alone", "between", "named", "checked", "apart", "left", "used", "moved", "slowed"),
    *("reduced", "retrieved", "applied", "only", "over", "some", "copied", "half"),
    *("ended", "refused", "failed", "within", "among", "onward", "without", "across", "meeting"),
}
"""Names that mean nothing without their docstring."""
VAGUE = BARE | {"thing", "row", "law", "laws", "place", "site", "home", "look", "room", "shares"}
"""Names of classes that do not say of what they are."""
READ = (".py", ".rs", ".md", ".js", ".html", ".toml", ".sh")
ELSEWHERE = (
    "tools/house/words.py",
    "tests/support/recorded/",
    "docs/style.md",
    "LICENSE",
)
"""Files with recorded text, or that list the words themselves."""


def test_no_name_is_a_bare_participle_or_pronoun() -> None:
    bare = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file, line, name in (*_python_names(), *_rust_names())
        if name.strip("_").lower() in (VAGUE if name.strip("_")[:1].isupper() else BARE)
        # Rust names a crate's main type with the crate: `net::Settings`.
        or (name == "Settings" and file.suffix == ".py")
    ]
    assert bare == []


def test_no_module_is_a_bare_participle_or_pronoun() -> None:
    modules = (ROOT / "python" / "tonnage").rglob("*.py")
    assert [str(each) for each in modules if each.stem in BARE] == []


def test_words_that_are_out_stay_out() -> None:
    pattern = re.compile(rf"(?<![\w./-])({'|'.join(WORDS)})(?![\w-])", re.IGNORECASE)
    found = [
        f"{path}:{number}: {match[0]!r}: {_instead(match[0])}"
        for path in _tracked()
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if not any(text in line for text in ALLOWED)
        for match in pattern.finditer(line)
    ]
    assert found == []


def test_errors_outside_the_command_name_settings_in_words() -> None:
    """The Python API has parameters, not flags; flags of other programs follow their names."""
    flags = [
        f"{file.relative_to(ROOT)}:{text.lineno}: {text.value!r}"
        for file in sorted((ROOT / "python" / "tonnage").rglob("*.py"))
        if "cli" not in file.parts
        for raised in ast.walk(ast.parse(file.read_text()))
        if isinstance(raised, ast.Raise)
        for text in ast.walk(raised)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
        if re.search(r"(?<!\w)--[a-z]", text.value) and "start Ray" not in text.value
    ]
    assert flags == []


def _instead(text: str) -> str:
    return next(to for word, to in WORDS.items() if re.fullmatch(word, text, re.IGNORECASE))


def _python_names() -> Iterator[tuple[Path, int, str]]:
    """Classes, functions, and types named by an assignment."""
    for file in sorted((ROOT / "python" / "tonnage").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield file, node.lineno, node.name
                case ast.Assign(targets=[ast.Name(id=name)]) if re.match("_?[A-Z][a-z]", name):
                    yield file, node.lineno, name


def _rust_names() -> Iterator[tuple[Path, int, str]]:
    """Types, functions and modules, of tests too."""
    definition = re.compile(r"\b(?:struct|enum|trait|type|fn|mod)\s+(\w+)")
    for file in sorted((ROOT / "crates").rglob("*.rs")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if not line.lstrip().startswith("//"):
                yield from ((file, number, name) for name in definition.findall(line))


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout
    return [
        Path(name)
        for name in listed.split("\0")[:-1]
        if name.endswith(READ) and (ROOT / name).is_file()
        if not name.startswith(ELSEWHERE) and name != "CHANGELOG.md"
    ]
