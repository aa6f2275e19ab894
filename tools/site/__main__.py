"""Build the documentation's site (`make site`): plain pages that need no network, links checked.

    python tools/site OUT

writes `index.html` (the README), the guide, the concepts, the reproduction of the studies' figures,
the decisions, and a reference generated from the command line and docstrings. A broken link ends it
with 1; then nothing remains in OUT.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path, PurePosixPath

import links
import reference
from pages import Document, Section, Site

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = {
    "Guide": "docs/guide",
    "Concepts": "docs/concepts",
    "Reproduction": "docs/reproduction",
    "Reference": "docs/reference",
    "Decisions": "docs/decisions",
}


def documents() -> list[Document]:
    """Return all documents, existing and generated."""
    found = [
        *ROOT.glob("*.md"),
        *(path for part in ("docs", "examples", "benches") for path in (ROOT / part).rglob("*.md")),
    ]
    there = [
        Document(PurePosixPath(path.relative_to(ROOT)), path.read_text())
        for path in sorted(found)
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]
    where = PurePosixPath(SECTIONS["Reference"])
    return [*there, *(Document(where / name, text) for name, text in reference.pages())]


def build(out: Path) -> list[str]:
    """Build the site in a new directory; return its broken links.

    Args:
        out: The directory; an earlier site there is removed first.

    Raises:
        FileExistsError: It exists and is not a site.
    """
    if out.exists() and any(out.iterdir()) and not (out / "style.css").exists():
        raise FileExistsError(f"{out} is not a site; use another directory")
    shutil.rmtree(out, ignore_errors=True)
    all_documents = documents()
    sections = [
        Section(
            name,
            PurePosixPath(directory),
            [each for each in all_documents if each.path.parent == PurePosixPath(directory)],
        )
        for name, directory in SECTIONS.items()
    ]
    site = Site(ROOT, sections)
    site.build(all_documents)
    site.write(out)
    return links.broken(out)


def main() -> int:
    """Run the command line."""
    if len(sys.argv) != 2:
        print("usage: python tools/site OUT", file=sys.stderr)
        return 2
    out = Path(sys.argv[1])
    if wrong := build(out):
        shutil.rmtree(out)
        print("\n".join(wrong), file=sys.stderr)
        return 1
    print(f"{out}/index.html: {len(list(out.rglob('*.html')))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
