"""Truncate a pair potential at a finite distance, and correct for what the cut leaves out."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from physkit.core import (
    Module,
    ParameterError,
    concrete_value,
    data,
    einsum,
    fusion_barrier,
    safe_clip,
)

from ..._arguments import Numbers
from ..potentials._potential import AbstractPairPotential, with_species_tables

TRUNCATIONS = ("shifted-force", "switch", "plain", "shifted")
_NODES = 48  # nodes of the Gauss–Legendre quadrature: exact for power laws up to r⁻⁹⁶


class AbstractTruncated(Module):
    """A pair potential that ends at a cutoff, as functions of r²; the caller masks r ≥ cutoff."""

    potential: AbstractPairPotential

    @abc.abstractmethod
    def energy(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        """Truncated U."""

    @abc.abstractmethod
    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        """−U′(r)/r of the truncated U."""

    def term(
        self, is_energy: bool, r2: Float[Array, "..."], charges: Float[Array, "..."] | None
    ) -> Float[Array, "..."]:
        """Energy or force over distance of pairs, times the products of their charges, if there are any."""
        value = self.energy(r2) if is_energy else self.force_over_distance(r2)
        return value if charges is None else value * charges

    def between(self, i: Int[Array, "..."], j: Int[Array, "..."]) -> "AbstractTruncated":
        """This potential for pairs of species i and j."""
        # The offset and the slope at the cutoff are tables as well, where the potential has any.
        copy = with_species_tables(self, i, j)
        return eqx.tree_at(lambda t: t.potential, copy, self.potential.between(i, j))

    def tail_energy(
        self, density: ArrayLike, n: int, dimension: int, fractions: Numbers | None = None
    ) -> Array:
        """Energy that `n` particles lose by the cut; see `PlainCut`."""
        raise ParameterError(
            'tail corrections are for truncation="plain" and "switch"; a shifted potential is another '
            "potential, not an approximation whose tail could be added"
        )

    def tail_virial(
        self, density: ArrayLike, n: int, dimension: int, fractions: Numbers | None = None
    ) -> Array:
        """Σ r·f that `n` particles lose by the cut; see `PlainCut`."""
        return self.tail_energy(density, n, dimension, fractions)


class PlainCut(AbstractTruncated):
    """U(r) as it is, up to the cutoff, where it jumps to zero: energy is not conserved there.

    The tail corrections take the pair distribution beyond the cutoff as 1 in d = 2 or 3
    dimensions, with S₂ = 2π and S₃ = 4π:

        E = ½ n ρ S_d ∫ U(r) r^(d−1) dr,   W = −½ n ρ S_d ∫ U′(r) r^d dr,   r from r_c to ∞

    The pressure correction is W/(d·V). By Gauss–Legendre quadrature in r_c/r: exact for inverse
    powers steeper than r^(−d), for which alone the integrals exist.

    **Arguments** of `tail_energy` and `tail_virial`:

    - `density`: number density of all particles; `n`: their number; `dimension`: 2 or 3.
    - `fractions`: `[s]`, the fraction of each species, where the potential has per-species tables.

    **Errors:** `ParameterError` without `fractions` where there are tables, in one dimension, and
    for potentials between charges, whose tails cancel or diverge.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., eqs. 2.144–2.147.
    """

    potential: AbstractPairPotential
    cutoff: Float[Array, ""] = data()

    def energy(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.potential.energy(jnp.sqrt(r2))

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.potential.force_over_distance(r2)

    def tail_energy(
        self, density: ArrayLike, n: int, dimension: int, fractions: Numbers | None = None
    ) -> Array:
        integrals = _integral_beyond(self, "energy", dimension)
        return _of_uniform_fluid(self, integrals, density, n, dimension, fractions)

    def tail_virial(
        self, density: ArrayLike, n: int, dimension: int, fractions: Numbers | None = None
    ) -> Array:
        integrals = _integral_beyond(self, "virial", dimension)
        return _of_uniform_fluid(self, integrals, density, n, dimension, fractions)


def _tail_integrand(law: Any, which: str, x: Array, dimension: int) -> Array:
    """U x^(d−1), or −U′ r x^(d−1), at r = r_c x: of U r^(d−1) the numbers are beyond float32 in SI units."""
    r2 = (law.cutoff * x) ** 2
    energy = law.energy(r2) if which == "energy" else law.force_over_distance(r2) * r2
    return energy * x ** (dimension - 1)


def _integral_beyond(cut: "PlainCut | SwitchedCut", which: str, dimension: int) -> Array:
    """The integral of the whole potential's energy or virial from the cutoff to infinity, by r/r_c."""
    if dimension not in (2, 3):
        raise ParameterError(f"tail corrections are for 2 or 3 dimensions; got {dimension}")
    if cut.potential.charged:
        name = type(cut.potential).__name__
        raise ParameterError(f"no tail correction for {name}: it acts between charges")
    # Substitute r = r_c/x: the range becomes 0 < x < 1, dr/r_c = −dx/x², and inverse powers of r become
    # polynomials, for which the quadrature is exact.
    x, weights = _quadrature(cut.cutoff.dtype)
    whole = PlainCut(cut.potential, cut.cutoff)
    values = jax.vmap(lambda x: _tail_integrand(whole, which, x, dimension))(1 / x)
    return einsum("x,x...->...", weights / x**2, values)


