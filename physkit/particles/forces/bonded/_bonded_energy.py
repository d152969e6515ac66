"""Any energy of given pairs, triples, … of particles, as a plain function."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ParameterError,
    PyTree,
    ShapeError,
    as_parameter,
    call_user_function,
    concrete_value,
    static,
)

from ..._arguments import Numbers
from ._bonded import AbstractBonded, Differences, Vectors
from ._local_tuples import LocalTuples
from ._tuples import Tuples


class BondedEnergy(AbstractBonded):
    """Your own energy of given pairs, triples, … of particles; the force is its negative gradient.

        def quartic(x, p):
            stretch = jnp.linalg.norm(x[1]) - p["length"]
            return p["stiffness"] * stretch**4

        pk.BondedEnergy(pairs, quartic, {"stiffness": 3.0, "length": lengths})

        U = Σ function(x₁ − x₁, x₂ − x₁, …)

    **Arguments:**

    - `places`: `[m k]` whole numbers: places of the k ≥ 2 particles of each tuple in the particle arrays.
    - `function`: `(x) → energy`, or `(x, parameters) → energy`, of one tuple: x, `[k d]`, are positions seen
      from the first particle, by the nearest image; x[0] is 0.
    - `parameters`: a pytree of numbers, which are those of all tuples, and of arrays `[m …]`, of which the
      function gets the rows of its tuple; `pk.Network(…)` in it is the same for all. All are differentiable.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for a parameter that is neither a number nor `[m …]`, and for a function that
    returns no number; `ParameterError` for places that do not exist, or one named twice in a row;
    `DeclarationError` for a function of other arguments.

    **Notes:** an energy of differences of positions conserves momentum, and has a virial. Where its gradient
    is not defined (two particles on one spot), use `jnp.where` as for any derivative. Define the function
    once: every new function object compiles again.
    """

    tuple_name: ClassVar[str] = "bonds"

    tuples: Tuples
    function: Callable = static()
    parameters: PyTree
    component: str | None = static(default=None)

    def __init__(
        self,
        places: Numbers,
        function: Callable,
        parameters: PyTree = None,
        component: str | None = None,
    ):
        self.tuples = Tuples.of(places, _width(places), self.tuple_name)
        self.function, self.component = function, component
        m = self.tuples.places.shape[0]
        self.parameters = jax.tree.map(
            lambda value: _as_parameter(value, m), parameters, is_leaf=_is_module
        )

    @property
    def differences(self) -> Differences:
        return tuple((k, 0) for k in range(1, self.tuples.places.shape[1]))

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        signature = "(x)" if self.parameters is None else "(x, parameters)"

        def energy(x: tuple[Float[Array, " d"], ...], parameters: PyTree) -> Float[Array, ""]:
            positions = jnp.stack([jnp.zeros_like(x[0]), *x])
            arguments = (positions,) if parameters is None else (positions, parameters)
            what = "the function of BondedEnergy"
            value = call_user_function(self.function, arguments, what, signature)
            if jnp.shape(value) != ():
                raise ShapeError(f"{what} must return one number; got shape {jnp.shape(value)}")
            return value

        def rows(value: PyTree) -> PyTree:
            return value if _is_module(value) else local.parameters(value)

        def axis(value: PyTree) -> int | None:
            return None if _is_module(value) or not value.ndim else 0

        parameters = jax.tree.map(rows, self.parameters, is_leaf=_is_module)
        axes = jax.tree.map(axis, self.parameters, is_leaf=_is_module)
        return eqx.filter_vmap(energy, in_axes=(0, axes))(vectors, parameters)


def _is_module(value: object) -> bool:
    return isinstance(value, Module)


def _as_parameter(value: PyTree, m: int) -> PyTree:
    if _is_module(value):
        return value
    array = as_parameter(value)
    if getattr(array, "ndim", 0) and array.shape[0] != m:
        raise ShapeError(
            f"a parameter must be a number or have a row for each of {m} tuples; got {array.shape}"
        )
    return array


def _width(places: Numbers) -> int:
    numbers = concrete_value(places)
    if numbers is None:
        raise ParameterError("places must be known numbers, not traced: build them outside of jit")
    if numbers.ndim != 2 or numbers.shape[1] < 2:
        raise ShapeError(f"places must be [m k] with k of 2 or more; got shape {numbers.shape}")
    return numbers.shape[1]
