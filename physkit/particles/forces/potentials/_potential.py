"""The contract of pair potentials."""

import abc
import dataclasses
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from physkit.core import (
    DeclarationError,
    Module,
    ParameterError,
    ShapeError,
    concrete_value,
    describe,
    ratio,
    replace_fields,
    require_returned,
)

from ._table import read_table

P = TypeVar("P", bound="AbstractPairPotential")


class AbstractPairPotential(Module):
    """Energy of two particles as a function of their distance. A new one needs only `energy`.

        class Gaussian(pk.AbstractPairPotential):
            height: Array = pk.param(1.0)
            def energy(self, r):
                return self.height * jnp.exp(-(r**2))

    Every array parameter may be a scalar, or a symmetric table `[s s]` by the species of the two.
    `charged`: whether the energy is per product of the two charges.

    **Errors:** `ShapeError` for a parameter that is neither; `ParameterError` for a table that is
    not symmetric.
    """

    charged: ClassVar[bool] = False

    @abc.abstractmethod
    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        """U(r) for distances of any shape."""

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        """−U′(r)/r as a function of r²: the force on i is this times (xᵢ − xⱼ).

        By default the exact derivative of `energy`; override it where a closed form is faster.

        **Errors:** `ShapeError` where `energy` returns no energy for each distance, but their sum, say.
        """
        r = jnp.sqrt(r2)

        def energy_at(r: Float[Array, "..."]) -> Float[Array, "..."]:
            energy = self.energy(r)
            require_returned(energy, f"{type(self).__name__}.energy(r)")
            return energy

        # All distances in one forward derivative: each energy depends on its own distance only.
        energy, slope = jax.jvp(energy_at, (r,), (jnp.ones_like(r),))
        # Tables of species may give more: energies of all pairs of species at one distance.
        if np.broadcast_shapes(jnp.shape(energy), r.shape) != jnp.shape(energy):
            raise ShapeError(
                f"{type(self).__name__}.energy(r) has shape {list(jnp.shape(energy))} for distances r of shape "
                f"{list(r.shape)}: return the energy of each pair, not their sum"
            )
        return ratio(-slope, r)

    def between(self, i: Int[Array, "..."], j: Int[Array, "..."]) -> "AbstractPairPotential":
        """This potential for pairs of species i and j: tables become arrays of the shape of i and j."""
        return with_species_tables(self, i, j)

    def in_charge_unit(self, unit: Float[Array, ""]) -> "AbstractPairPotential | None":
        """This potential times unit², for charges that are written in `unit`; None where it cannot say.

        In SI units and float32 neither the product of two charges nor the potential without it is in range. A
        potential with `charged` that puts the unit's square among its parameters stays in range.
        """
        del unit
        return None

    def require_truncation(self, kind: str, cutoff: ArrayLike | None) -> None:
        """**Errors:** `ParameterError` where this potential has no such truncation; by default it has all."""
        del kind, cutoff

    @property
    def species(self) -> int | None:
        """How many species the tables are for; None if there is no table."""
        sizes = [table.shape[0] for table in tables(self).values()]
        return max(sizes) if sizes else None

    def __call__(self, *arguments: Any) -> Any:
        raise DeclarationError(
            f"a potential is no function: {type(self).__name__}(…).energy(r) is its energy at distances r, and "
            "Pairwise(potential, cutoff=…) the force between all pairs"
        )

    def __add__(self, other: Any) -> Any:
        raise DeclarationError(
            f"potentials have no + with {describe(other)}: add forces, Pairwise(a, cutoff=…) + "
            "Pairwise(b, cutoff=…), or write a potential whose energy(r) is the sum"
        )

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        raise DeclarationError(
            f"potentials have no * with {describe(other)}: scale a parameter, such as epsilon"
        )

    __rmul__ = __mul__

    def __check_init__(self):
        counts = {}
        for name, value in _arrays(self).items():
            if value.ndim == 0:
                continue
            if value.ndim != 2 or value.shape[0] != value.shape[1]:
                raise ShapeError(
                    f"{type(self).__name__}.{name} must be a scalar, or a table [s s] by species; "
                    f"got shape {value.shape}. Per-species values make a table by a mixing rule "
                    "such as lorentz_berthelot; a batch of potentials is made by equinox.filter_vmap."
                )
            counts[name] = value.shape[0]
            numbers = concrete_value(value)
            if numbers is not None and not np.array_equal(numbers, numbers.T, equal_nan=True):
                raise ParameterError(
                    f"{type(self).__name__}.{name} must be symmetric (the pair ij is the pair ji); "
                    f"got {numbers.tolist()}"
                )
        if len(set(counts.values())) > 1:
            raise ShapeError(f"tables of {type(self).__name__} differ in species: {counts}")


def absorb_charge_unit(potential: P, unit: Float[Array, ""]) -> P:
    """`in_charge_unit` of a potential that is proportional to its `coulomb_constant`."""
    # Factor by factor: unit² is out of range where k·unit² is not.
    return replace_fields(potential, {"coulomb_constant": potential.coulomb_constant * unit * unit})


def tables(module: Module) -> dict[str, Array]:
    """The module's own per-species tables by field name."""
    return {name: value for name, value in _arrays(module).items() if value.ndim == 2}


def with_symmetric_tables(potential: P) -> P:
    """`potential` with the mean of its tables and their transposes: what a pair ij and the pair ji depend on.

    The same bits for tables that are symmetric, as they must be. But a derivative by one entry moves it alone.
    """
    inexact = {k: x for k, x in tables(potential).items() if jnp.issubdtype(x.dtype, jnp.inexact)}
    return replace_fields(potential, {k: (x + x.T) / 2 for k, x in inexact.items()})


def with_species_tables(module: Module, i: Int[Array, "..."], j: Int[Array, "..."]):
    """`module` with its tables read at (i, j); modules inside of it are not changed."""
    found = tables(module)
    if not found:
        return module
    # Past the constructor, whose checks want scalars or tables and would meet arrays by pair.
    copy = object.__new__(type(module))
    for kind in dataclasses.fields(module):
        value = getattr(module, kind.name)
        if kind.name in found:
            value = read_table(value, i, j)
        object.__setattr__(copy, kind.name, value)
    return copy


def _arrays(module: Module) -> dict[str, Array]:
    fields = {f.name: getattr(module, f.name, None) for f in dataclasses.fields(module)}
    return {name: value for name, value in fields.items() if isinstance(value, jax.Array)}
