"""Self-gravity in an expanding universe."""

from typing import ClassVar

from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ParameterError,
    State,
    concrete_value,
    param,
    poison_where,
    require_positive,
)
from physkit.particles.forces import AbstractForce, AbstractScaledForce


class Comoving(AbstractScaledForce):
    """Gravity between particles in comoving coordinates of an Einstein–de Sitter universe.

        dx/dτ = p,   dp/dτ = a(τ) F(x),   a = (2 / H₀τ)²

    x are comoving positions, F the force that a mesh of comoving density makes of them. Time is τ with
    dτ = dt/a², negative and rising towards 0: a run from a₁ to a₂ goes from τ(a₁) to τ(a₂), with
    τ = −2/(H₀√a), and the velocities are p = a² dx/dt. So the Hamiltonian separates, and symplectic
    integrators stay symplectic. The mean density is 3H₀²/(8πG).

    **Arguments:**

    - `inner`: `ParticleMesh(grid, Gravity(G))`.
    - `hubble`: H₀ > 0, the expansion rate at a = 1, 1 / time.

    **Errors:** `ParameterError` for a run that does not start at τ < 0. A force at τ ≥ 0, which no expansion
    reaches, is NaN.

    **Reference:** Quinn, Katz, Stadel & Lake, arXiv:astro-ph/9710043, section 2; Peebles, The
    Large-Scale Structure of the Universe (1980), section 7.
    """

    conserves_momentum: ClassVar[bool] = False

    inner: AbstractForce
    hubble: Float[Array, ""] = param()

    def __check_init__(self):
        require_positive(self, "hubble")

    def check_time(self, state: State, t: Float[Array, ""]) -> None:
        super().check_time(state, t)
        start = concrete_value(t)
        if start is not None and not start < 0:
            raise ParameterError(
                f"Comoving counts τ = −2/(H₀√a) from below to 0; got t0 = {float(start):g}. "
                "Give Simulation(…, t0=-2 / (H0 * a**0.5)) of the first a"
            )

    def scale_factor(self, tau: ArrayLike) -> Array:
        """a at time τ."""
        return (2 / (self.hubble * tau)) ** 2

    def factor(self, clock: Clock) -> Float[Array, ""]:
        return poison_where(self.scale_factor(clock.t), clock.t >= 0)
