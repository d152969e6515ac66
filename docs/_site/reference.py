"""Pages of the reference: every public name by what it means, with one line, then its docstring."""

import inspect

from physkit._names import FAMILIES

from .docstrings import to_rst
from .names import LAYERS, Entry, documented_at, entries


def pages() -> dict[str, str]:
    """File → text, in reStructuredText because autodoc writes that."""
    found = {"api/index.rst": _index()}
    for family, (about, layers) in FAMILIES.items():
        names = sorted({name for names in layers.values() for name in names}, key=str.lower)
        found[f"api/{family}.rst"] = _page(family, about, [f"{family}.{name}" for name in names])
    for layer, about in LAYERS.items():
        if own := [
            entry.path.removeprefix("physkit.") for entry in entries() if entry.page == layer
        ]:
            found[f"api/{layer}.rst"] = _page(layer, f"{about[0].upper()}{about[1:]}.", own)
    return found


def _page(title: str, about: str, names: list[str]) -> str:
    by_path = {entry.path: entry for entry in entries()}
    shown = [by_path[documented_at()[name]] for name in names]
    own = [entry for entry in shown if entry.page == title]
    parts = [f"{title}\n{'=' * len(title)}", about, _table(shown)]
    parts += [_directive(entry) for entry in own]
    return "\n\n".join(parts) + "\n"


def _table(shown: list[Entry]) -> str:
    rows = [".. list-table::", "   :widths: 35 65", ""]
    for entry in shown:
        written = entry.path.replace("physkit.", "pk.", 1)
        rows += [f"   * - :py:obj:`{written} <{entry.path}>`", f"     - {to_rst(entry.about)}"]
    return "\n".join(rows)


def _directive(entry: Entry) -> str:
    value = entry.value
    if not entry.is_own:
        return f".. py:data:: {entry.path}"
    if inspect.ismodule(value):
        return f".. py:module:: {entry.path}\n\n{_module(entry)}"
    if not inspect.isclass(value):
        return f".. autofunction:: {entry.path}"
    if issubclass(value, BaseException):
        return f".. autoexception:: {entry.path}"
    return f".. autoclass:: {entry.path}\n   :members:"


def _module(entry: Entry) -> str:
    functions = [
        n for n, f in vars(entry.value).items() if inspect.isfunction(f) and not n.startswith("_")
    ]
    body = "\n\n".join(f".. autofunction:: {entry.value.__name__}.{name}" for name in functions)
    return f"{entry.about}\n\n{body}"


def _index() -> str:
    families = "\n".join(f"   {name}" for name in FAMILIES)
    used = {entry.page for entry in entries()}
    layers = "\n".join(f"   {name}" for name in LAYERS if name in used)
    about = "\n".join(
        f"   * - :doc:`pk.{name} <{name}>`\n     - {about}" for name, (about, _) in FAMILIES.items()
    )
    return f"""Reference
=========

Every public name, by what it is. Scripts write ``import physkit as pk``; names of everyday use are ``pk.Name``,
the others members of a family, as ``pk.limiters.VanLeer``.

.. list-table::
   :widths: 25 75

{about}

.. toctree::
   :caption: Families
   :maxdepth: 1
   :hidden:

{families}

.. toctree::
   :caption: For authors of new physics
   :maxdepth: 1

{layers}
"""
