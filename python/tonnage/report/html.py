"""HTML that is escaped by construction: text is escaped, only what was built here is not."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

VOID = {"br", "hr", "img", "input", "link", "meta"}
# The blank between a figure and its unit, at which no line may end.
BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGT]?B(?:/s)?|[KMGT]iB|s|%)(?!\w))")


class Html(str):
    """Markup, to be put into a page as it is."""

    __slots__ = ()


Child = Html | str | None


def escape(child: Child) -> Html:
    """A child as markup: what is not markup yet is escaped, and nothing gives nothing."""
    if child is None:
        return Html()
    return child if isinstance(child, Html) else exact_text(BEFORE_UNIT.sub("\u00a0", child))


def exact_text(said: str) -> Html:
    """Text as it is, to the last blank."""
    return Html(html.escape(said))


def join(children: Iterable[Child], between: Html = Html()) -> Html:  # noqa: B008
    """Children in a row."""
    return Html(between.join(escape(child) for child in children))


def tag(name: str, *children: Child, **attributes: str | bool | None) -> Html:
    """An element. Attributes lose a trailing ``_``, and ``_`` within is a hyphen.

    An attribute that is ``True`` stands alone; one that is ``None`` or ``False`` is left out.
    """
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        opening += f" {key}" if value is True else f' {key}="{html.escape(value)}"'
    if name in VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join(children)}</{name}>")


def slug(name: str) -> str:
    """A name as an identifier of a page."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "unnamed"


def section(identifier: str, heading: str, *children: Child) -> Html:
    """A part of the page under a heading of the second level."""
    title = tag("h2", heading, id=f"{identifier}-heading")
    return tag("section", title, *children, id=identifier, aria_labelledby=f"{identifier}-heading")


def missing_note(what: str) -> Html:
    """Says what a study does not hold."""
    return tag("p", what, class_="missing")


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    numeric: Iterable[str] = (),
    marked: Iterable[int] = (),
    hide_caption: bool = False,
) -> Html:
    """A table whose first column names its rows, in a box of its own that scrolls sideways.

    ``numeric`` names the columns that are set to the right, ``marked`` the rows that stand out.
    """
    right, strong = set(numeric), set(marked)
    style = ["number" if column in right else None for column in columns]
    head = [
        tag("th", column, scope="col", class_=kind)
        for column, kind in zip(columns, style, strict=True)
    ]
    body = []
    for place, row in enumerate(rows):
        cells = [tag("th", row[0], scope="row")]
        cells += [
            tag("td", cell, class_=kind) for cell, kind in zip(row[1:], style[1:], strict=True)
        ]
        body.append(tag("tr", *cells, class_="marked" if place in strong else None))
    # The inner element stays in sight while a wide table is scrolled.
    title = tag("caption", tag("span", caption), class_="unseen" if hide_caption else None)
    content = tag("table", title, tag("thead", tag("tr", *head)), tag("tbody", *body))
    # Can be scrolled, hence must be reachable by keyboard and have a name.
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=caption)


def fact_list(pairs: Iterable[tuple[str, Child]]) -> Html:
    """Names and what they stand for, one below the other."""
    rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs]
    return tag("dl", *rows, class_="facts")


def code(line: str) -> Html:
    """A line to be read, or typed, exactly."""
    return tag("code", exact_text(line))


def cite(measurement: str) -> Html:
    """A link to a measurement on the page."""
    return tag("a", code(measurement), href=f"#measurement-{slug(measurement)}")


def code_block(line: str, name: str) -> Html:
    """A long line of code in a box that scrolls."""
    return tag("pre", code(line), tabindex="0", role="region", aria_label=name)


def share_bar(*shares: tuple[float, str]) -> Html:
    """A small bar of shares of one, each with the class that colours it; for the eye only."""
    pieces = [
        tag("i", class_=kind, style=f"width:{100 * min(max(share, 0), 1):.1f}%")
        for share, kind in shares
    ]
    return tag("span", *pieces, class_="bar", aria_hidden="true")
