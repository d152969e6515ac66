"""Any tree of dataclasses, dicts, tuples and arrays as expandable HTML, with the values of its leaves."""

import dataclasses
import functools
import reprlib
from collections.abc import Iterator, Mapping

from ._numbers import describe_shape, describe_values, read, show_number
from ._text import escape, expandable, fragment, span

_MAX_NODES = 400  # of a tree; more would make a notebook slow
_MAX_CHILDREN = 40  # of a node
_MAX_DEPTH = 14
_MAX_IN_SUMMARY = 4  # numbers beside the name of a class
_OPEN_DEPTH = 1  # levels that are open at first


def render_tree(value: object, name: str = "") -> str:
    """HTML of a tree, for `_repr_html_`: each class with its numbers, opened by a click.

    Objects may have a method `_html_picture_() -> str`, whose picture stands above their parts. Few numbers are
    read, so that it takes milliseconds however large the arrays are.
    """
    return fragment(tree(value, name))


def tree(value: object, name: str = "", *, open_depth: int = _OPEN_DEPTH) -> str:
    """`render_tree` without the style, as a part of something larger."""
    return _Renderer(open_depth).node(name, value, 0)


class _Renderer:
    """Walks through a tree, and counts what it has written."""

    def __init__(self, open_depth: int):
        self._nodes = 0
        self._open_depth = open_depth

    def node(self, name: str, value: object, depth: int) -> str:
        self._nodes += 1
        children = list(_children(value))
        label = span("name", name) + " " if name else ""
        if not children:
            return f'<div class="leaf">{label}{_leaf(value)}</div>'
        shown = children[:_MAX_CHILDREN] if depth < _MAX_DEPTH else []
        # As pictures are few, they are drawn where the reader sees them.
        body = _picture(value)
        count = 0
        for child_name, child in shown:
            if self._nodes >= _MAX_NODES:
                break
            body += self.node(child_name, child, depth + 1)
            count += 1
        if count < len(children):
            body += (
                f'<div class="leaf">{span("about", f"… and {len(children) - count} more")}</div>'
            )
        summary = f"{label}{span('kind', type(value).__name__)} {_summary(children)}"
        return expandable(summary, body, is_open=depth < self._open_depth)


def _children(value: object) -> Iterator[tuple[str, object]]:
    """Names and values of the parts of a node; none for leaves."""
    if isinstance(value, type) or _is_array(value):
        return
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            part = getattr(value, field.name, None)
            # What is left out says nothing.
            if part is not None and not (isinstance(part, tuple | dict) and not part):
                yield field.name, part
    elif isinstance(value, Mapping):
        yield from ((str(key), part) for key, part in value.items())
    elif isinstance(value, tuple | list) and not _is_plain(value):
        names = getattr(value, "_fields", None) or [str(k) for k in range(len(value))]
        yield from zip(names, value, strict=True)


def _leaf(value: object) -> str:
    if _is_array(value):
        numbers = describe_values(value)
        if not value.shape and numbers:
            return span("value", numbers)
        return f"{span('about', describe_shape(value))} {span('value', numbers)}"
    if isinstance(value, str | bool | int | float | complex) or value is None:
        return span("value", value)
    if isinstance(value, type):
        return span("kind", value.__name__)
    if isinstance(value, functools.partial):
        return f"{span('kind', 'partial')} {_leaf(value.func)}"
    if callable(value) and hasattr(value, "__qualname__"):
        return span("value", f"{value.__qualname__}()")
    if _is_plain(value):
        return span("value", reprlib.repr(value))
    if dataclasses.is_dataclass(value):
        return span("kind", type(value).__name__)
    # The user's own: its `repr` may be anything, also an error.
    try:
        return span("value", " ".join(reprlib.repr(value).split()))
    except Exception:
        return span("kind", type(value).__name__)


def _summary(children: list[tuple[str, object]]) -> str:
    """The numbers of a node in a line, for readers who do not open it."""
    parts = []
    for name, value in children:
        is_number = type(value) in (int, float) or (_is_array(value) and not value.shape)
        if is_number and len(parts) < _MAX_IN_SUMMARY:
            numbers = read(value) if _is_array(value) else value
            if numbers is not None:
                parts.append(f"{escape(name)} = {escape(show_number(numbers))}")
    return f'<span class="value about">{", ".join(parts)}</span>' if parts else ""


def _picture(value: object) -> str:
    draw = getattr(value, "_html_picture_", None)
    if draw is None:
        return ""
    # A picture is a courtesy: numbers that cannot be drawn must not hide those that can be read.
    try:
        return f'<div class="leaf">{draw()}</div>'
    except Exception:
        return ""


def _is_array(value: object) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _is_plain(value: object) -> bool:
    """Whether it is a short tuple of names and numbers, which reads better in one line."""
    if not isinstance(value, tuple | list | frozenset | set) or hasattr(value, "_fields"):
        return False
    return len(value) <= 64 and all(
        isinstance(x, str | bool | int | float | complex | None) or _is_plain(x) for x in value
    )
