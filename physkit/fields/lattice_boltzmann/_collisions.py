"""Collisions: how populations go to their equilibrium."""

import abc
from collections.abc import Callable
from functools import partial
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from physkit.core import Module, ParameterError, param, require_positive, with_tangent_of

from ._lattice import Lattice
from ._moments import scale, weighted_polynomials


class CellMoments(NamedTuple):
    """What a cell holds, in lattice units.

    - `excess`: Σ f − 1, the density beside that of reference.
    - `density`: 1 + excess.
    - `velocity`: with half of the force, by axis.
    - `force`: on the volume of a cell, by axis; None without one.
    """

    excess: Array
    density: Array
    velocity: list[Array]
    force: list[Array] | None


class AbstractCollision(Module):
    """How populations go to their equilibrium at a given viscosity: write `__call__`.

    Populations are `[q, *cells]`, each less its weight, `f_i − w_i`: in float32 small differences of
    density and velocity then keep their digits.
    """

    # Below this relaxation time τ rounding and short waves grow.
    smallest_tau: ClassVar[float] = 0.5

    @abc.abstractmethod
    def __call__(
        self, lattice: Lattice, populations: Array, moments: CellMoments, tau: Array
    ) -> Array:
        """The populations after the collision, with the force in them; τ is that of shear, in steps."""

    def check_lattice(self, lattice: Lattice) -> None:
        """**Errors:** `ParameterError` for a lattice that it does not know; none unless overridden."""
        del lattice


class BGK(AbstractCollision):
    """One relaxation time for all.

        f* = f − (f − f^eq)/τ + (1 − 1/2τ) S,   ν = c_s² (τ − ½)

    Halfway bounce-back then puts walls where they are only for τ = ½ + √(3/16); `TwoRelaxationTimes` does for
    all.

    **Reference:** Qian, d'Humières & Lallemand, Europhys. Lett. 17, 479 (1992); Guo, Zheng & Shi, Phys. Rev. E
    65, 046308 (2002), eq. 20, for the force S.
    """

    smallest_tau: ClassVar[float] = 0.503

    def __call__(self, lattice, populations, moments, tau):
        return _relax(lattice, populations, moments, 1 / tau, 1 / tau)


class TwoRelaxationTimes(AbstractCollision):
    """Even and odd parts relax at two rates, whose product decides where walls are.

        (τ₊ − ½)(τ₋ − ½) = Λ,   ν = c_s² (τ₊ − ½)

    **Arguments:** `magic`: Λ. 3/16 puts walls exactly half a cell beyond the last fluid cells, for channel flow
    at any viscosity; 1/4 is the most stable; 1/12 removes the third-order error of advection.

    **Reference:** Ginzburg, Verhaeghe & d'Humières, Commun. Comput. Phys. 3, 427 (2008).
    """

    magic: Float[Array, ""] = param(3 / 16)
    smallest_tau: ClassVar[float] = 0.501

    def __check_init__(self):
        require_positive(self, "magic")

    def __call__(self, lattice, populations, moments, tau):
        odd = 0.5 + self.magic / (tau - 0.5)
        return _relax(lattice, populations, moments, 1 / tau, 1 / odd)


