"""The documentation's site: it builds, is complete, and loads nothing from elsewhere."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

from support.browser.chromium import Browser
from support.stores.disk import ROOT
from tonnage.cli.commands import COMMANDS, Family

pytestmark = pytest.mark.slow

TOOL = ROOT / "tools" / "site"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make site` does."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, TOOL, out], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """Import the tool's own modules, which are not a package."""
    monkeypatch.syspath_prepend(TOOL)
    names = ("pages", "links", "reference")
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name)


def test_every_document_is_a_page(built: Path) -> None:
    for part in ("guide", "concepts", "reproduction", "decisions"):
        for document in (ROOT / "docs" / part).glob("*.md"):
            name = "index" if document.name == "README.md" else document.stem
            assert (built / "docs" / part / f"{name}.html").exists(), document
    assert (built / "index.html").exists()


def test_every_command_and_public_name_is_in_the_reference(built: Path) -> None:
    reference = built / "docs" / "reference"
    for name, entry in COMMANDS.items():
        page = (reference / f"tonnage-{name}.html").read_text()
        inner = entry.commands if isinstance(entry, Family) else ()
        below = [f"{name} {each}" for each in inner]
        below += [name, *(f"{name} {each}" for each in getattr(entry, "questions", ()))]
        for command in below:
            heading = f"tonnage-{command.replace(' ', '-')}"
            assert f'id="{heading}"' in page, command
        assert "<code>--" in page or name == "completion"  # the only one without options
    for module in ("tonnage", "tonnage.api.aggregates", "tonnage.api.testing"):
        page = (reference / f"api-{module}.html").read_text()
        public = getattr(importlib.import_module(module), "__all__", ["check_reduction"])
        assert [each for each in public if f'id="{each.lower()}"' not in page] == []


def test_links_of_the_built_site_hold(built: Path, modules: dict[str, ModuleType]) -> None:
    assert modules["links"].broken(built) == []
    assert not [path for path in built.rglob("*") if path.suffix in {".js", ".md"}]


def test_a_broken_link_is_found(tmp_path: Path, modules: dict[str, ModuleType]) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="there">A</h1><a href="b.html">x</a><a href="#there">x</a><a href="#not">x</a>'
        '<a href="../outside.html">x</a><a href="https://example.org/">x</a>'
        '<img src="https://example.org/x.png"><link href="missing.css"><a href="c.html#no">x</a>'
    )
    (tmp_path / "c.html").write_text("<p>C</p>")
    (tmp_path.parent / "outside.html").write_text("")
    assert modules["links"].broken(tmp_path) == [
        "a.html: b.html leads nowhere",
        "a.html: #not: there is no such heading",
        "a.html: ../outside.html leads nowhere",
        "a.html: c.html#no: there is no such heading",
        "a.html loads https://example.org/x.png from elsewhere",
        "a.html: missing.css leads nowhere",
    ]


def test_a_broken_link_is_left_for_the_check(
    tmp_path: Path, modules: dict[str, ModuleType]
) -> None:
    pages, root = modules["pages"], tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "x.py").write_text("x = 1\n")
    text = "# A `b`!\n\n[gone](gone.py), [code](src/x.py), [all](src)\n"
    site = pages.Site(root, [])
    site.build([pages.Document(PurePosixPath("README.md"), text)])
    site.write(tmp_path / "out")
    assert modules["links"].broken(tmp_path / "out") == ["index.html: gone.py leads nowhere"]
    assert '<h1 id="a-b">' in site.pages[PurePosixPath("index.html")]
    assert {str(place) for place in site.pages} == {
        "index.html",
        "src/index.html",
        "src/x.py.html",
    }


def test_headings_are_named_as_github_does(modules: dict[str, ModuleType]) -> None:
    assert modules["pages"].slug("Against the plan") == "against-the-plan"
    assert modules["pages"].slug("What `--cluster` is, too?") == "what---cluster-is-too"


def test_a_directory_that_is_not_a_site_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True)
    assert done.returncode != 0 and "is not a site" in done.stderr
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1280])
def test_pages_open_from_a_disk(built: Path, browser: Browser, width: int) -> None:
    for name in ("index", "docs/concepts/planning", "docs/reference/tonnage-run"):
        with browser.open(built / f"{name}.html", width, 900) as page:
            page.inner.set_default_timeout(120_000)
            assert page.problems == [] and page.serious == []
            # Nothing is wider than the window: tables and code have their own scroll bars.
            wide = page.inner.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, name
            assert page.inner.locator("nav a[aria-current=page]").count() == 1
            page.inner.locator("nav a.home").click()
            page.inner.wait_for_url("**/index.html")
            assert page.problems == [] and page.inner.locator("h1").inner_text() == "Tonnage"
