"""The project's documents as pages of HTML.

A page has the place of its document: `docs/concepts/cluster.md` becomes
`docs/concepts/cluster.html`, a `README.md` its directory's `index.html`. Link targets become pages
too: a directory becomes a list of its files, a source file a page that shows it; images are copied.
So every link stays within the site, which opens from a disk as well as from a server. Identifiers
of headings are GitHub's, because the documents link to each other by those.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import jinja2
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound

SCROLLING = ("pre", "table")
"""Elements that may be wider than the window and scroll; the keyboard must reach them."""
IMAGES = (".svg", ".png", ".jpg")
HERE = Path(__file__).parent
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)


@dataclass(frozen=True)
class Document:
    """One document, existing or generated.

    Attributes:
        path: Its path in the project.
        text: Its Markdown.
    """

    path: PurePosixPath
    text: str

    @property
    def title(self) -> str:
        """Its first heading, as plain text."""
        found = re.search(r"^# (.+)$", self.text, re.MULTILINE)
        return found[1].replace("`", "") if found else self.path.stem

    @property
    def opening(self) -> str:
        """The first sentence of its prose."""
        prose = (block for block in re.split(r"\n\s*\n", self.text) if re.match(r"[\w*`\[]", block))
        sentence = re.split(r"(?<=[.:!?])\s", " ".join(next(prose, "").split()))[0]
        # Keep only the words of a link, which is relative to another page.
        return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence).replace("**", "")


@dataclass(frozen=True)
class Section:
    """A directory of documents, as the navigation shows it."""

    name: str
    directory: PurePosixPath
    documents: Sequence[Document]


@dataclass
class Site:
    """The pages and copied files of the site, by path."""

    root: Path
    sections: Sequence[Section]
    pages: dict[PurePosixPath, str] = field(default_factory=dict)
    copies: set[PurePosixPath] = field(default_factory=set)
    _wanted: list[PurePosixPath] = field(default_factory=list)

    def build(self, documents: Iterable[Document]) -> None:
        """Make the pages of these documents, and of all link targets."""
        documents = list(documents)
        for document in documents:
            assert place_of(document.path) not in self.pages, f"two pages at {document.path}"
            self._add(place_of(document.path), document.title, document.text, document.path)
        while self._wanted:
            target = self._wanted.pop()
            path = self.root / target
            if path.is_dir() and (directory := place_of(target / "README.md")) not in self.pages:
                self._add(directory, f"{target}/", self._listing(target, documents), target / "-")
            elif path.is_file() and place_of(target) not in self.pages:
                self._add_source(target)

    def write(self, out: Path) -> None:
        """Write the site to a directory."""
        for place, page in self.pages.items():
            (out / place).parent.mkdir(parents=True, exist_ok=True)
            (out / place).write_text(page)
        for place in self.copies:
            (out / place).parent.mkdir(parents=True, exist_ok=True)
            (out / place).write_bytes((self.root / place).read_bytes())
        (out / "style.css").write_text(_style())

    def _add(self, place: PurePosixPath, title: str, text: str, path: PurePosixPath) -> None:
        tokens = _MARKDOWN.parse(text)
        _name_headings(tokens)
        for token in _all(tokens):
            for name in ("href", "src"):
                if given := token.attrGet(name):
                    token.attrSet(name, self._moved(str(given), path, place))
        body = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
        self._put(place, title, body)

    def _add_source(self, target: PurePosixPath) -> None:
        text = (self.root / target).read_text()
        try:
            lexer = get_lexer_for_filename(target.name)
        except ClassNotFound:
            lexer = TextLexer()
        shown = f"<h1>{target}</h1>\n" + highlight(text, lexer, _FORMATTER)
        self._put(place_of(target), str(target), shown)

    def _put(self, place: PurePosixPath, title: str, body: str) -> None:
        up = os.path.relpath(".", place.parent)
        for name in SCROLLING:
            body = body.replace(f"<{name}>", f'<{name} tabindex="0">')
        self.pages[place] = _TEMPLATE.render(
            title=title,
            body=body,
            up=up,
            here=place,
            sections=self.sections,
            place_of=place_of,
            home=PurePosixPath("index.html"),
        )

    def _listing(self, directory: PurePosixPath, documents: Sequence[Document]) -> str:
        """What is in a directory, as Markdown."""
        inside = [each for each in documents if each.path.parent == directory]
        lines = [f"* [{each.title}]({each.path.name}): {each.opening}" for each in inside]
        named = {each.path.name for each in inside}
        lines += [
            f"* [{each.name}]({each.name})"
            for each in sorted((self.root / directory).iterdir())
            if each.is_file() and each.name not in named and not each.name.startswith(".")
            if each.suffix in {".md", ".py", ".rs", ".sh", ".toml"}
        ]
        name = next((each.name for each in self.sections if each.directory == directory), "")
        return "\n".join([f"# {name or directory}", "", *lines])

    def _moved(self, link: str, path: PurePosixPath, place: PurePosixPath) -> str:
        """Return a document's link as a link in the site; a broken link is not changed."""
        if _OUTSIDE.match(link):
            return link
        name, mark, heading = link.partition("#")
        target = PurePosixPath(os.path.normpath(path.parent / name))
        if target.suffix == ".md":
            to = place_of(target)
        elif target.suffix in IMAGES:
            self.copies.add(target)
            to = target
        elif (self.root / target).is_dir() or any(
            each.directory == target for each in self.sections
        ):
            self._wanted.append(target)
            to = place_of(target / "README.md")
        elif (self.root / target).is_file():
            self._wanted.append(target)
            to = place_of(target)
        else:
            return link
        return os.path.relpath(to, place.parent) + mark + heading


def place_of(path: PurePosixPath) -> PurePosixPath:
    """Return the path of the page of a document or source file."""
    if path.name == "README.md":
        return path.parent / "index.html"
    return (
        path.with_suffix(".html") if path.suffix == ".md" else path.with_name(f"{path.name}.html")
    )


def slug(heading: str) -> str:
    """Return a heading's identifier, as on GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _name_headings(tokens: Sequence[Any]) -> None:
    seen: dict[str, int] = {}
    for opening, content in itertools.pairwise(tokens):
        if opening.type == "heading_open":
            text = "".join(
                each.content for each in content.children if each.type in {"text", "code_inline"}
            )
            name = slug(text)
            times = seen.get(name, 0)
            seen[name] = times + 1
            opening.attrSet("id", f"{name}-{times}" if times else name)


def _all(tokens: Iterable[Any]) -> Iterable[Any]:
    for token in tokens:
        yield token
        yield from _all(token.children or ())


def _highlighted(code: str, language: str, _: str) -> str:
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        lexer = TextLexer()
    return highlight(code, lexer, _FORMATTER)


def _fence(renderer: Any, tokens: Sequence[Any], at: int, options: Any, _: Any) -> str:
    return _highlighted(tokens[at].content, tokens[at].info.strip(), "")


def _style() -> str:
    """Return the pages' style, with code colours for light and dark."""
    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    return (
        HERE / "style.css"
    ).read_text() + f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


_FORMATTER = HtmlFormatter()
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_MARKDOWN.add_render_rule("fence", _fence)
_TEMPLATE = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
).get_template("page.html")
