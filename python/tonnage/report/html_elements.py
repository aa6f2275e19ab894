"""Build HTML that is escaped by construction: plain strings are escaped, `Html` is not."""

import html
import re
from collections.abc import Iterable, Sequence

VOID = {"br", "hr", "img", "input", "link", "meta"}
# The space between a number and its unit, where no line may break.
BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGT]?B(?:/s)?|[KMGT]iB|s|%)(?!\w))")


class Html(str):
    """Markup, inserted as it is."""

    __slots__ = ()


Child = Html | str | None


def escape(child: Child) -> Html:
    """Turn a child into markup: escape plain strings, drop ``None``."""
    if child is None:
        return Html()
    return child if isinstance(child, Html) else exact_text(BEFORE_UNIT.sub("\u00a0", child))


def exact_text(value: str) -> Html:
    """Escape text without touching its spaces."""
    return Html(html.escape(value))


def join(children: Iterable[Child], between: Html = Html()) -> Html:  # noqa: B008
    return Html(between.join(escape(child) for child in children))


def tag(name: str, *children: Child, **attributes: str | bool | None) -> Html:
    """Build an element. Attribute names lose a trailing ``_`` and use hyphens for ``_``.

    ``True`` gives an attribute without value; ``None`` and ``False`` give none.
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
    """Turn a name into an identifier."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "unnamed"


def section(identifier: str, heading: str, *children: Child) -> Html:
    """Build a section with a second-level heading."""
    title = tag("h2", heading, id=f"{identifier}-heading")
    return tag("section", title, *children, id=identifier, aria_labelledby=f"{identifier}-heading")


def missing_note(what: str) -> Html:
    """State what the record does not contain."""
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
    """Build a table that scrolls sideways; its first column has row headers.

    ``numeric`` columns are right-aligned, ``marked`` rows are highlighted.
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
    # The inner element stays visible while a wide table scrolls.
    title = tag("caption", tag("span", caption), class_="unseen" if hide_caption else None)
    content = tag("table", title, tag("thead", tag("tr", *head)), tag("tbody", *body))
    # A scrollable region needs a tab stop and a name.
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=caption)


def fact_list(pairs: Iterable[tuple[str, Child]]) -> Html:
    """Build a list of names and values."""
    return tag("dl", *(definition(name, value) for name, value in pairs), class_="facts")


def definition(name: str, *value: Child) -> Html:
    """Build an entry of a ``dl``."""
    return tag("div", tag("dt", name), tag("dd", *value))


def code(line: str) -> Html:
    return tag("code", exact_text(line))


def cite(measurement: str) -> Html:
    """Link to a measurement on the page."""
    return tag("a", code(measurement), href=f"#measurement-{slug(measurement)}")


def code_block(line: str, name: str) -> Html:
    """Build a scrolling block of code."""
    return tag("pre", code(line), tabindex="0", role="region", aria_label=name)


def colour_bar(shares: Iterable[tuple[float, str]]) -> Html:
    """Build a wide stacked bar of shares and colours, hidden from screen readers."""
    pieces = [
        tag("i", style=f"width:{100 * share:.3f}%;background:var({colour})")
        for share, colour in shares
    ]
    return tag("div", *pieces, class_="parts", aria_hidden="true")


def swatch(colour: str, name: str) -> Html:
    """Build a name with the colour that a chart has for it."""
    mark = tag("i", class_="swatch", style=f"background:var({colour})", aria_hidden="true")
    return tag("span", mark, name)


def share_bar(*shares: tuple[float, str]) -> Html:
    """Build a small stacked bar of shares and their CSS classes, hidden from screen readers."""
    pieces = [
        tag("i", class_=kind, style=f"width:{100 * min(max(share, 0), 1):.1f}%")
        for share, kind in shares
    ]
    return tag("span", *pieces, class_="bar", aria_hidden="true")
