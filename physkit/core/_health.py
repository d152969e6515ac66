"""Health: the faults of a run, which the host turns into errors at the end of a chunk."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from ._faults import ADVICE, Fault, Faults
from ._growable import has_overflow
from ._module import Module, data
from ._terms import AbstractTerm
from ._types import PyTree


class Health(Module):
    """Fault bits of a part of a simulation: a scalar, or one number for each member of a batch."""

    bits: Int[Array, "..."] = data()

    def faults(self) -> Fault:
        """The faults of all members together (host only)."""
        return Fault(int(np.bitwise_or.reduce(np.asarray(self.bits), axis=None)))

    @property
    def ok(self) -> bool:
        """Whether there is no fault (host only)."""
        return self.faults() == Fault(0)

    def check(self, when: str = "", **context: Any) -> None:
        """Raise the error of the most specific fault, if there is one (host only).

        **Arguments:**

        - `when`: a prefix of the message, such as the steps in question.
        - `context`: attributes of the error: `sim`, `carry` and `steps`, which `diagnose` replays.

        **Errors:** that of the first fault in `ADVICE`.
        """
        found = self.faults()
        # `ADVICE` has causes before what follows from them.
        for fault, (kind, advice) in ADVICE.items():
            if fault in found:
                advice = _advice_of_terms(fault, context.get("sim")) or advice
                error = kind(f"{when}: {advice}" if when else advice)
                for name, value in context.items():
                    setattr(error, name, value)
                raise error


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    """Whether every floating leaf of `tree` is finite everywhere."""
    # Arrays of one shape are checked together: each reduction is a piece of program of its own.
    finite: dict[tuple[int, ...], Array] = {}
    for x in jax.tree.leaves(tree):
        if eqx.is_inexact_array(x):
            others, here = finite.get(x.shape), jnp.isfinite(x)
            finite[x.shape] = here if others is None else others & here
    checks = [jnp.all(x) for x in finite.values()]
    return jnp.all(jnp.stack(checks)) if checks else jnp.array(True)


def collect_faults(caches: PyTree, *faults: tuple[Fault, Bool[Array, ""]]) -> Health:
    """The health of a run: the faults that its caches carry, overflows, and those given."""
    # Traced: no branches on values, only bits.
    bits = jnp.zeros((), jnp.int32)
    for node in jax.tree.leaves(caches, is_leaf=_is_faults):
        if _is_faults(node):
            # Of several replicas there are several.
            bits = bits | (jnp.bitwise_or.reduce(node.bits) if node.bits.ndim else node.bits)
    for fault, where in ((Fault.OVERFLOW, has_overflow(caches)), *faults):
        bits = bits | jnp.where(where, jnp.int32(fault), jnp.int32(0))
    return Health(bits)


def _advice_of_terms(fault: Fault, sim: Any) -> str | None:
    """What the terms of a simulation say about a fault; None where they say nothing."""
    for term in jax.tree.leaves(sim, is_leaf=_is_term):
        advice = term.advice(fault) if _is_term(term) else None
        if advice is not None:
            return advice
    return None


def _is_term(node: PyTree) -> bool:
    return isinstance(node, AbstractTerm)


def _is_faults(node: PyTree) -> bool:
    return isinstance(node, Faults)