def _quadrature(dtype: jnp.dtype) -> tuple[Array, Array]:
    """Nodes and weights between 0 and 1."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return jnp.asarray((nodes + 1) / 2, dtype), jnp.asarray(weights / 2, dtype)


def _of_uniform_fluid(
    cut: "PlainCut | SwitchedCut",
    integral: Array,
    density: ArrayLike,
    n: int,
    dimension: int,
    fractions: Numbers | None,
) -> Array:
    """½ n ρ S_d r_c^d times an integral over distances r/r_c."""
    if integral.ndim and fractions is None:
        raise ParameterError(
            f"{type(cut.potential).__name__} has tables of {integral.shape[0]} species: its tail correction "
            "needs fractions=[fraction of each species]"
        )
    if integral.ndim:
        # (s, s): the mean over pairs of species
        fraction = jnp.asarray(fractions, integral.dtype)
        integral = jnp.sum(fraction[:, None] * integral * fraction[None, :])
    num_within = density * cut.cutoff**dimension
    return 0.5 * n * num_within * {2: 2 * np.pi, 3: 4 * np.pi}[dimension] * integral


class ShiftedCut(AbstractTruncated):
    """U(r) − U(r_c): continuous energy, but the force still jumps to zero at the cutoff.

    **Notes:** derivatives of a trajectory by automatic and by finite differences disagree by up to
    a percent, because pairs that cross the cutoff get a finite kick.
    """

    potential: AbstractPairPotential
    offset: Float[Array, "..."] = data()

    def energy(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.potential.energy(jnp.sqrt(r2)) - self.offset

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.potential.force_over_distance(r2)


class ShiftedForceCut(AbstractTruncated):
    """Energy and force both go to zero at the cutoff.

        U_sf(r) = U(r) − U(r_c) − (r − r_c) U′(r_c)

    **Reference:** Toxvaerd & Dyre, J. Chem. Phys. 134, 081102 (2011), eq. 4.
    """

    potential: AbstractPairPotential
    cutoff: Float[Array, ""] = data()
    offset: Float[Array, "..."] = data()
    slope: Float[Array, "..."] = data()

    def energy(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        r = jnp.sqrt(r2)
        return self.potential.energy(r) - (self.offset + (r - self.cutoff) * self.slope)

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.potential.force_over_distance(r2) + self.slope * jax.lax.rsqrt(r2)


class SwitchedCut(AbstractTruncated):
    """U(r) S(r): untouched up to `start`, then turned off with two continuous derivatives.

        S = 1 − 10 x³ + 15 x⁴ − 6 x⁵,   x = (r − r_s)/(r_c − r_s) for r_s < r < r_c

    Tail corrections add what the switch takes away, too: ∫ U (1 − S) r^(d−1) dr from r_s to r_c.

    **Reference:** OpenMM user guide, "Lennard-Jones interaction", eq. of the switching function.
    """

    potential: AbstractPairPotential
    start: Float[Array, ""] = data()
    cutoff: Float[Array, ""] = data()

    def energy(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        r = jnp.sqrt(r2)
        x = self._fraction(r)
        return self.potential.energy(r) * (1 - x**3 * (10 - 15 * x + 6 * x**2))

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        r = jnp.sqrt(r2)
        x = self._fraction(r)
        switch = 1 - x**3 * (10 - 15 * x + 6 * x**2)
        slope = -30 * (x * (1 - x)) ** 2 / (self.cutoff - self.start)
        return (
            self.potential.force_over_distance(r2) * switch - self.potential.energy(r) * slope / r
        )

    def tail_energy(
        self, density: ArrayLike, n: int, dimension: int, fractions: Numbers | None = None
    ) -> Array:
        integrals = self._missing("energy", dimension)
        return _of_uniform_fluid(self, integrals, density, n, dimension, fractions)

    def tail_virial(
        self, density: ArrayLike, n: int, dimension: int, fractions: Numbers | None = None
    ) -> Array:
        integrals = self._missing("virial", dimension)
        return _of_uniform_fluid(self, integrals, density, n, dimension, fractions)

    def _missing(self, which: str, dimension: int) -> Array:
        """The integral of what is not there, between the switch's start and the cutoff and beyond, by r/r_c."""
        beyond = _integral_beyond(self, which, dimension)
        x, weights = _quadrature(self.cutoff.dtype)
        start, whole = self.start / self.cutoff, PlainCut(self.potential, self.cutoff)
        width = 1 - start

        def lost(x: Array) -> Array:
            whole_and_switched = (
                _tail_integrand(law, which, x, dimension) for law in (whole, self)
            )
            return jnp.subtract(*whole_and_switched)

        values = jax.vmap(lost)(start + width * x)
        return beyond + einsum("x,x...->...", weights * width, values)

    def _fraction(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        return safe_clip((r - self.start) / (self.cutoff - self.start), 0, 1)


def truncate(
    potential: AbstractPairPotential,
    cutoff: Float[Array, ""],
    kind: str = "shifted-force",
    switch_start: ArrayLike | None = None,
) -> AbstractTruncated:
    """`potential` cut at `cutoff`, as functions of r².

    **Arguments:**

    - `kind`: `"shifted-force"` (energy and force go to zero), `"switch"` (a polynomial turns the
      energy off between `switch_start` and the cutoff), `"plain"` (a jump, tail corrections
      available), `"shifted"` (energy without a jump, force with).
    - `switch_start`: where the switch begins, length; 0.9 of the cutoff if left out.

    **Errors:** `ParameterError` for another kind, or a switch that starts beyond the cutoff.

    **Notes:** reads parameters (U and U′ at the cutoff): call it inside the traced program.
    """
    check_truncation(kind, cutoff, switch_start)
    # XLA of JAX 0.10 multiplies out constants that it sees, to σ¹²·r_c⁻¹²: beyond float32 in SI units.
    cutoff = fusion_barrier(cutoff)
    if kind == "plain":
        return PlainCut(potential, cutoff)
    if kind == "switch":
        start = 0.9 * cutoff if switch_start is None else switch_start
        return SwitchedCut(potential, start, cutoff)
    # `[s s]` where the potential has tables: `between` reads all of them for a pair.
    offset = potential.energy(cutoff)
    if kind == "shifted":
        return ShiftedCut(potential, offset)
    slope = -potential.force_over_distance(cutoff * cutoff) * cutoff
    return ShiftedForceCut(potential, cutoff, offset, slope)


def check_truncation(
    kind: str, cutoff: ArrayLike | None, switch_start: ArrayLike | None = None
) -> None:
    """Raise for a kind of truncation that does not exist, and for a switch that starts too late."""
    if kind not in TRUNCATIONS:
        raise ParameterError(f"no truncation {kind!r}; available: {list(TRUNCATIONS)}")
    if switch_start is not None and kind != "switch":
        raise ParameterError(f'switch_start is for truncation="switch"; got {kind!r}')
    start, end = concrete_value(switch_start), concrete_value(cutoff)
    if start is not None and end is not None and not 0 <= start < end:
        raise ParameterError(f"switch_start must lie below the cutoff {end}; got {start}")
