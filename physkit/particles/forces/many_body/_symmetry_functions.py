"""What a neighborhood looks like, in numbers that no rotation and no renumbering changes."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ParameterError,
    as_count,
    as_parameter,
    einsum,
    param,
    require_positive,
    safe_minimum,
    static,
)

from ..._arguments import Numbers
from ._neighborhoods import Neighborhoods


class SymmetryFunctions(Module):
    """Symmetry functions of Behler and Parrinello: smooth inputs of networks that learn energies.

        radial:   G = Σ_j e^{−(r_ij − c)²/2b²} w(r_ij)
        angular:  G = 2^{1−ζ} Σ_{j<l} (1 ± cos θ_jil)^ζ e^{−η (r_ij² + r_il²)} w(r_ij) w(r_il)
        w(r) = 1 − 10 s³ + 15 s⁴ − 6 s⁵,   s = r/cutoff

    Called with `near` in `site_energies`, it gives `[c f]`: radial ones first. With species there is a radial
    set for each species of the neighbor and an angular set for each pair of species; the network, or its
    choice of one, is to see the particle's own.

        class Learned(pk.AbstractManyBodyPotential):
            seen: pk.potentials.SymmetryFunctions
            network: pk.Network

            @property
            def cutoff(self):
                return self.seen.cutoff

            def site_energies(self, near):
                return jax.vmap(self.network)(self.seen(near))

    **Arguments:**

    - `cutoff`: length.
    - `centers`: c, `[k]`, length; ten at equal distances from 0.3 of the cutoff to it if left out.
    - `width`: b, length; the distance of the first two centers if left out.
    - `decays`: η, `[e]`, length⁻²; (0.15, 0.6, 2.4)/(0.4 cutoff)² if left out. Empty: no angular ones.
    - `exponents`: ζ, whole numbers.
    - `num_species`: of the particles; None where species do not matter.

    **Errors:** `ParameterError` for a cutoff, a width or an exponent that is not positive.

    **Good values:** the cutoff beyond the second shell of neighbors. Numbers differ by orders of magnitude:
    subtract their mean and divide by their standard deviation, both over the data, before a network sees them,
    and let the network learn the energy without its mean. Without that, training crawls.

    **Notes:** w has two continuous derivatives, where Behler's cosine has one.

    **Reference:** Behler & Parrinello, Phys. Rev. Lett. 98, 146401 (2007); Behler, J. Chem. Phys. 134, 074106
    (2011), eqs. 6 and 9.
    """

    cutoff: float = static(converter=float)
    centers: Float[Array, " k"] = param()
    width: Float[Array, ""] = param()
    decays: Float[Array, " e"] = param()
    exponents: tuple[int, ...] = static()
    num_species: int | None = static()

    def __init__(
        self,
        cutoff: float,
        *,
        centers: Numbers | None = None,
        width: Numbers | None = None,
        decays: Numbers | None = None,
        exponents: Sequence[int] = (1, 2, 4),
        num_species: int | None = None,
    ):
        self.cutoff = float(cutoff)
        if not self.cutoff > 0:
            raise ParameterError(f"cutoff must be a positive length; got {self.cutoff}")
        if centers is None:
            centers = self.cutoff * np.linspace(0.3, 1, 11)[:10]
        if decays is None:
            decays = np.array([0.15, 0.6, 2.4]) / (0.4 * self.cutoff) ** 2
        self.centers, self.decays = as_parameter(centers), as_parameter(decays)
        if width is None:
            if len(self.centers) < 2:
                raise ParameterError("width must be given where there are fewer than two centers")
            width = self.centers[1] - self.centers[0]
        self.width = as_parameter(width)
        self.exponents = tuple(as_count(x, "an exponent", ParameterError) for x in exponents)
        self.num_species = num_species

    def __check_init__(self):
        require_positive(self, "width")

    @property
    def num_functions(self) -> int:
        """How many numbers each particle gets."""
        s = self.num_species or 1
        angular = len(self.decays) * 2 * len(self.exponents)
        return s * len(self.centers) + s * (s + 1) // 2 * angular

    def __call__(self, near: Neighborhoods) -> Float[Array, "c f"]:
        r = near.distance[:, :, None]
        # The list may reach further: there w is 0, and the polynomial is not.
        s = safe_minimum(r / self.cutoff, 1)
        window = jnp.where(near.present[:, :, None], 1 - s**3 * (10 - 15 * s + 6 * s**2), 0)
        if self.num_species is not None:
            # Zero for neighbors of the other species.
            of_species = jax.nn.one_hot(near.neighbor_species, self.num_species, dtype=r.dtype)
            window = window * of_species  # [k c s]
        gaussians = jnp.exp(-0.5 * ((r - self.centers[None, None]) / self.width) ** 2)
        radial = einsum("kcs,kcf->csf", window, gaussians)
        parts = [radial.reshape(len(radial), -1)]
        if len(self.decays) and self.exponents:
            parts.append(self._angular(near, window))
        return jnp.concatenate(parts, axis=1)

    def _angular(self, near: Neighborhoods, window: Float[Array, "k c s"]) -> Float[Array, "c f"]:
        # Particles first: sums over pairs are a product of matrices for each of them.
        cosine, r = jnp.moveaxis(near.cosine, 2, 0), near.distance.T[:, :, None]
        decays = jnp.exp(-self.decays[None, None] * r**2)
        weight = jnp.moveaxis(window, 1, 0)[:, :, :, None] * decays[:, :, None, :]  # [c k s e]
        # The sum over all pairs is that over j ≠ l: a neighbor makes no angle with itself.
        different = 1 - jnp.eye(r.shape[1], dtype=r.dtype)[None]
        found = []
        first, second = np.triu_indices(weight.shape[2])
        halves = jnp.where(first == second, 0.5, 1.0).astype(r.dtype)[None, :, None]
        for zeta in self.exponents:
            for sign in (1, -1):
                bend = 2.0 ** (1 - zeta) * (1 + sign * cosine) ** zeta * different
                seen = einsum("cjl,clse->cjse", bend, weight)
                sums = jnp.sum(weight[:, :, first] * seen[:, :, second], axis=1)
                found.append((halves * sums).reshape(len(sums), -1))
        return jnp.concatenate(found, axis=1)
