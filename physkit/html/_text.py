"""Text, tables and expandable parts as HTML, escaped: names may come from files."""

import html
from collections.abc import Iterable, Mapping, Sequence

_MAX_TEXT = 300  # characters of a text; more tell a reader nothing

# No background and no ink of its own: a notebook's theme, dark or light, shows through.
STYLE = """
.pk {font: 13px/1.45 system-ui, sans-serif; color: inherit; max-width: 62em}
.pk details {margin: 0 0 0 .3em; padding-left: .7em; border-left: 1px solid rgba(128,128,128,.3)}
.pk summary {cursor: pointer; margin-left: -.5em}
.pk .leaf {margin: 0 0 0 1.75em}
.pk .name {opacity: .72}
.pk .kind {font-weight: 600}
.pk .about {opacity: .62; font-size: 12px}
.pk code, .pk .value {font-family: ui-monospace, monospace; font-size: 12px}
.pk .wrong {color: #d9480f; font-weight: 600}
.pk .good {color: #2b8a3e; font-weight: 600}
.pk table {border-collapse: collapse; margin: .4em 0; background: none; color: inherit}
.pk th, .pk td {padding: .15em .7em; text-align: right; background: none; color: inherit;
  border: 0; border-bottom: 1px solid rgba(128,128,128,.25); font-size: 12px}
.pk th:first-child, .pk td:first-child {text-align: left}
.pk svg, .pk img {vertical-align: middle; margin: .3em .6em .3em 0; max-width: 100%}
.pk .row {display: flex; flex-wrap: wrap; align-items: flex-end; gap: .2em 1.2em}
.pk figure {margin: .3em 0} .pk figcaption {font-size: 12px; opacity: .72}
"""

_PAGE_STYLE = """
:root {color-scheme: light dark; --paper: #fff; --ink: #222; --link: #0b66b2}
@media (prefers-color-scheme: dark) {:root {--paper: #16181c; --ink: #dde1e6; --link: #6db3f2}}
body {background: var(--paper); color: var(--ink); margin: 2em auto; max-width: 68em; padding: 0 1.2em}
h1 {font: 600 1.7em system-ui; margin-bottom: .1em} h2 {font: 600 1.2em system-ui; margin: 1.6em 0 .4em}
.pk {font-size: 14px !important; max-width: none !important} a {color: var(--link)}
.pk pre {overflow: auto; padding: .8em; background: rgba(128,128,128,.12); font-size: 12px}
.pk figure img {background: #fff; border-radius: 4px} .pk td {vertical-align: top}
.pk td:nth-child(2) {overflow-wrap: anywhere}
.pk .wide td, .pk .wide th {text-align: left}
"""


def escape(text: object, limit: int = _MAX_TEXT) -> str:
    """`text` with nothing in it that HTML, a terminal or the direction of writing would obey."""
    plain = str(text)
    plain = plain if len(plain) <= limit else f"{plain[:limit]}…"
    return html.escape("".join(c if c.isprintable() or c == "\n" else "?" for c in plain))


def span(kind: str, text: object) -> str:
    """Escaped `text` in one of the roles of `STYLE`: name, kind, value, about, good, wrong."""
    return f'<span class="{kind}">{escape(text)}</span>'


def paragraph(text: object, kind: str = "") -> str:
    """Escaped `text` as a paragraph."""
    return f"<p>{span(kind, text)}</p>"


def expandable(summary: str, body: str, *, is_open: bool = False) -> str:
    """A part that opens by a click, without scripts; both arguments are HTML."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>{body}</details>"


def table(header: Sequence[object], rows: Iterable[Sequence[object]], kind: str = "") -> str:
    """Rows of cells as a table; cells are text, and HTML where they are `Markup`."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{_cell(c)}</td>" for c in row) + "</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<table class="{kind}">{top}<tbody>{body}</tbody></table>'


def facts(entries: Mapping[str, object]) -> str:
    """Names and what they are, a row each."""
    return table((), entries.items(), "wide")


class Markup(str):
    """Text that is HTML already: it is not escaped again."""


def fragment(body: str) -> str:
    """HTML for the output of a notebook's cell: `body` with the style that it needs."""
    return f'<style>{STYLE}</style><div class="pk">{body}</div>'


def page(title: str, body: str) -> str:
    """A whole document, which needs no other file and loads nothing."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "img-src data:; media-src data:; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}{_PAGE_STYLE}</style></head>"
        f'<body><div class="pk">{body}</div></body></html>\n'
    )


def _cell(content: object) -> str:
    return content if isinstance(content, Markup) else escape(content)
