"""A script as text and code in turn: what its top-level comments say stands around their code."""

import ast
import itertools
import re
from typing import NamedTuple

_RULE = re.compile(r"-{3,} *(.*?) *-{3,}")


class Part(NamedTuple):
    """A stretch of a script: what it says first, then what it does."""

    text: str  # Markdown; "" where no comment begins it
    code: str


def parts(code: str) -> list[Part]:
    """Stretches of a script, a new one at each comment that begins a paragraph of top-level statements."""
    found = [Part("", "")]
    for block in paragraphs(code):
        lines = block.split("\n")
        count = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
        rest = "\n".join(lines[count:]).strip("\n")
        if count and not any(line.startswith("#!") for line in lines[:count]):
            found.append(Part(_markdown(lines[:count]), rest))
        else:
            # Two lines between definitions, one between statements: nobody misses the second.
            text, before = found[-1]
            found[-1] = Part(text, f"{before}\n\n{block}".strip("\n"))
    return [part for part in found if part.text or part.code]


def _markdown(comments: list[str]) -> str:
    """Comments as a paragraph; `--- so marked ---` as a heading."""
    pieces: list[str] = []
    for line in comments:
        text = line.removeprefix("#").strip()
        if heading := _RULE.fullmatch(text):
            title = heading[1][:1].upper() + heading[1][1:]
            pieces += [f"## {_escaped(title)}", ""]
        elif pieces and pieces[-1] and not pieces[-1].startswith("## "):
            pieces[-1] += f"\n{_escaped(text)}"
        else:
            pieces.append(_escaped(text))
    return "\n\n".join(piece for piece in pieces if piece)


def _escaped(text: str) -> str:
    """Comments are plain text: only their code stays marked."""
    marked = re.split(r"(`[^`]*`)", text)
    return "".join(m if m.startswith("`") else re.sub(r"([*<\[$\\])", r"\\\1", m) for m in marked)


def paragraphs(code: str) -> list[str]:
    """Top-level statements, together where no blank line parts them; comments stay with what follows."""
    lines = code.split("\n")
    starts = [
        min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        for node in ast.parse(code).body
    ]
    cuts = []
    for start in starts:
        first = start - 1
        while first > 0 and lines[first - 1].startswith("#"):
            first -= 1
        if first > 0 and not lines[first - 1].strip():
            cuts.append(first)
        # A comment that a blank line parts from what follows is a paragraph of its own.
        while first > 1 and not lines[first - 1].strip():
            first -= 1
        if first > 0 and lines[first - 1].startswith("#"):
            while first > 0 and lines[first - 1].startswith("#"):
                first -= 1
            cuts.append(first)
    edges = [0, *sorted(set(cuts) - {0}), len(lines)]
    blocks = ["\n".join(lines[a:b]).strip("\n") for a, b in itertools.pairwise(edges)]
    return [block for block in blocks if block.strip()]
