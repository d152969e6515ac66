"""Riemann solvers: the flux between two states that meet at a face."""

import abc
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Module, ParameterError, safe_maximum, safe_minimum

Speeds = tuple[Float[Array, "..."], Float[Array, "..."]]
Variables = tuple[Float[Array, "..."], ...]


@runtime_checkable
class RiemannLaw(Protocol):
    """What Riemann solvers ask a conservation law; `AbstractConservationLaw` says what each means."""

    def primitive(self, conserved: Variables) -> Variables: ...

    def conserved(self, primitive: Variables) -> Variables: ...

    def flux(self, values: Variables, axis: int) -> Variables: ...

    def wave_speeds(self, values: Variables, axis: int) -> Speeds: ...

    def signal_speeds(self, left: Variables, right: Variables, axis: int) -> Speeds: ...

    def contact_fluxes(
        self, left: Variables, right: Variables, slow: Array, fast: Array, axis: int
    ) -> tuple[Array, Variables, Variables]: ...

    def exact_state(self, left: Variables, right: Variables, axis: int) -> Variables: ...

    def roe_dissipation(self, left: Variables, right: Variables, axis: int) -> Variables: ...

    def advection_parts(self, values: Variables, axis: int) -> Any: ...

    def alfven_flux(self, left: Variables, right: Variables, axis: int) -> Variables: ...


class AbstractRiemannSolver(Module):
    """A flux from the states below and above each face.

    Approximate solvers add up what each side gives by itself, so that mirrored states give mirrored
    fluxes: to the last bit, where the compiler fuses both sides alike.
    """

    @abc.abstractmethod
    def flux(self, law: RiemannLaw, left: Variables, right: Variables, axis: int) -> Variables:
        """The flux of the conserved variables along `axis`, from primitive ones on both sides."""


class Rusanov(AbstractRiemannSolver):
    """One wave speed for all: the most robust solver, and the most dissipative.

        F = ½ (F_L + F_R) − ½ s (U_R − U_L),   s = max |λ|

    **Reference:** Rusanov, USSR Comput. Math. Math. Phys. 1, 267 (1961); Toro (2009), eq. 10.56.
    """

    def flux(self, law: RiemannLaw, left: Variables, right: Variables, axis: int) -> Variables:
        speeds = (*law.wave_speeds(left, axis), *law.wave_speeds(right, axis))
        a, b, c, d = (jnp.abs(s) for s in speeds)
        half = 0.5 * safe_maximum(safe_maximum(a, b), safe_maximum(c, d))
        return tuple(
            (0.5 * f + half * u) + (0.5 * g - half * v)
            for f, g, u, v in fluxes_and_conserved(law, left, right, axis)
        )


class HLL(AbstractRiemannSolver):
    """Two waves, the fastest to either side, and one state between them.

        F = (S_R F_L − S_L F_R + S_L S_R (U_R − U_L)) / (S_R − S_L),   S_L ≤ 0 ≤ S_R

    Smears contacts and shear; exact at isolated shocks.

    **Reference:** Harten, Lax & van Leer, SIAM Rev. 25, 35 (1983); speeds as in Einfeldt, SIAM J. Numer.
    Anal. 25, 294 (1988).
    """

    def flux(self, law: RiemannLaw, left: Variables, right: Variables, axis: int) -> Variables:
        slow, fast = law.signal_speeds(left, right, axis)
        # Clipped: where all waves go one way the formula is the upwind flux, without a branch.
        slow, fast = safe_minimum(slow, 0), safe_maximum(fast, 0)
        speed_range = fast - slow
        # Two states at rest without sound, as dry ground, send out no waves: no division by 0.
        has_waves = speed_range > 0
        speed_range = jnp.where(has_waves, speed_range, 1)
        drift, mixing = 0.5 * (fast + slow) / speed_range, slow * fast / speed_range
        below, above = (
            jnp.where(has_waves, 0.5 + drift, 0.5),
            jnp.where(has_waves, 0.5 - drift, 0.5),
        )
        # The weights S_R/(S_R − S_L) and −S_L/(S_R − S_L) as ½ ± drift: mirrored states swap them exactly.
        return tuple(
            (below * f - mixing * u) + (above * g + mixing * v)
            for f, g, u, v in fluxes_and_conserved(law, left, right, axis)
        )


class HLLC(AbstractRiemannSolver):
    """Two waves with a contact between them: keeps contacts and shear layers sharp.

    For laws that say what their contact is (`contact_fluxes`): gas dynamics, shallow water.

    **Reference:** Toro, Spruce & Speares, Shock Waves 4, 25 (1994); speeds as in Batten et al., SIAM J.
    Sci. Comput. 18, 1553 (1997), with which densities and pressures stay positive.
    """

    def flux(self, law: RiemannLaw, left: Variables, right: Variables, axis: int) -> Variables:
        slow, fast = law.signal_speeds(left, right, axis)
        contact, below, above = law.contact_fluxes(left, right, slow, fast, axis)
        # The face stands still: the sign of the three speeds says which of four states it lies in.
        outer = law.flux(left, axis), law.flux(right, axis)
        return tuple(
            jnp.where(
                contact >= 0, jnp.where(slow >= 0, f, inner_f), jnp.where(fast <= 0, g, inner_g)
            )
            for f, inner_f, inner_g, g in zip(outer[0], below, above, outer[1], strict=True)
        )


class ExactRiemann(AbstractRiemannSolver):
    """The exact solution, for laws that know it (`exact_state`).

    For an ideal gas: Newton's method for the pressure between the waves, as often as it takes for the
    last digit (a fixed number of times), differentiable by the implicit-function rule; vacuum between
    or beside the states included.

    **Notes:** in single precision its derivatives need units with densities and pressures above 10⁻¹⁸; those of
    the other solvers do not.

    **Reference:** Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, 3rd ed. (2009), ch. 4.
    """

    def flux(self, law: RiemannLaw, left: Variables, right: Variables, axis: int) -> Variables:
        return law.flux(law.exact_state(left, right, axis), axis)


def unsupported_solver(law: RiemannLaw, solver: str, method: str) -> ParameterError:
    """The error for a Riemann solver that needs a method which the law does not have."""
    return ParameterError(
        f"{solver} needs more than {type(law).__name__} provides: write {method}(…), or take Rusanov() "
        "or HLL(), which work for every law"
    )


def fluxes_and_conserved(
    law: RiemannLaw, left: Variables, right: Variables, axis: int
) -> Iterator[tuple[Array, ...]]:
    """Per variable: the fluxes on the left and on the right, the conserved values there."""
    fluxes = law.flux(left, axis), law.flux(right, axis)
    return zip(*fluxes, law.conserved(left), law.conserved(right), strict=True)
