"""physkit: simulations as Python scripts on differentiable arrays.

Scripts use everyday names as `pk.Name`, and members of a family by its namespace, as
`pk.limiters.VanLeer` (`_names.py` lists both). A name is imported from its layer on first use, so that
`import physkit` and `physkit --help` do not wait for JAX.
"""

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
            raise AttributeError(f"{self.__name__} has no {name!r}; available: {dir(self)}")
        value = getattr(importlib.import_module(f"physkit.{self._layer_of[name]}"), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted(self._layer_of)


def __getattr__(name: str) -> Any:
    if name in _LAYER_OF:
        value = getattr(importlib.import_module(f"physkit.{_LAYER_OF[name]}"), name)
    elif name in FAMILIES:
        value = _Family(name)
    elif name in _LAYERS:
        value = importlib.import_module(f"physkit.{name}")
    else:
        raise AttributeError(_explain_missing(name))
    globals()[name] = value  # the next access does not come here
    return value


def _explain_missing(name: str) -> str:
    """Where a name is that is not on the front page, or which one was meant."""
    holders = [f"pk.{f}.{name}" for f in sorted(FAMILIES) if name in dir(_Family(f))]
    if holders:
        return f"physkit has no {name!r} on its front page; it is {' or '.join(holders)}"
    members = {m: f"{f}.{m}" for f in FAMILIES for m in dir(_Family(f))}
    members |= {name: name for name in (*FAMILIES, *_LAYERS, *_LAYER_OF)}
    close = difflib.get_close_matches(name, members, n=1)
    return f"physkit has no {name!r}" + (f"; did you mean {members[close[0]]!r}?" if close else "")


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
