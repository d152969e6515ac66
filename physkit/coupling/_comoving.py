"""Self-gravity in an expanding universe."""

from typing import ClassVar

from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Clock, param
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
    - `hubble`: H₀, the expansion rate at a = 1, 1 / time.

    **Reference:** Quinn, Katz, Stadel & Lake, arXiv:astro-ph/9710043, section 2; Peebles, The
    Large-Scale Structure of the Universe (1980), section 7.
    """

    conserves_momentum: ClassVar[bool] = False

    inner: AbstractForce
    hubble: Float[Array, ""] = param()

    def scale_factor(self, tau: ArrayLike) -> Array:
        """a at time τ."""
        return (2 / (self.hubble * tau)) ** 2

    def factor(self, clock: Clock) -> Float[Array, ""]:
        return self.scale_factor(clock.t)
