"""Annotations: which values they allow, and what they ask for in words."""

import collections.abc
import dataclasses
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import numpy as np
from jaxtyping import AbstractArray


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union; the hint itself if it is none."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(part for one in typing.get_args(hint) for part in alternatives(one))
    if isinstance(hint, TypeVar) and hint.__bound__ is not None:
        return alternatives(hint.__bound__)
    return (hint,)


def allows(hint: Any, value: Any) -> bool | None:
    """Whether one alternative allows `value`; None where this is not known."""
    if hint is None or hint is type(None):
        return value is None
    if collections.abc.Callable in (hint, typing.get_origin(hint)):
        return callable(value)
    if not isinstance(hint, type) or typing.get_origin(hint) is not None:
        return None
    if hint in (float, int, bool):
        no_number = isinstance(value, str | bytes | type | dict | list | tuple | eqx.Module)
        return False if no_number or value is None else None
    if hint is Path:
        return isinstance(value, Path)
    is_ours = hint.__module__.startswith("physkit.") and not getattr(hint, "_is_protocol", False)
    if issubclass(hint, eqx.Module) or hint is str or (is_ours and not is_array_type(hint)):
        return isinstance(value, hint)
    if is_array_type(hint):
        return _allows_array(hint, value)
    return None


def _allows_array(hint: Any, value: Any) -> bool | None:
    if value is None:
        return False
    if is_real(hint) and np.iscomplexobj(value):
        return False
    rank = _rank(hint)
    has_rank = hasattr(value, "ndim")
    return None if rank is None or not has_rank else value.ndim == rank


def _rank(hint: Any) -> int | None:
    return len(hint.dims) if hint.index_variadic is None else None


def is_array_type(hint: Any) -> bool:
    """Whether it is a jaxtyping annotation of arrays."""
    return isinstance(hint, type) and issubclass(hint, AbstractArray) and hasattr(hint, "dims")


def is_real(hint: Any) -> bool:
    """Whether it is one of real floating arrays."""
    kinds = hint.dtypes if isinstance(hint.dtypes, list | tuple) else ()
    return bool(kinds) and all(str(kind).startswith(("float", "bfloat")) for kind in kinds)


def describe_hint(hint: Any) -> str:
    """What an annotation asks for, in words."""
    if collections.abc.Callable in (hint, typing.get_origin(hint)):
        return "a function"
    plain = {
        str: "a string",
        float: "a number",
        int: "a number",
        bool: "True or False",
        Path: "a path",
    }
    if hint in plain:
        return plain[hint]
    if is_array_type(hint):
        rank = _rank(hint)
        real = "real " if is_real(hint) else ""
        one = f"one {real}number"
        return (
            one if rank == 0 else f"an array of {real}numbers with shape [{hint.dim_str.strip()}]"
        )
    name = hint.__name__
    kind = _KINDS.get(name)
    return f"{article(name)} {name}" + (f" ({kind})" if kind else "")


# Examples of what an abstract class stands for; by name, since this layer knows none of them.
_KINDS = {
    "AbstractBodies": "Particles or RigidBodies",
    "AbstractIntegrator": "e.g. RK4(…) or VelocityVerlet(force)",
    "AbstractPairPotential": "e.g. LennardJones(); your own is a class with energy(self, r)",
    "AbstractSpace": "e.g. Box([10, 10, 10]) or Free()",
    "AbstractForce": "e.g. Pairwise(LennardJones(), cutoff=2.5)",
    "AbstractAdjoint": "e.g. NestedCheckpoint()",
    "AbstractScheme": "e.g. pk.schemes.Spectral()",
    "AbstractRiemannSolver": "e.g. pk.riemann.HLLC()",
    "AbstractReconstruction": "e.g. pk.reconstructions.MUSCL()",
    "AbstractLimiter": "e.g. pk.limiters.VanLeer()",
    "AbstractKernel": "e.g. pk.kernels.CIC()",
    "Grid": "Grid([length], (cells,))",
    "Field": "Field(data, grid)",
    "Particles": "Particles(position)",
    "Simulation": "Simulation(integrator, dt=…)",
}


def advice_for_value(name: str, value: Any, parts: tuple[Any, ...]) -> str:
    """What to do about an argument `name` whose `value` is of none of the kinds `parts`; or nothing."""
    if isinstance(value, type):
        classes = tuple(p for p in parts if isinstance(p, type))
        if issubclass(value, classes):
            return f": write {value.__name__}(…), with its arguments"
    member = _member_of_kind(value, tuple(p for p in parts if isinstance(p, type)))
    if member is not None:
        return f": give one of them, {name}{member}"
    # Terms have a method of that name.
    advice = [p.advice for p in parts if isinstance(getattr(p, "advice", None), str)]
    return f"; {advice[0]}" if advice else ""


def _member_of_kind(value: Any, kinds: tuple[type, ...]) -> str | None:
    """How one writes the first member of a list, dict or Module that is of one of `kinds`; None for none."""
    members: dict[str, Any] = {}
    if isinstance(value, list | tuple):
        members = {f"[{k}]": x for k, x in enumerate(value)}
    elif isinstance(value, dict):
        members = {f"[{k!r}]": x for k, x in value.items()}
    elif dataclasses.is_dataclass(value):
        members = {f".{f.name}": getattr(value, f.name, None) for f in dataclasses.fields(value)}
    modules = tuple(kind for kind in kinds if issubclass(kind, eqx.Module))
    return next((member for member, x in members.items() if isinstance(x, modules)), None)


def article(name: str) -> str:
    """The article before a name: "a" or "an"."""
    return "an" if name[:1] in "AEIOU" else "a"
