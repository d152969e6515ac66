"""Pages of the reference: every public name by what it means, with one line, then its docstring."""

import inspect
from collections.abc import Mapping
from types import MappingProxyType

from physkit._names import FAMILIES, SHOWN_LAYERS

from .docstrings import to_rst
from .names import LAYERS, Entry, documented_at, entries
from .used import sentence


def pages(used: Mapping[str, list[str]] = MappingProxyType({})) -> dict[str, str]:
    """File → text, in reStructuredText because autodoc writes that; `used`: the pages that name each."""
    found = {"api/index.rst": _index()}
    for family, (about, layers) in FAMILIES.items():
        names = sorted({name for names in layers.values() for name in names}, key=str.lower)
        found[f"api/{family}.rst"] = _page(
            family, about, [f"{family}.{name}" for name in names], used
        )
    for layer, about in LAYERS.items():
        if own := [
            entry.path.removeprefix("physkit.") for entry in entries() if entry.page == layer
        ]:
            found[f"api/{layer}.rst"] = _page(layer, f"{about[0].upper()}{about[1:]}.", own, used)
    return found


# Large pages by what their names are for: the folder that a name comes from → heading, in the order shown.
_GROUPS = {
    "integrators": {
        "particle": "Motion of particles; Langevin, Brownian and Nosé–Hoover dynamics",
        "baths": "Thermostats and barostats around them",
        "runge_kutta": "Runge–Kutta methods",
        "splitting": "Splittings, sub-steps, events",
        "spectral": "Spectral and exponential methods",
        "monte_carlo": "Monte Carlo",
        "quantum": "Quantum mechanics",
        "integrators": "Helpers",
    },
    "systems": {
        "molecular": "Molecules and materials",
        "gravity": "Gravity",
        "flow": "Flows",
        "gas": "Gas",
        "plasma": "Plasmas",
        "electromagnetism": "Light",
        "acoustics": "Sound",
        "waves": "Waves",
        "pattern": "Patterns",
        "reaction": "Reactions and populations",
        "dynamics": "Dynamical systems",
        "quantum": "Quantum mechanics",
        "spin": "Spins",
        "": "Numbers of these systems",
    },
}


def _page(title: str, about: str, names: list[str], used: Mapping[str, list[str]]) -> str:
    by_path = {entry.path: entry for entry in entries()}
    shown = [by_path[documented_at()[name]] for name in names]
    own = [entry for entry in shown if entry.page == title]
    parts = [f"{title}\n{'=' * len(title)}", about]
    if title in _GROUPS:
        for heading, group in _grouped(shown, _GROUPS[title]).items():
            parts += [_heading(heading), _table(group)]
        parts.append(_heading("Each by itself"))
    else:
        parts.append(_table(shown))
    parts += [_directive(entry, sentence(used.get(entry.path, []))) for entry in own]
    return "\n\n".join(parts) + "\n"


def _heading(text: str) -> str:
    return f"{text}\n{'-' * len(text)}"


def _grouped(shown: list[Entry], headings: dict[str, str]) -> dict[str, list[Entry]]:
    """Heading → entries; base classes, and what comes from elsewhere, last."""
    last = "Base classes, and what belongs to none of these"
    groups: dict[str, list[Entry]] = {heading: [] for heading in [*headings.values(), last]}
    for entry in shown:
        folder = ".".join(str(getattr(entry.value, "__module__", "")).split(".")[:-1])
        folder = folder.rpartition(".")[2]
        is_base = entry.name.startswith("Abstract")
        groups[last if is_base else headings.get(folder, last)].append(entry)
    return {heading: group for heading, group in groups.items() if group}


def _table(shown: list[Entry]) -> str:
    rows = [".. list-table::", "   :widths: 35 65", ""]
    for entry in shown:
        written = entry.path.replace("physkit.", "pk.", 1)
        rows += [f"   * - :py:obj:`{written} <{entry.path}>`", f"     - {to_rst(entry.about)}"]
    return "\n".join(rows)


def _directive(entry: Entry, where: str) -> str:
    value = entry.value
    if not entry.is_own:
        return f".. py:data:: {entry.path}"
    if inspect.ismodule(value):
        return f".. py:module:: {entry.path}\n\n{_module(entry)}"
    if not inspect.isclass(value):
        return f".. autofunction:: {entry.path}\n\n   {where}".rstrip()
    if issubclass(value, BaseException):
        return f".. autoexception:: {entry.path}"
    return f".. autoclass:: {entry.path}\n   :members:\n\n   {where}".rstrip()


def _module(entry: Entry) -> str:
    functions = [
        n for n, f in vars(entry.value).items() if inspect.isfunction(f) and not n.startswith("_")
    ]
    body = "\n\n".join(f".. autofunction:: {entry.value.__name__}.{name}" for name in functions)
    return f"{entry.about}\n\n{body}"


def _index() -> str:
    families = "\n".join(f"   {name}" for name in FAMILIES)
    pages = {entry.page for entry in entries()}
    whole = [name for name in SHOWN_LAYERS if name in pages]
    layers = "\n".join(f"   {name}" for name in LAYERS if name in pages and name not in whole)
    about = {name: text for name, (text, _) in FAMILIES.items()}
    about |= {name: f"{LAYERS[name][0].upper()}{LAYERS[name][1:]}." for name in whole}
    rows = "\n".join(
        f"   * - :doc:`pk.{name} <{name}>`\n     - {about[name]}" for name in sorted(about)
    )
    listed = "\n".join(f"   {name}" for name in whole)
    return f"""Reference
=========

Every public name, by what it is. Scripts write ``import physkit as pk``; names of everyday use are ``pk.Name``,
the others members of a family, as ``pk.limiters.VanLeer``.

.. list-table::
   :widths: 25 75

{rows}

.. toctree::
   :caption: Families
   :maxdepth: 1
   :hidden:

{families}

.. toctree::
   :caption: Layers that scripts use whole
   :maxdepth: 1
   :hidden:

{listed}

.. toctree::
   :caption: For authors of new physics
   :maxdepth: 1

{layers}
"""
