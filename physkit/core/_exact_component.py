"""Components with an exact form: fixed-point integers, from which increments are subtracted exactly."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool

from ._components import AbstractComponent
from ._module import replace_fields
from ._types import PyTree, State


class AbstractExactComponent(AbstractComponent):
    """A component that may hold its numbers as fixed-point integers, beside floats rounded from them.

        x ⊕ δ ⊕ (−δ) = x    to the last bit, while `fixed_point` is not None

    `shift` then adds to the integers and derives the floats from them. Consider a step that is a sequence of
    shifts, each by an increment that does not depend on what it shifts. The same shifts with opposite sign in
    opposite order reverse it. The adjoint `Reversible` does that.
    """

    # The integers; None while the component holds floats only.
    fixed_point: eqx.AbstractVar[Any]
    # Names of the fields that a step changes: their cotangents are carried from step to step.
    evolving_leaves: eqx.AbstractClassVar[tuple[str, ...]]
    # Those of them that a kick shifts: forces must not depend on these, or a kick could not be reversed.
    kicked_leaves: ClassVar[tuple[str, ...]] = ()
    # Whether `to_fixed_point` must know what one step changes, to choose a range.
    needs_trial_step: ClassVar[bool] = False

    @abc.abstractmethod
    def to_fixed_point(
        self,
        dt: ArrayLike,
        range_factor: float,
        after: "AbstractExactComponent | None" = None,
        smallest_range: float = 0.0,
    ) -> "AbstractExactComponent":
        """This component with its integers; derivatives pass through the rounding.

        **Arguments:**

        - `dt`: length of a step, in time units.
        - `range_factor`: how many times larger than now numbers may become.
        - `after`: this component one step later, where it `needs_trial_step`.
        - `smallest_range`: up to which numbers may become in any case, where they have no scale of their own.
        """

    @abc.abstractmethod
    def exact_bits(self) -> Sequence[PyTree]:
        """The integers that this component is made of: equal only if all its bits are."""

    def drop_fixed_point(self) -> "AbstractExactComponent":
        """This component as plain floats."""
        return replace_fields(self, {"fixed_point": None})

    # --- sharded over devices: a backward pass migrates, too --------------------------------------

    @property
    def is_migrating(self) -> bool:
        """Whether rows of this component move from device to device."""
        return False

    def migrate_with(
        self, companion: "AbstractExactComponent"
    ) -> tuple["AbstractExactComponent", "AbstractExactComponent"]:
        """`migrate`; the rows of `companion`, say cotangents of this component's, move in the same way."""
        return self, companion

    def restore_rows(
        self, initial: "AbstractExactComponent", companion: "AbstractExactComponent"
    ) -> tuple["AbstractExactComponent", "AbstractExactComponent", Bool[Array, ""]]:
        """Reorder the rows of this component and of `companion` as in `initial`.

        **Returns:** both, and whether every row of `initial` was found.
        """
        del initial
        return self, companion, jnp.array(True)


def is_exact_component(node: PyTree) -> bool:
    """Whether this component has an exact form."""
    return isinstance(node, AbstractExactComponent)


def has_fixed_point(state: State) -> bool:
    """Whether any component of `state` holds fixed-point numbers, so that its steps can be reversed."""
    nodes = jax.tree.leaves(state, is_leaf=is_exact_component)
    return any(is_exact_component(node) and node.fixed_point is not None for node in nodes)


def drop_fixed_point(state: State) -> State:
    """`state` with floats only."""

    def drop(node: PyTree) -> PyTree:
        return node.drop_fixed_point() if is_exact_component(node) else node

    return jax.tree.map(drop, state, is_leaf=is_exact_component)


def exact_bits(state: State) -> list[Array]:
    """The integers of all exact components of a state: equal only if all their bits are."""
    nodes = jax.tree.leaves(state, is_leaf=is_exact_component)
    return jax.tree.leaves([node.exact_bits() for node in nodes if is_exact_component(node)])