class CentralMoments(AbstractCollision):
    """Moments about the moving fluid relax: stable at small viscosities, and the same in every moving frame.

    Shear relaxes with τ, all that is no shear and no conserved quantity goes to equilibrium at once. On D2Q9
    and D3Q27.

    **Reference:** Geier, Greiner & Korvink, Phys. Rev. E 73, 066705 (2006); De Rosis, Phys. Rev. E 95, 013310
    (2017); Fei & Luo, Phys. Rev. E 96, 053307 (2017), for the force.
    """

    smallest_tau: ClassVar[float] = 0.50001

    def check_lattice(self, lattice):
        if not lattice.is_product:
            raise ParameterError(
                f"central moments need all velocities of D2Q9 or D3Q27; got {lattice!r}"
            )

    def __call__(self, lattice, populations, moments, tau):
        d, u = lattice.dimension, moments.velocity
        w = per_velocity(lattice.weights, populations.ndim - 1, populations.dtype)
        keys = [tuple(e) for e in lattice.velocities.tolist()]
        values = dict(zip(keys, populations + w, strict=True))
        for axis in range(d):
            values = _along_axis(values, axis, partial(_to_moments, u=u[axis]))
        # Second moments: keys hold the powers, 0 to 2, along every axis.
        one = [tuple(int(k == a) for k in range(d)) for a in range(d)]
        square = [tuple(2 * n for n in e) for e in one]
        rho, third = moments.density, moments.density / 3
        after = {}
        for power in values:
            order = sum(power)
            even = all(n != 1 for n in power)
            after[power] = rho / 3 ** (order // 2) if even else jnp.zeros_like(rho)
        keep = 1 - 1 / tau
        mean = sum([values[p] for p in square[1:]], values[square[0]]) / d
        for p in square:
            after[p] = third + keep * (values[p] - mean)
        for a in range(d):
            for b in range(a):
                mixed = tuple(m + n for m, n in zip(one[a], one[b], strict=True))
                after[mixed] = keep * values[mixed]
        if moments.force is not None:
            # Half of the force is in u already; what the equilibrium of higher moments lacks of it follows.
            for power in after:
                odd = [k for k, n in enumerate(power) if n == 1]
                if len(odd) == 1:
                    after[power] = moments.force[odd[0]] / (2 * 3 ** (sum(power) // 2))
        for axis in range(d):
            after = _along_axis(after, axis, partial(_to_populations, u=u[axis]))
        # Powers 0, 1, 2 have become velocities 0, 1, −1.
        return jnp.stack([after[tuple(n % 3 for n in e)] for e in keys]) - w


def equilibrium(
    lattice: Lattice, excess: Array, density: Array, velocity: list[Array]
) -> Float[Array, "..."]:
    """f^eq − w, `[q, *cells]`, to second order in the velocity; lattice units.

    w_i (ρ − 1 + ρ (e·u/c_s² + (e·u)²/2c_s⁴ − u²/2c_s²))
    """
    some = lattice.velocities, lattice.weights
    even, odd = _even_and_odd_equilibrium(*some, excess, density, velocity)
    return even + odd


def along_velocities(velocities: np.ndarray, vector: list[Array]) -> Array:
    """e_i · v for all i, `[q, *cells]`."""
    ndim = max(v.ndim for v in vector)
    terms = [per_velocity(velocities[:, k], ndim, v.dtype) * v[None] for k, v in enumerate(vector)]
    return sum(terms[1:], terms[0])


def along_velocity(lattice: Lattice, i: int, vector: list[Array]) -> Array:
    """e_i · v, without products: the entries of e are −1, 0 and 1."""
    terms = [v if n > 0 else -v for n, v in zip(lattice.velocities[i], vector, strict=True) if n]
    return sum(terms[1:], terms[0])


def per_velocity(numbers: np.ndarray, ndim: int, dtype: DTypeLike) -> np.ndarray:
    """One number for each velocity, ready to broadcast over `ndim` axes of cells."""
    return numbers.astype(dtype).reshape(-1, *[1] * ndim)


def _dot(a: list[Array], b: list[Array]) -> Array:
    products = [x * y for x, y in zip(a, b, strict=True)]
    return sum(products[1:], products[0])


def _even_and_odd_equilibrium(
    velocities: np.ndarray,
    weights: np.ndarray,
    excess: Array,
    density: Array,
    velocity: list[Array],
) -> tuple[Array, Array]:
    w = per_velocity(weights, excess.ndim, excess.dtype)
    along = along_velocities(velocities, velocity)
    rest = excess - density * (1.5 * _dot(velocity, velocity))
    density = density[None]
    return w * (rest[None] + 4.5 * density * along * along), 3 * w * density * along


def _relax(
    lattice: Lattice, populations: Array, moments: CellMoments, even_rate: Array, odd_rate: Array
) -> Array:
    """Even and odd parts under e → −e go to their equilibria, each at its rate, with Guo's force."""
    half_even, half_odd = 0.5 * even_rate, 0.5 * odd_rate

    def relaxed(some: slice, f: Array, moments: CellMoments) -> Array:
        velocities, weights = lattice.velocities[some], lattice.weights[some]
        u, force = moments.velocity, moments.force
        even, odd = _even_and_odd_equilibrium(
            velocities, weights, moments.excess, moments.density, u
        )
        f, opposite = f[some], lax.rev(f, (0,))[some]
        change = half_even * (f + opposite - 2 * even)
        change = change + half_odd * (f - opposite - 2 * odd)
        if force is not None:
            w = per_velocity(weights, moments.excess.ndim, f.dtype)
            along, push = along_velocities(velocities, u), along_velocities(velocities, force)
            work = 3 * _dot(u, force)[None]
            change = change - (1 - half_even) * w * (9 * along * push - work)
            change = change - (1 - half_odd) * (3 * w) * push
        return f - change

    all_at_once = partial(relaxed, slice(None))

    # Of one array of all populations a GPU computes each number by a choice among as many cases.
    def one_by_one(f: Array, moments: CellMoments) -> Array:
        each = [relaxed(slice(i, i + 1), f, moments) for i in range(lattice.size)]
        return jnp.concatenate(lax.optimization_barrier(each))

    value = lax.platform_dependent(populations, moments, cpu=all_at_once, default=one_by_one)
    return with_tangent_of(
        value, _relax_by_polynomials(lattice, populations, moments, half_even, half_odd)
    )


def _relax_by_polynomials(
    lattice: Lattice, f: Array, moments: CellMoments, half_even: Array, half_odd: Array
) -> Array:
    """The same, with equilibria and force as one polynomial in e: with a shorter way back."""
    density, u, force = moments.density, moments.velocity, moments.force
    axes = range(lattice.dimension)
    even_powers = [(), *((k, m) for k in axes for m in axes if k <= m)]
    odd_powers = [(k,) for k in axes]
    even = [2 * (moments.excess - density * (1.5 * _dot(u, u)))]
    even += [_symmetric_product(9 * density, u, u, *power) for power in even_powers[1:]]
    odd = [6 * density * part for part in u]
    if force is not None:
        work = [-3 * _dot(u, force)]
        work += [_symmetric_product(9.0, u, force, *power) for power in even_powers[1:]]
        push = [3 * part for part in force]
        even, odd = (
            [x - y for x, y in zip(equilibrium, of_force, strict=True)]
            for equilibrium, of_force in ((even, work), (odd, push))
        )
    opposite = lax.rev(f, (0,))
    even_part, even = scale(half_even, f + opposite, even)
    odd_part, odd = scale(half_odd, f - opposite, odd)
    if force is not None:
        even = [x + y for x, y in zip(even, work, strict=True)]
        odd = [x + y for x, y in zip(odd, push, strict=True)]
    coefficients = dict(zip((*even_powers, *odd_powers), (*even, *odd), strict=True))
    return f - even_part - odd_part + weighted_polynomials(lattice, coefficients)


def _symmetric_product(
    factor: Array | float, a: list[Array], b: list[Array], k: int, m: int
) -> Array:
    """factor · a_k b_m, off the diagonal with a_m b_k."""
    product = a[k] * b[m]
    return factor * (product if k == m else product + a[m] * b[k])


def _along_axis(values: dict, axis: int, transform: Callable[..., tuple]) -> dict:
    """`transform` of the three values along `axis`, given in the order 0, 1, −1 (or powers 0, 1, 2)."""
    out = {}
    for key in values:
        if key[axis] != 0:
            continue

        def at(n: int, key: tuple = key) -> tuple:
            return (*key[:axis], n, *key[axis + 1 :])

        last = -1 if at(-1) in values else 2
        triple = transform(values[at(0)], values[at(1)], values[at(last)])
        for n, value in enumerate(triple):
            out[at(n)] = value
    return out


def _to_moments(rest: Array, plus: Array, minus: Array, u: Array) -> tuple[Array, Array, Array]:
    """Central moments of order 0, 1, 2 along one axis, from populations that rest, go and come."""
    total, first, second = rest + plus + minus, plus - minus, plus + minus
    return total, first - u * total, second - 2 * u * first + u * u * total


def _to_populations(zero: Array, one: Array, two: Array, u: Array) -> tuple[Array, Array, Array]:
    """Populations that rest, go and come, from central moments of order 0, 1, 2."""
    first = one + u * zero
    second = two + 2 * u * one + u * u * zero
    return zero - second, 0.5 * (second + first), 0.5 * (second - first)
