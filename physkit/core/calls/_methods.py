"""Methods that users call on terms and integrators: wrong arguments are explained as those of functions are."""

import functools
import types
from collections.abc import Callable
from typing import Any

from ._explain import explain_failure

# What terms, equations and integrators are asked for, in scripts and by the loop.
_EXPLAINED = ("__call__", "energy", "force", "virial", "rate", "init", "refresh", "step")


def explain_methods(namespace: dict[str, Any]) -> dict[str, Any]:
    """The body of a class, whose methods of these names explain a call that does not fit them."""
    found = {name: namespace[name] for name in _EXPLAINED if name in namespace}
    plain = {name: f for name, f in found.items() if isinstance(f, types.FunctionType)}
    return {**namespace, **{name: _explained(name, f) for name, f in plain.items()}}


def _explained(name: str, method: Callable) -> Callable:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        kind = type(self).__name__
        shown = kind if name == "__call__" else f"{kind}.{name}"
        bound = types.MethodType(method, self)
        with explain_failure(bound, shown, args, kwargs, (TypeError, AttributeError)):
            return bound(*args, **kwargs)

    return call
