"""The gallery: a page for each example with its text, picture, seconds, code and notebook."""

import ast
import datetime
import json
import tomllib
from pathlib import Path
from typing import NamedTuple

from .parts import paragraphs, parts

GROUPS = Path(__file__).with_name("gallery.toml")
DRAWN = Path(__file__).with_name("drawn.json")


class Example(NamedTuple):
    """A script of the gallery."""

    name: str
    title: str  # first sentence of its docstring
    text: str  # the rest of it
    code: str
    picture: str  # file name; "" where it draws none

    @property
    def heading(self) -> str:
        """What it shows: the title up to its colon."""
        return self.title.partition(":")[0].rstrip(".")

    @property
    def rest_of_title(self) -> str:
        rest = self.title.partition(":")[2].strip()
        return rest[:1].upper() + rest[1:]


def pages(examples: Path, docs: Path) -> dict[str, str | bytes]:
    """File → content, pictures included: the site has them beside their pages."""
    known = {path.stem: read_example(path) for path in sorted(examples.glob("*.py"))}
    layout = tomllib.loads(GROUPS.read_text(encoding="utf-8"))
    listed = [name for names in layout["groups"].values() for name in names]
    if sorted(listed) != sorted(known):
        raise ValueError(f"gallery.toml and examples/ differ: {sorted(set(listed) ^ set(known))}")
    drawn = json.loads(DRAWN.read_text(encoding="utf-8")) if DRAWN.exists() else {}
    found: dict[str, str | bytes] = {"gallery/index.md": _index(known, layout["groups"])}
    found["generated/front.md"] = _cards([known[name] for name in layout["front"]], "gallery/")
    for example in known.values():
        found[f"gallery/{example.name}.md"] = _page(example, drawn.get(example.name, {}))
        found[f"gallery/{example.name}.ipynb"] = notebook(example)
        found[f"gallery/{example.name}.py"] = (examples / f"{example.name}.py").read_text("utf-8")
        if example.picture:
            found[f"gallery/{example.picture}"] = (examples / example.picture).read_bytes()
    return found


def read_example(path: Path) -> Example:
    """An example from its script."""
    source = path.read_text(encoding="utf-8")
    about = ast.get_docstring(ast.parse(source)) or ""
    first, _, rest = about.partition("\n\n")
    end = source.index('"""', source.index('"""') + 3) + 3
    drawn = sorted(
        p.name for p in path.parent.glob(f"{path.stem}.*") if p.suffix in (".png", ".gif")
    )
    return Example(
        path.stem, " ".join(first.split()), rest, source[end:].strip(), drawn[0] if drawn else ""
    )


def _index(known: dict[str, Example], groups: dict[str, list[str]]) -> str:
    parts = [
        "# Gallery",
        "Every example is a script of a page: `python examples/NAME.py` draws its picture.",
    ]
    for title, names in groups.items():
        parts += [f"## {title}", _cards([known[name] for name in names], "")]
    for title, names in groups.items():
        listed = "\n".join(names)
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```")
    return "\n\n".join(parts) + "\n"


def _cards(shown: list[Example], folder: str) -> str:
    cards = [
        f":::{{grid-item-card}} {example.heading}\n:img-top: {folder}{example.picture}\n"
        f":link: {folder}{example.name}\n:link-type: doc\n\n{example.rest_of_title}\n:::"
        for example in shown
    ]
    return "::::{grid} 1 2 3 3\n:gutter: 3\n\n" + "\n\n".join(cards) + "\n::::"


def _page(example: Example, drawn: dict) -> str:
    stretches = parts(example.code)
    # Without headings there is nothing to list beside the page: code gets that room.
    has_headings = any(part.text.startswith("## ") for part in stretches)
    front = "---\nhtml_theme.sidebar_secondary.remove: true\n---"
    pieces = ["" if has_headings else front, f"# {example.heading}", example.rest_of_title]
    if example.picture:
        pieces.append(
            f"```{{image}} {example.picture}\n:alt: {example.title}\n:class: gallery-picture\n```"
        )
    pieces.append(example.text)
    files = (
        f"{{download}}`Script <{example.name}.py>` · {{download}}`Notebook <{example.name}.ipynb>`."
    )
    pieces.append(f"{files} {_took(drawn)}".rstrip())
    # Names of one block are known to the next: they link, too.
    pieces.append("```{autolink-concat} on\n```")
    for part in stretches:
        pieces.append(part.text)
        if part.code:
            pieces.append(f"```python\n{part.code}\n```")
    if drawn.get("printed"):
        pieces += ["It prints:", f"```text\n{drawn['printed']}\n```"]
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


def _took(drawn: dict) -> str:
    if "seconds" not in drawn:
        return ""
    on = datetime.date.fromisoformat(drawn["on"])
    return (
        f"It took {drawn['seconds']:.0f} s of processor time, compilation included, "
        f"on {on.day} {on:%B %Y}."
    )


def notebook(example: Example) -> str:
    """The example as a notebook: its text, then text and code in turn, as on its page."""
    about = f"# {example.heading}\n\n{example.rest_of_title}\n\n{example.text}".rstrip()
    cells = [_cell("markdown", about)]
    for part in parts(example.code):
        cells += [_cell("markdown", part.text)] if part.text else []
        cells += [_cell("code", code) for code in paragraphs(part.code)] if part.code else []
    for place, cell in enumerate(cells):
        cell["id"] = f"{example.name}-{place}".replace("_", "-")[:64]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps(
        {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


def _cell(kind: str, text: str) -> dict:
    cell = {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}
