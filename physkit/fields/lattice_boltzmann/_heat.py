"""Heat in a fluid on a lattice: a second set of populations, and the buoyancy that it causes."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from physkit.core import Module, param, require_positive

from ._lattice import Lattice
from ._populations import thermal_equilibrium


class Heat(Module):
    """A temperature that the fluid carries, that spreads, and that makes the fluid rise.

        ∂T/∂t + u·∇T = κ ∇²T,   acceleration a (T − T₀)

    By populations of their own, on D2Q5 or D3Q7. A temperature at a side is set by halfway anti-bounce-back,
    insulation by bounce-back: both half a cell beyond the last cells. Solids are insulated.

    **Arguments:**

    - `diffusivity`: κ, length² / time.
    - `acceleration`: a, `[d]`, per unit of temperature: −gβ for gravity g and thermal expansion β, [0, 9.81 β]
      where y points up. None for a temperature that weighs nothing.
    - `reference`: T₀, where there is no force.

    **Reference:** Guo, Shi & Zheng, Int. J. Numer. Methods Fluids 39, 325 (2002); Ginzburg, Adv. Water Resour.
    28, 1171 (2005).
    """

    diffusivity: Float[Array, ""] = param()
    acceleration: Float[Array, " d"] | None = param(None)
    reference: Float[Array, ""] = param(0.0)

    def __check_init__(self):
        require_positive(self, "diffusivity")

    def relaxation_time(self, lattice: Lattice, lattice_diffusivity: Array) -> Array:
        """τ of the flux, in steps."""
        return lattice_diffusivity * float(1 / lattice.sound_speed_squared) + 0.5

    def collide(
        self,
        lattice: Lattice,
        populations: Array,
        temperature: Array,
        velocity: list[Array],
        tau: Array,
    ) -> Array:
        """The populations after the collision: the flux with τ, the rest such that (τ₊ − ½)(τ₋ − ½) = ¼."""
        excess = populations - thermal_equilibrium(lattice, temperature, velocity)
        opposite = lax.rev(excess, (0,))
        odd_rate, even_rate = 1 / tau, 1 / (0.5 + 0.25 / (tau - 0.5))
        even, odd = (0.5 * even_rate) * (excess + opposite), (0.5 * odd_rate) * (excess - opposite)
        return populations - even - odd

    def force(self, density: Array, temperature: Array) -> list[Array] | None:
        """The force on the volume of a cell over its acceleration unit, by axis."""
        if self.acceleration is None:
            return None
        excess = density * (temperature - self.reference)
        return [a * excess for a in self.acceleration]


def bounce_from_solids(
    lattice: Lattice, before: Array, streamed: Array, is_cut: dict[int, Array]
) -> Array:
    """`streamed` with the populations that go into a solid sent back: no heat passes its surface."""
    out = list(streamed)
    for i, j in enumerate(lattice.opposites.tolist()):
        if i in is_cut:
            out[j] = jnp.where(is_cut[i], before[i], out[j])
    return jnp.stack(out)
