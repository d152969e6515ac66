"""physkit: simulations as Python scripts on differentiable arrays.

Scripts use everyday names as `pk.Name`, and members of a family by its namespace, as
`pk.limiters.VanLeer` (`_names.py` lists both). A name is imported from its layer on first use, so that
`import physkit` and `physkit --help` do not wait for JAX.
"""

import builtins
import difflib
import importlib
import sys
import types
from typing import Any

from ._names import FAMILIES, FRONT_PAGE, OTHER_LAYERS, SHOWN_LAYERS

__version__ = "0.3.0"

_LAYERS = SHOWN_LAYERS + OTHER_LAYERS
_LAYER_OF = {name: layer for layer, names in FRONT_PAGE.items() for name in names}


class _Family(types.ModuleType):
    """A namespace of names that belong together, each fetched from its layer on first use."""

    def __init__(self, name: str):
        about, layers = FAMILIES[name]
        super().__init__(f"physkit.{name}", about)
        self._layer_of = {member: layer for layer, members in layers.items() for member in members}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `copy`, `inspect` and others probe for these
            raise AttributeError(name)
        if name not in self._layer_of:
            raise AttributeError(self._explain_missing(name))
        value = getattr(importlib.import_module(f"physkit.{self._layer_of[name]}"), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted(self._layer_of)

    def _explain_missing(self, name: str) -> str:
        text = f"{self.__name__} has no {name!r}"
        close = difflib.get_close_matches(name, self._layer_of, n=1)
        if close:
            return f"{text}; did you mean {close[0]!r}? Available: {dir(self)}"
        elsewhere = _explain_missing(name)
        known = elsewhere.removeprefix(f"physkit has no {name!r}")
        return f"{text}{'' if known == _WHERE_NAMES_ARE else known}; available: {dir(self)}"


def __getattr__(name: str) -> Any:
    if name in _LAYER_OF:
        value = getattr(importlib.import_module(f"physkit.{_LAYER_OF[name]}"), name)
    elif name in FAMILIES:
        value = _Family(name)
    elif name in _LAYERS:
        value = importlib.import_module(f"physkit.{name}")
    elif name.startswith("__"):  # `copy`, `inspect` and others probe for these
        raise AttributeError(name)
    else:
        raise AttributeError(_explain_missing(name))
    globals()[name] = value  # the next access does not come here
    return value


def _explain_missing(name: str) -> str:
    """Where a name is that is not on the front page, or which one was meant."""
    # The tables are read only here: names that exist do not wait for them.
    from ._synonyms import explain_foreign

    holders = [f"pk.{f}.{name}" for f in sorted(FAMILIES) if name in dir(_Family(f))]
    if holders:
        foreign = explain_foreign(name)
        other = "" if foreign is None else f"; {foreign.partition('; ')[2]}"
        return f"physkit has no {name!r} on its front page; it is {' or '.join(holders)}{other}"
    members = {m: f"{f}.{m}" for f in FAMILIES for m in dir(_Family(f))}
    members |= {name: name for name in (*FAMILIES, *_LAYERS, *_LAYER_OF)}
    lower = {m.lower(): m for m in members}
    if name.lower() in lower:
        return f"physkit has no {name!r}; did you mean '{members[lower[name.lower()]]}'?"
    if (foreign := explain_foreign(name)) is not None:
        return foreign
    if not name.startswith("_"):
        modules = {layer: importlib.import_module(f"physkit.{layer}") for layer in SHOWN_LAYERS}
        holders = [f"pk.{layer}.{name}" for layer, module in modules.items() if name in dir(module)]
        if holders:
            return f"physkit has no {name!r} on its front page; it is {' or '.join(holders)}"
    # As it is written first: the class `Particles` and the layer `particles` differ only in case.
    close = difflib.get_close_matches(name, members, n=1, cutoff=0.8)
    close = close or [lower[m] for m in difflib.get_close_matches(name.lower(), lower, n=1)]
    return f"physkit has no {name!r}" + (
        f"; did you mean '{members[close[0]]}'?" if close else _WHERE_NAMES_ARE
    )


_WHERE_NAMES_ARE = "; dir(pk) lists its names, and families of names such as pk.forces"


# Of `from physkit import *`, which must not hide the `open` of Python.
__all__ = [name for name in (*_LAYER_OF, *FAMILIES) if not hasattr(builtins, name)]


def __dir__() -> list[str]:
    return sorted({"__version__", *_LAYER_OF, *FAMILIES, *SHOWN_LAYERS})


class _Package(types.ModuleType):
    """This package: where a layer is named like the verb in it, `pk.simulate` is the verb."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Python sets every layer that it imports on the package, over what was there.
        if _LAYER_OF.get(name) == name and isinstance(value, types.ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
