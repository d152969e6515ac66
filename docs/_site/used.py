"""Which pages speak of a public name: the way back from the reference to guides, recipes and examples."""

import re
from pathlib import Path

from .names import documented_at

_NAME = re.compile(r"\b(?:pk|physkit)\.([A-Za-z_][\w.]*\w|[A-Za-z_])")
_MOST = 6  # pages listed for one name
# Pages that say how something is done come first, then the theory, then what is named in passing.
_ORDER = ("recipes/", "start/", "", "gallery/", "coming-from/")


def used_in(pages: dict[str, str]) -> dict[str, list[str]]:
    """Full name → pages that name it as `pk.Name`, those that explain most first.

    **Arguments:** `pages`, the Markdown of each page by its path without ending.
    """
    found: dict[str, list[str]] = {}
    for page in sorted(pages, key=_rank):
        names = {documented_at().get(name) for name in _NAME.findall(pages[page])}
        for name in names - {None}:
            found.setdefault(name, []).append(page)
    return found


def guides(docs: Path) -> dict[str, str]:
    """The pages of a folder that somebody wrote."""
    written = [docs / "index.md", *docs.glob("*.md"), *docs.glob("[rsc]*/*.md")]
    return {
        path.relative_to(docs).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in written
    }


def sentence(pages: list[str]) -> str:
    """ "See …" with links, in reStructuredText; "" for none."""
    if not pages:
        return ""
    links = ", ".join(f":doc:`/{page}`" for page in pages[:_MOST])
    more = len(pages) - _MOST
    return f"*Used in* {links}{f' and {more} more' if more > 0 else ''}."


def _rank(page: str) -> tuple[int, str]:
    folder = page.rpartition("/")[0]
    return _ORDER.index(f"{folder}/" if folder else ""), page
