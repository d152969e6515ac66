"""The Tersoff potential."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import ShapeError, param, require_nonnegative, require_positive, safe_clip, static

from ._neighborhoods import Neighborhoods
from ._potential import AbstractManyBodyPotential

BY_SPECIES = ("A", "B", "lambda1", "lambda2", "lambda3", "beta", "n", "c", "d", "h", "R", "S")


class Tersoff(AbstractManyBodyPotential):
    """Tersoff potential for silicon, carbon, germanium and their compounds.

        U = ½ Σ_{i≠j} f(r_ij) [A e^{−λ₁ r_ij} − b_ij B e^{−λ₂ r_ij}]
        b_ij = χ (1 + βⁿ ζⁿ)^{−1/2n},   ζ = Σ_{l≠i,j} f(r_il) g(θ_jil) e^{[λ₃ (r_ij − r_il)]^m}
        g(θ) = 1 + c²/d² − c²/[d² + (h − cos θ)²]

    f falls as ½ + ½ cos π(r − R)/(S − R) from 1 at R to 0 at S.

    **Arguments:** each a number, or `[s]` by species.

    - `A`, `B`: energy. `lambda1`, `lambda2`, `lambda3`: inverse length.
    - `beta`, `n`, `c`, `d`, `h`: of the bond order. `R`, `S`: of the cutoff, length.
    - `chi`: χ, 1, or a symmetric `[s s]` by the species of a bond.
    - `m`: 1 or 3.

    Between species A, B, R and S are geometric and λ₁, λ₂ arithmetic means; all else is that of atom i.

    **Good values:** silicon (the third parametrization) is the default, in eV and Å: diamond lattice of
    a = 5.432 Å, −4.6297 eV per atom.

    **Reference:** Tersoff, Phys. Rev. B 38, 9902 (1988), eqs. 1 and 2; 39, 5566 (1989), eq. 2, for compounds.
    """

    A: Float[Array, "..."] = param(1830.8)
    B: Float[Array, "..."] = param(471.18)
    lambda1: Float[Array, "..."] = param(2.4799)
    lambda2: Float[Array, "..."] = param(1.7322)
    lambda3: Float[Array, "..."] = param(0.0)
    beta: Float[Array, "..."] = param(1.1e-6)
    n: Float[Array, "..."] = param(0.78734)
    c: Float[Array, "..."] = param(100390.0)
    d: Float[Array, "..."] = param(16.217)
    h: Float[Array, "..."] = param(-0.59825)
    R: Float[Array, "..."] = param(2.7)
    S: Float[Array, "..."] = param(3.0)
    chi: Float[Array, "..."] = param(1.0)
    m: int = static(default=3)

    def __check_init__(self):
        require_positive(self, "A", "n", "d", "R", "S")
        require_nonnegative(self, "B", "beta", "c")
        count = self.num_species
        for name in BY_SPECIES:
            if getattr(self, name).shape not in ((), (count,)):
                raise ShapeError(
                    f"Tersoff.{name} must be a number or have one for each of {count} species; got "
                    f"shape {getattr(self, name).shape}"
                )
        if self.chi.shape not in ((), (count, count)):
            raise ShapeError(f"Tersoff.chi must be a number or [s s]; got shape {self.chi.shape}")

    @property
    def num_species(self) -> int | None:
        sizes = [getattr(self, name).shape[0] for name in BY_SPECIES if getattr(self, name).ndim]
        return max(sizes, default=None)

    @property
    def cutoff(self) -> Float[Array, ""]:
        return jnp.max(self.S)

    def site_energies(self, near: Neighborhoods) -> Float[Array, " c"]:
        r = near.distance
        row = lambda x: _of_species(x, near.species)[None] if x.ndim else x
        wide = lambda x: row(x)[None] if x.ndim else x

        def bond(x: Array, mean) -> Array:
            """A parameter of the bond i–j, `[k c]` or a number."""
            if not x.ndim:
                return x
            return mean(row(x), _of_species(x, near.neighbor_species))

        reach = self._cutoff_function(r, bond(self.R, _geometric), bond(self.S, _geometric))
        # Barrier: the compiler would compute the cosine of a bond again for each pair of bonds.
        reach = jax.lax.optimization_barrier(jnp.where(near.present, reach, 0))

        # Pairs of neighbors: bond i–j along axis 0, i–l along axis 1.
        g = _angular(near.cosine, wide(self.c), wide(self.d), wide(self.h))
        # Where either place is empty, the exponent could overflow before it is masked.
        both = near.both_present
        longer = jnp.where(both, r[:, None] - r[None], 0)
        growth = jnp.exp((wide(self.lambda3) * longer) ** self.m)
        zeta = jnp.sum(jnp.where(both, reach[None] * g * growth, 0), axis=1)

        n = row(self.n)
        # (βζ)ⁿ has an infinite slope at 0: a bond whose ends have no other neighbors.
        power = jnp.where(zeta > 0, jnp.where(zeta > 0, row(self.beta) * zeta, 1) ** n, 0)
        order = (1 + power) ** (-1 / (2 * n))
        if self.chi.ndim:
            assert near.species is not None  # `ManyBody` has checked it
            order = order * self.chi[near.species[None], near.neighbor_species]
        repulsion = bond(self.A, _geometric) * jnp.exp(-bond(self.lambda1, _arithmetic) * r)
        attraction = bond(self.B, _geometric) * jnp.exp(-bond(self.lambda2, _arithmetic) * r)
        return near.sum(reach * (repulsion - order * attraction)) / 2

    def _cutoff_function(self, r: Array, inner: Array, outer: Array) -> Array:
        phase = safe_clip((r - inner) / (outer - inner), 0, 1)
        return 0.5 + 0.5 * jnp.cos(jnp.pi * phase)


def _of_species(x: Float[Array, "..."], species: Int[Array, "..."] | None) -> Float[Array, "..."]:
    return x[species] if x.ndim else x


def _geometric(a: Array, b: Array) -> Array:
    return jnp.sqrt(a * b)


def _arithmetic(a: Array, b: Array) -> Array:
    return (a + b) / 2


def _angular(cosine: Array, c: Array, d: Array, h: Array) -> Array:
    return 1 + c**2 / d**2 - c**2 / (d**2 + (h - cosine) ** 2)
