"""Stochastic differential equations of any state made of arrays, with noise that may depend on the state."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import (
    AbstractComponent,
    AbstractTerm,
    Cache,
    Clock,
    DeclarationError,
    Function,
    ParameterError,
    PyTree,
    Rate,
    ShapeError,
    State,
    Tendencies,
    as_parameter,
    einsum,
)

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches
from ._tendencies import TendencyLike, as_tendencies, check_rate_shapes, terms_with_caches


def _constant(t: Array, state: PyTree, amplitude: Array) -> PyTree:
    del t
    return jax.tree.map(lambda x: amplitude, state)


class AbstractStochastic(AbstractIntegrator):
    """A method for dy = f(t, y) dt + b(t, y) dW on a state of floating arrays.

    Each number of the state has a Wiener process of its own where b has the shape of the array that it moves
    (or broadcasts to it); b of one axis more, `[*shape, m]`, mixes m of them: an amplitude matrix.
    """

    drift: eqx.AbstractVar[Tendencies]
    diffusion: eqx.AbstractVar[Tendencies]

    def __init__(
        self, *drift: TendencyLike, diffusion: AbstractTerm | Callable[..., Rate] | ArrayLike
    ):
        self.drift = as_tendencies(*drift)
        if not isinstance(diffusion, AbstractTerm) and not callable(diffusion):
            try:
                diffusion = Function(_constant, as_parameter(diffusion))
            except ParameterError as error:
                raise DeclarationError(
                    "diffusion is the amplitude b of dy = f dt + b dW: a number, or a function (t, state) → b"
                ) from error
        self.diffusion = as_tendencies(diffusion)

    def prepare(self, state: State, dt: StepSize) -> None:
        del dt
        is_component = lambda node: isinstance(node, AbstractComponent)
        for x in jax.tree.leaves(state, is_leaf=is_component):
            if is_component(x):
                raise DeclarationError(
                    f"{type(self).__name__} moves arrays, not {type(x).__name__}: Brownian(force, …) and "
                    "BAOAB(force, …) are for particles, RK methods with a WhiteNoise term for fields"
                )
            if not jnp.issubdtype(x.dtype, jnp.floating):
                raise ShapeError(f"noise moves real floating numbers; the state holds {x.dtype}")

    def init(self, plan: None, clock: Clock, state: State) -> tuple[Cache, Cache]:
        caches = self.drift.init(state)
        check_rate_shapes(self.drift, clock, state, caches)
        return caches, self.diffusion.init(state)

    def refresh(self, plan: None, clock: Clock, state: State, aux: Cache) -> Cache:
        return aux

    def is_stale(self, before: State, after: State) -> bool:
        del before, after
        return False  # every rate is computed where it is used

    def terms(self, aux: tuple[Cache, Cache]) -> TermsWithCaches:
        of_drift, of_diffusion = aux
        return (
            *terms_with_caches(self.drift, of_drift),
            *terms_with_caches(self.diffusion, of_diffusion),
        )

    @abc.abstractmethod
    def step(
        self, plan: None, clock: Clock, state: State, aux: tuple[Cache, Cache]
    ) -> tuple[State, tuple[Cache, Cache]]: ...

    def _slopes(
        self, clock: Clock, state: State, aux: tuple[Cache, Cache]
    ) -> tuple[list[Array], list[Array], tuple[Cache, Cache]]:
        """f and b for each array of the state."""
        rate, of_drift = self.drift(clock, state, aux[0])
        amplitude, of_diffusion = self.diffusion(clock, state, aux[1])
        tree = jax.tree.structure(state)
        try:
            slopes, amplitudes = tree.flatten_up_to(rate), tree.flatten_up_to(amplitude)
        except ValueError as error:
            raise ShapeError(
                f"drift and diffusion are trees like the state, an array for each of its arrays: {error}"
            ) from error
        return slopes, amplitudes, (of_drift, of_diffusion)


class EulerMaruyama(AbstractStochastic):
    """The Euler–Maruyama method, for Itô's stochastic differential equations.

        dy = f(t, y) dt + b(t, y) dW
        y' = y + f(t, y) dt + b(t, y) √dt ξ

    Averages are correct to order dt; paths to order √dt, or dt where b is constant.

    **Arguments:**

    - drift f: tendencies, or functions `(t, state) → rate`, which are summed.
    - `diffusion`: b, state / time^½: a number, or a function `(t, state) → b`; a Module that is one has
      parameters, a network for instance. b has the shape of the state's arrays (noise of its own for each
      number), or one axis more, `[*shape, m]`, which mixes m Wiener processes.

    **Errors:** `DeclarationError` for particles and fields, which have noise of their own kinds; `ShapeError`
    for a diffusion that fits no array of the state; `ParameterError` without a key.

    **Good values:** dt of a tenth of the shortest relaxation time; `Subcycle(EulerMaruyama(…), n)` for small
    steps between observations.

    **Notes:** needs a key; noise is drawn by (seed, step), so that it depends on neither chunks nor restarts.
    Derivatives go through the steps at fixed noise. In Stratonovich's sense, see `StochasticHeun`; with
    constant b both are the same.

    **Reference:** Kloeden & Platen, Numerical Solution of Stochastic Differential Equations (1992), §10.2.
    """

    drift: Tendencies
    diffusion: Tendencies

    def step(
        self, plan: None, clock: Clock, state: State, aux: tuple[Cache, Cache]
    ) -> tuple[State, tuple[Cache, Cache]]:
        slopes, amplitudes, aux = self._slopes(clock, state, aux)
        noise = _wiener_increments(clock, state, amplitudes)
        return _advance(clock, state, slopes, amplitudes, noise), aux


class StochasticHeun(AbstractStochastic):
    """Heun's method for Stratonovich's stochastic differential equations.

        dy = f(t, y) dt + b(t, y) ∘ dW
        ỹ = y + f dt + b √dt ξ,   y' = y + ½ (f + f̃) dt + ½ (b + b̃) √dt ξ

    What noise with a short memory becomes when the memory shrinks to nothing. In Itô's sense its drift is
    f + ½ b ∂b/∂y. Two evaluations a step. Averages are correct to order dt (dt² where b is constant), paths to
    order dt where each number has noise of its own.

    **Arguments:** as for `EulerMaruyama`.

    **Errors:** as for `EulerMaruyama`.

    **Notes:** needs a key.

    **Reference:** Rüemelin, SIAM J. Numer. Anal. 19, 604 (1982); Kloeden & Platen (1992), §4.9 and §15.1.
    """

    drift: Tendencies
    diffusion: Tendencies

    def step(
        self, plan: None, clock: Clock, state: State, aux: tuple[Cache, Cache]
    ) -> tuple[State, tuple[Cache, Cache]]:
        slopes, amplitudes, aux = self._slopes(clock, state, aux)
        noise = _wiener_increments(clock, state, amplitudes)
        predicted = _advance(clock, state, slopes, amplitudes, noise)
        later, later_amplitudes, aux = self._slopes(clock.at_fraction(1.0), predicted, aux)
        mean = lambda a, b: [0.5 * (x + y) for x, y in zip(a, b, strict=True)]
        return _advance(
            clock, state, mean(slopes, later), mean(amplitudes, later_amplitudes), noise
        ), aux


def _wiener_increments(clock: Clock, state: State, amplitudes: list[Array]) -> list[Array]:
    """√dt ξ for each array of the state: of its shape, or `[m]` where its amplitude is a matrix."""
    found = []
    for k, (x, b) in enumerate(zip(jax.tree.leaves(state), amplitudes, strict=True)):
        shape, is_matrix = jnp.shape(b), _is_matrix(x, b)
        if not is_matrix and not _broadcasts(shape, x.shape):
            raise ShapeError(
                f"a diffusion of shape {list(shape)} for an array {list(x.shape)}: give it that shape, or "
                f"one axis more for an amplitude matrix, {[*x.shape, 'm']}"
            )
        size = shape[-1:] if is_matrix else x.shape
        noise = jax.random.normal(jax.random.fold_in(clock.key, k), size, x.dtype)
        found.append(jnp.sqrt(clock.dt).astype(x.dtype) * noise)
    return found


def _is_matrix(x: Array, b: Array) -> bool:
    return jnp.ndim(b) == x.ndim + 1 and jnp.shape(b)[:-1] == x.shape


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def _advance(
    clock: Clock, state: State, slopes: list[Array], amplitudes: list[Array], noise: list[Array]
) -> State:
    """state + f dt + b ΔW."""
    leaves, tree = jax.tree.flatten(state)

    def moved(x: Array, f: Array, b: Array, dw: Array) -> Array:
        b = jnp.asarray(b, x.dtype)
        kick = einsum("...m,m->...", b, dw) if _is_matrix(x, b) else b * dw
        return x + jnp.asarray(clock.dt * f, x.dtype) + kick

    return tree.unflatten(
        [moved(*each) for each in zip(leaves, slopes, amplitudes, noise, strict=True)]
    )
