"""Docstrings are Markdown; autodoc reads reStructuredText. Only what docstrings use is translated.

`code` becomes a literal, an indented block an equation, `*text*` and lists are the same in both.
"""

import re

from sphinx.application import Sphinx

# What is markup in both (kept), or in reStructuredText only (escaped).
_MARKUP = re.compile(r"(\*\*|(?<![\w*])\*\w[\w -]*\*(?![\w*]))|\\|\||_(?!\w)|\*")


def setup(app: Sphinx) -> dict:
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _process(
    app: Sphinx, what: str, name: str, found: object, options: object, lines: list[str]
) -> None:
    lines[:] = to_rst("\n".join(lines)).splitlines()


def to_rst(text: str) -> str:
    """The same docstring in reStructuredText."""
    # A span of code may go on in the next line.
    text = re.sub(r"`([^`\n]+)\n[ ]*([^`\n]+)`", r"`\1 \2`", text)
    found: list[str] = []
    block: list[str] = []
    in_list = False
    for line in [*text.split("\n"), "end"]:
        indented = line.startswith("    ") or (bool(block) and not line.strip())
        if indented and not in_list and (block or not found or not found[-1].strip()):
            block.append(line)
            continue
        if block:
            found += _equation(block)
            block = []
        if line.strip():
            in_list = line.startswith(("- ", "1. ")) or (in_list and line.startswith(" "))
        found.append(_inline(line))
    return "\n".join(found[:-1])


def _equation(block: list[str]) -> list[str]:
    body = "\n".join(block).rstrip().split("\n")
    return [".. code-block:: text", "   :class: equation", "", *body, "", ""]


def _inline(line: str) -> str:
    parts = re.split(r"`([^`]+)`", line)  # every second one is code
    for place, part in enumerate(parts):
        parts[place] = (
            f"``{part}``" if place % 2 else _MARKUP.sub(lambda m: m[1] or "\\" + m[0], part)
        )
    # A literal must not touch a word: an escaped space parts them.
    for place in range(1, len(parts), 2):
        if re.search(r"\w$", parts[place - 1]):
            parts[place - 1] += "\\ "
        if re.match(r"\w", parts[place + 1]):
            parts[place + 1] = "\\ " + parts[place + 1]
    return "".join(parts)
