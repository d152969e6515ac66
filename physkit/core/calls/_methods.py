"""Methods that users call on terms and integrators: wrong arguments are explained as those of functions are."""

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from .._errors import DeclarationError
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
            try:
                return bound(*args, **kwargs)
            except TypeError:
                _require_definition(self, name, method, args, kwargs)
                raise

    return call


def _require_definition(
    owner: Any, name: str, method: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """**Errors:** `DeclarationError` for a method that takes other arguments than the one that it overrides,
    where these were given.
    """
    if _takes(method, owner, args, kwargs):
        return
    for base in type(owner).__mro__[1:]:
        inherited = vars(base).get(name)
        if callable(inherited) and _takes(inherited, owner, args, kwargs):
            own, asked = (", ".join(inspect.signature(f).parameters) for f in (method, inherited))
            raise DeclarationError(
                f"{type(owner).__name__} defines {name}({own}), and it is called as {name}({asked}): define it "
                "with these arguments"
            ) from None


def _takes(method: Callable, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(method).bind(owner, *args, **kwargs)
    except TypeError:
        return False
    return True
