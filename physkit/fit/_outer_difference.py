"""A misfit of shapes that do not go together: [n, 1] − [n] is [n, n], every prediction minus every datum."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from physkit.core import is_literal

Shape = tuple[int, ...]
# Operations that give the same numbers in another shape.
_RESHAPES = frozenset(
    ("broadcast_in_dim", "convert_element_type", "copy", "reshape", "squeeze", "transpose")
)
_MIN_LENGTH = 3  # shorter axes may have one length by chance


class OuterDifference(NamedTuple):
    """Shapes of what was subtracted, before it was broadcast, and of the difference."""

    prediction: Shape
    data: Shape
    difference: Shape


class _Source(NamedTuple):
    """The shape of an array before it was broadcast, and whether it is made of data alone."""

    shape: Shape
    is_data: bool


def find_outer_difference(jaxpr: Any, is_data: Sequence[bool]) -> OuterDifference | None:
    """Where a program subtracts n data from n other numbers, or the reverse, with n × n results.

    - `is_data`: of each input of the program, whether it is data.
    """
    if not any(is_data):
        return None
    sources: dict[Any, _Source] = {
        var: _Source(var.aval.shape, known)
        for var, known in zip(jaxpr.invars, is_data, strict=True)
    }

    def source_of(atom: Any) -> _Source:
        known = None if is_literal(atom) else sources.get(atom)
        return _Source(getattr(atom.aval, "shape", ()), False) if known is None else known

    for equation in jaxpr.eqns:
        found = [source_of(atom) for atom in equation.invars]
        # A function that is compiled by itself: inside of it data are data, too.
        inner = getattr(equation.params.get("jaxpr"), "jaxpr", None)
        if inner is not None and len(inner.invars) == len(found):
            outer = find_outer_difference(inner, [one.is_data for one in found])
            if outer is not None:
                return outer
        if len(equation.outvars) != 1:
            continue
        (out,) = equation.outvars
        shape = getattr(out.aval, "shape", ())
        if equation.primitive.name in _RESHAPES:
            sources[out] = found[0]
            continue
        if equation.primitive.name == "sub" and sum(one.is_data for one in found) == 1:
            prediction, data = sorted(found, key=lambda one: one.is_data)
            n = math.prod(data.shape)
            is_larger = math.prod(shape) > max(n, math.prod(prediction.shape))
            if is_larger and n >= _MIN_LENGTH and shape.count(n) > 1:
                return OuterDifference(prediction.shape, data.shape, shape)
        used = [one for one in found if one.shape]
        sources[out] = _Source(shape, bool(used) and all(one.is_data for one in used))
    return None
