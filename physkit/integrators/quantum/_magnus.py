"""Exponentials of small generators, and where the Magnus expansion takes a driven one."""

import math

import jax.numpy as jnp
import jax.scipy.linalg
from jaxtyping import Array, Float

from physkit.core import Clock, DeclarationError, ParameterError, State, put_component, static
from physkit.quantum import AbstractEvolution, StateVector

from .._integrator import AbstractOneStep, TermsWithCaches

_GAUSS = math.sqrt(3) / 6  # Gauss's two points are ½ ± √3/6
_MOST = 4096  # numbers of a state whose generator, squared as many, is worth a matrix

Exponent = tuple[tuple[float, ...], tuple[Float[Array, ""], ...]]


def magnus_exponents(clock: Clock, order: int) -> list[Exponent]:
    """Weights and times of Σ wᵢ H(tᵢ) for each exponential of a step, the first to act first.

    Order 2 is H in the middle; order 4 two exponentials without commutators, of H at Gauss's points (Blanes et
    al., Phys. Rep. 470, 151 (2009), eq. 258).
    """
    if order == 2:
        return [((1.0,), (clock.at_fraction(0.5).t,))]
    times = (clock.at_fraction(0.5 - _GAUSS).t, clock.at_fraction(0.5 + _GAUSS).t)
    more, less = 0.25 + _GAUSS, 0.25 - _GAUSS
    return [((more, less), times), ((less, more), times)]


class Magnus(AbstractOneStep):
    """Exponentials of the generator as a matrix, for few levels. Order 2, or 4.

        y' = exp(dt G(t + dt/2)) y

    Exact for whatever is constant within a step, closed or open: pulses of `PiecewisePulse`, decay. A vector
    takes a matrix of D², a density matrix one of D⁴ numbers.

    **Arguments:**

    - `evolution`: a `UnitaryEvolution` or a `Lindblad`.
    - `order`: 2: the generator in the middle of the step; 4: two exponentials without commutators.

    **Errors:** `DeclarationError` for another equation, or a state of more than 4096 numbers.

    **Good values:** up to 6 levels of an open system, 100 of a closed one.

    **Reference:** Blanes, Casas, Oteo & Ros, Phys. Rep. 470, 151 (2009).
    """

    evolution: AbstractEvolution
    order: int = static(default=2)

    def __check_init__(self):
        if not isinstance(self.evolution, AbstractEvolution):
            raise DeclarationError("Magnus advances UnitaryEvolution(H) or Lindblad(H, …)")
        if self.order not in (2, 4):
            raise ParameterError(f"Magnus has orders 2 and 4; got order={self.order!r}")

    def step(self, plan: None, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        quantum = self.evolution.state_of(state)
        x = quantum.array
        if isinstance(quantum, StateVector):
            quantum.register.require_whole("an exponential of the whole generator")
        if x.size > _MOST:
            raise DeclarationError(
                f"Magnus makes a matrix of the generator, here of {x.size}² numbers: take Krylov for vectors, "
                "RK4 or Diffrax for density matrices"
            )
        y = x.reshape(-1)
        # One matrix a time, shared by the exponentials of a step.
        times = magnus_exponents(clock, self.order)[0][1]
        matrices = [self._generator(t, quantum.dims, x) for t in times]
        for weights, _ in magnus_exponents(clock, self.order):
            generator = sum(w * g for w, g in zip(weights, matrices, strict=True))
            y = jax.scipy.linalg.expm(generator * clock.dt.astype(x.dtype)) @ y
        after = quantum.with_array(y.reshape(x.shape))
        return put_component(state, self.evolution.component, after), aux

    def _generator(self, t: Array, dims: tuple[int, ...], x: Array) -> Array:
        """The generator at time `t` as a matrix, from its action on unit vectors."""
        units = jnp.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape)
        columns = jax.vmap(lambda unit: self.evolution.generator(unit, t, dims))(units)
        return columns.reshape(x.size, x.size).T

    def terms(self, aux: None) -> TermsWithCaches:
        return ((self.evolution, aux),)
