"""How fields change the momentum of fast charges: relativistic pushers."""

import abc

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from physkit.core import Module

from ..particle._rotation import cross, rotate


class AbstractPusher(Module):
    """One step of du/dt = (q/m)(E + v × B), u = γv, in fields that are known in its middle.

    u is the momentum per mass. `electric` and `magnetic` are ½(q/m) dt times E and B: `[n d]`, and `[n 3]` or,
    in the plane, `[n 1]`, the component across it.
    """

    @abc.abstractmethod
    def push(
        self,
        u: Float[Array, "n d"],
        electric: Float[Array, "n d"],
        magnetic: Float[Array, "n c"],
        speed_of_light: Float[Array, ""],
    ) -> Float[Array, "n d"]:
        """u after the step."""


class RelativisticBoris(AbstractPusher):
    """Boris's pusher: half of E, a rotation about B/γ, half of E.

    In pure B it keeps |u| to rounding. Where E and B cancel, E + v × B = 0, a fast particle feels a force all
    the same.

    **Reference:** Boris, Proc. 4th Conf. Num. Sim. Plasmas, 3 (1970); Birdsall & Langdon (1991), section 15-4.
    """

    def push(
        self,
        u: Float[Array, "n d"],
        electric: Float[Array, "n d"],
        magnetic: Float[Array, "n c"],
        speed_of_light: Float[Array, ""],
    ) -> Float[Array, "n d"]:
        middle = u + electric
        gamma = lorentz_factor(middle, speed_of_light)
        return rotate(middle, magnetic / gamma) + electric


class Vay(AbstractPusher):
    """Vay's pusher: the velocity in the middle is the mean of v before and after.

    It holds the E × B drift at any speed, and in uniform B it keeps |u|; volumes in phase space are not kept.

    **Reference:** Vay, Phys. Plasmas 15, 056701 (2008), eqs. 9–13.
    """

    def push(
        self,
        u: Float[Array, "n d"],
        electric: Float[Array, "n d"],
        magnetic: Float[Array, "n c"],
        speed_of_light: Float[Array, ""],
    ) -> Float[Array, "n d"]:
        gamma = lorentz_factor(u, speed_of_light)
        start = u + 2 * electric + cross(u / gamma, magnetic)
        t = magnetic / _mean_gamma(start, magnetic, speed_of_light)
        turned = start + _dot(start, t) * t if start.shape[1] == 3 else start
        return (turned + cross(start, t)) / (1 + _square(t))


class HigueraCary(AbstractPusher):
    """Higuera and Cary's pusher: Boris's, with γ that of the mean of u before and after the rotation.

    It holds the E × B drift at any speed and keeps volumes in phase space, and in pure B it keeps |u|.

    **Reference:** Higuera & Cary, Phys. Plasmas 24, 052104 (2017), eqs. 18–24.
    """

    def push(
        self,
        u: Float[Array, "n d"],
        electric: Float[Array, "n d"],
        magnetic: Float[Array, "n c"],
        speed_of_light: Float[Array, ""],
    ) -> Float[Array, "n d"]:
        middle = u + electric
        gamma = _mean_gamma(middle, magnetic, speed_of_light)
        return rotate(middle, magnetic / gamma) + electric


def lorentz_factor(u: Float[Array, "n d"], speed_of_light: Float[Array, ""]) -> Float[Array, "n 1"]:
    """γ = √(1 + u²/c²)."""
    return jnp.sqrt(1 + _square(u / speed_of_light))


def _mean_gamma(u: Array, magnetic: Array, speed_of_light: Array) -> Float[Array, "n 1"]:
    """γ² = ½(σ + √(σ² + 4(τ² + (u·τ)²/c²))) with σ = 1 + u²/c² − τ², τ = ½(q/m) dt B."""
    w = u / speed_of_light
    # All relative to 1 + u²/c² + τ², with squares that single precision holds. γ does not depend on the unit.
    square = lax.stop_gradient(1 + _square(w) + _square(magnetic))
    unit = jnp.sqrt(square)
    w, s = w / unit, magnetic / unit
    sigma = 1 / square + _square(w) - _square(s)
    along = _dot(w, s) ** 2 if u.shape[1] == 3 else 0.0
    rest = 4 * (_square(s) / square + along)
    # γ ≥ 1 makes this positive: no root of 0 is differentiated.
    larger = jnp.abs(sigma) + jnp.sqrt(sigma**2 + rest)
    # Where σ < 0, σ + √(…) is a small difference: by the product of the two roots instead.
    return unit * jnp.sqrt(0.5 * jnp.where(sigma < 0, rest / larger, larger))


def _square(x: Array) -> Float[Array, "n 1"]:
    return jnp.sum(x * x, axis=1, keepdims=True)


def _dot(a: Array, b: Array) -> Float[Array, "n 1"]:
    return jnp.sum(a * b, axis=1, keepdims=True)
