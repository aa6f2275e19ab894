"""Find broken links of a built site, and files that it would load from elsewhere.

Every page is parsed as in a browser: identifiers, links, images, styles. A link within the site
must lead to one of its files, and its heading must exist. Links to other sites are not followed,
but nothing may be loaded from there.
"""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Identifiers, links and loaded files of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.names.add(value)
            elif name == "href" and value and tag == "a":
                self.links.append(value)
            elif name in {"src", "srcset", "href", "data"} and value:
                self.loads.append(value)


def broken(site: Path) -> list[str]:
    """Return a line for each broken link, and for each file that is loaded from elsewhere."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = _Page()
        pages[path].feed(path.read_text())
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in [*page.links, *page.loads]:
            to = urlsplit(link)
            if to.scheme or to.netloc:
                if link in page.loads and to.scheme != "data":
                    found.append(f"{where} loads {link} from elsewhere")
                continue
            target = Path(os.path.normpath(path.parent / unquote(to.path))) if to.path else path
            if not target.is_relative_to(site) or not target.is_file():
                found.append(f"{where}: {link} leads nowhere")
            elif to.fragment and target in pages and to.fragment not in pages[target].names:
                found.append(f"{where}: {link}: there is no such heading")
    return found
