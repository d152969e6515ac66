"""What all Ewald sums have in common: near pairs, smooth clouds of charge, and what belongs to neither."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import (
    Clock,
    Fault,
    Faults,
    NotReversible,
    ParameterError,
    ShapeError,
    State,
    as_parameter,
    build_unchecked,
    is_concrete,
    matmul,
    replace_fields,
)
from physkit.geometry import AbstractSpace, inverse_matrix

from ..._arguments import Numbers
from ..._particles import Particles
from ...neighbors import space_numbers
from .._force import Forces
from ..bonded._special_pairs import SpecialPairs
from ..bonded._tuples import Tuples
from ..pairs._excluded_pairs import unique_pairs
from ..pairs._pair_kernels import with_charge_unit
from ..pairs._pairwise import Pairwise
from ..potentials import DampedCoulomb, SmearedCoulomb
from ._energies_of_charges import AbstractForceOfCharges
from ._ewald_cache import EwaldCache, Resolution, ResolutionChoices
from ._lattice_energy import (
    ChargeSums,
    Clouds,
    Modes,
    energies_without_modes,
    energy_of_modes,
    influence,
    slab_slopes,
    strain_slopes,
)
from ._net_charge import is_unbalanced, require_neutral
from ._short_range import coulomb_part, other_parts, with_others
from ._tolerance import splitting


class AbstractEwaldSum(AbstractForceOfCharges):
    """Coulomb forces between all periodic images of all charges, as a sum over near pairs and one over waves.

        U = k Σ_{i<j} qᵢ qⱼ Σ_images 1/r,   split by 1/r = erfc(α r)/r + erf(α r)/r

    The first part is a `Pairwise` sum. The second is smooth: a subclass writes its Fourier sums, exactly or
    through a mesh. Each charge's cloud with itself and excluded pairs are subtracted, and energies of a net
    charge and of a slab are added.

    - `near`: the sum over near pairs; its potential, or the first of several, holds α and k.
    - `excluded`: pairs that do not interact.
    - `background`, `slab`, `tolerance`, `component`: see `Ewald`.
    """

    near: eqx.AbstractVar[Pairwise]
    excluded: eqx.AbstractVar[Tuples | None]
    background: eqx.AbstractVar[bool]
    slab: eqx.AbstractVar[float | None]
    tolerance: eqx.AbstractVar[float]
    component: eqx.AbstractVar[str | None]
    resolution_name: eqx.AbstractClassVar[str]

    # --- what a subclass writes -----------------------------------------------------------------

    @abc.abstractmethod
    def choose_resolution(self, cell: np.ndarray, num_charges: int) -> Resolution:
        """Mode numbers, or mesh points, along each axis of a cell whose numbers are visible."""

    @abc.abstractmethod
    def modes(self, resolution: Resolution, space: AbstractSpace, dtype: Any) -> Modes:
        """The modes of this device."""

    @abc.abstractmethod
    def structure_factors(
        self,
        fraction: Float[Array, "n 3"],
        charge: Float[Array, " n"],
        particles: Particles,
        resolution: Resolution,
    ) -> Float[Array, "2 p q r"]:
        """Real and imaginary parts of Σ q exp(2πi m·s) for this device's modes; s are fractions of the cell."""

    @abc.abstractmethod
    def slopes(
        self,
        weight: Float[Array, "2 p q r"],
        fraction: Float[Array, "n 3"],
        charge: Float[Array, " n"],
        particles: Particles,
        resolution: Resolution,
    ) -> Float[Array, "n 3"]:
        """∂/∂s of Σ weight · S over all modes of all devices, for this device's charges."""

    @abc.abstractmethod
    def sum_modes(self, x: Array, resolution: Resolution, space: AbstractSpace) -> Array:
        """The sum over devices of `x`, which each has summed over its modes."""

    @property
    def splitting(self) -> float:
        """α, 1 / length, as the tolerance has set it."""
        assert self.near.cutoff is not None  # checked when it was made
        return splitting(self.near.cutoff, self.tolerance)

    @property
    def resolution_choices(self) -> ResolutionChoices:
        """What the resolution is chosen by, besides cell and charges, by name."""
        return (("cutoff", self.near.cutoff), ("tolerance", self.tolerance))

    # --- as a force -----------------------------------------------------------------------------

    @property
    def needs_halo(self) -> bool:
        return True

    def for_shape_inference(self) -> "AbstractEwaldSum":
        return replace_fields(self, {"near": self.near.for_shape_inference()})

    def for_start(self, state: State, least: int = 0) -> "AbstractEwaldSum":
        particles = self.particles(state)
        self._check(particles)
        planned = {"near": self.near.for_start(state, least)}
        planned[self.resolution_name] = self._resolution(particles)
        return replace_fields(self, planned)

    def fit_cache(self, cache: EwaldCache) -> EwaldCache:
        return replace_fields(cache, {"pairs": self.near.fit_cache(cache.pairs)})

    def mark_current(self, cache: EwaldCache, state: State) -> EwaldCache:
        return replace_fields(cache, {"pairs": self.near.mark_current(cache.pairs, state)})

    def require_reversible(self, state: State) -> None:
        """**Errors:** `NotReversible` without `exact=True`, and over devices."""
        name = type(self).__name__
        if self.particles(state).is_distributed:
            raise NotReversible(
                f"{name} adds waves in an order that depends on which device holds a charge, and in the "
                "backward pass another device may hold it: over devices use adjoint=NestedCheckpoint() or "
                "Binomial(n)"
            )
        try:
            self.near.require_reversible(state)
        except NotReversible as error:
            raise NotReversible(
                f"{name} adds near pairs in the order of its neighbor list, which the backward pass rebuilds "
                f"at other steps: Reversible() needs {name}(…, exact=True)"
            ) from error

    def init(self, state: State) -> EwaldCache:
        particles = self.particles(state)
        self._check(particles)
        excluded = self._excluded_pairs()
        tables = None if excluded is None else excluded.init(state)
        faults = Faults.none().set_if(Fault.NET_CHARGE, self._is_unbalanced(particles))
        pairs, resolution = self.near.init(state), self._resolution(particles)
        return EwaldCache(pairs, tables, faults, resolution, self.resolution_choices)

    def __call__(
        self, clock: Clock, state: State, cache: EwaldCache
    ) -> tuple[Float[Array, "n d"], EwaldCache]:
        particles = self.particles(state)
        resolution = self._resolution(particles, cache)
        force, pairs = self.near(clock, state, cache.pairs)
        tables = cache.excluded
        excluded = self._excluded_pairs()
        if excluded is not None:
            more, tables = excluded(clock, state, tables)
            force = force + more
        force = force + self._cloud_force(particles, resolution)
        return force, replace_fields(cache, {"pairs": pairs, "excluded": tables})

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        return self(clock, state, self.init(state))[0]

    def energy(
        self, clock: Clock, state: State, cache: EwaldCache | None = None
    ) -> Float[Array, ""]:
        parts = self.energies_by_part(clock, state, cache)
        return sum(parts.values(), jnp.zeros_like(parts["pairs"]))

    def energies_without_charges(
        self, clock: Clock, state: State, cache: EwaldCache | None
    ) -> Float[Array, " n"] | None:
        pairs = None if cache is None else cache.pairs
        return self.near.particle_energies(clock, state, pairs) if self._others else None

    def energies_by_part(
        self, clock: Clock, state: State, cache: EwaldCache | None = None
    ) -> dict[str, Float[Array, ""]]:
        """**Returns:** `"pairs"`, `"waves"`, the two sums; `"self"`, `"background"`; where there are any,
        `"excluded"`, `"slab"` and `"tail"`. `"pairs"` contains those of `short_range`.
        """
        particles = self.particles(state)
        self._check(particles)
        resolution = self._resolution(particles, cache)
        out = {"pairs": self.near.energy(clock, state, None if cache is None else cache.pairs)}
        if any(other.tail for other in self._others):
            out["tail"] = sum(
                other.tail_correction("tail_energy", particles) for other in self._others
            )
        excluded = self._excluded_pairs()
        if excluded is not None:
            tables = None if cache is None else cache.excluded
            out["excluded"] = excluded.energy(clock, state, tables)
        clouds = self._clouds(particles, resolution)
        modes = clouds.modes
        waves = energy_of_modes(clouds.cell, clouds.sums.power, modes)
        rest = energies_without_modes(clouds.cell, clouds.sums, self._open_axis(particles.space))
        parts = {"waves": self.sum_modes(waves, resolution, particles.space), **rest}
        return {**out, **{name: clouds.unit * part for name, part in parts.items()}}

    def virial(
        self, clock: Clock, state: State, cache: EwaldCache | None = None
    ) -> Float[Array, "d d"]:
        particles = self.particles(state)
        resolution = self._resolution(particles, cache)
        total = self.near.virial(clock, state, None if cache is None else cache.pairs)
        for other in self._others:
            tail = other.tail_correction("tail_virial", particles) / 3
            total = total + tail * jnp.eye(3, dtype=total.dtype)
        excluded = self._excluded_pairs()
        if excluded is not None:
            tables = None if cache is None else cache.excluded
            total = total + excluded.virial(clock, state, tables)
        clouds = self._clouds(particles, resolution)
        axis = self._open_axis(particles.space)
        waves, rest = strain_slopes(clouds.cell, clouds.sums, clouds.modes, axis)
        return total + clouds.unit * (self.sum_modes(waves, resolution, particles.space) + rest)

    # --- implementation -------------------------------------------------------------------------

    def _set(
        self,
        near: Pairwise,
        tolerance: float,
        exclude: Numbers | None,
        background: bool,
        slab: float | None,
        short_range: Pairwise | Forces | None,
    ) -> None:
        """What constructors do; `near` has a potential without damping, which is found here."""
        if near.cutoff is None:
            raise ParameterError(
                "an Ewald sum splits interactions at a cutoff: give cutoff=…, a length"
            )
        if not 0 < tolerance < 1:
            raise ParameterError(
                "tolerance is the error of forces relative to that between neighboring charges, e.g. 1e-4; got "
                f"{tolerance}"
            )
        if slab is not None and not slab > 1:
            raise ParameterError(
                f"slab is how many heights of the box its images are apart, e.g. 3; got {slab}"
            )
        damping = as_parameter(splitting(near.cutoff, tolerance))
        potential = replace_fields(near.potential, {"damping": damping})
        near = replace_fields(near, {"potential": potential})
        self.near = near if short_range is None else with_others(near, short_range)
        # Of a pair that is listed twice, the clouds are taken away once.
        pairs = None if exclude is None else unique_pairs(exclude)
        self.excluded = None if pairs is None else Tuples.of(pairs, 2, "excluded pairs")
        self.tolerance, self.background = float(tolerance), bool(background)
        self.slab, self.component = None if slab is None else float(slab), near.component

    def with_short_range(self, short_range: Pairwise | Forces) -> "AbstractEwaldSum":
        """This sum and `short_range` in one pass over near pairs; see `Ewald`."""
        return replace_fields(self, {"near": with_others(self.near, short_range)})

    def _excluded_pairs(self) -> SpecialPairs | None:
        """The force of the clouds between excluded pairs, with the sign that takes it away."""
        if self.excluded is None:
            return None
        near = self._coulomb
        values = {
            "tuples": self.excluded,
            "potential": SmearedCoulomb(near.damping, near.coulomb_constant),
            "scale": jnp.asarray(-1, near.damping.dtype),
            "component": self.component,
        }
        return build_unchecked(SpecialPairs, values)

    @property
    def _coulomb(self) -> DampedCoulomb:
        return coulomb_part(self.near)

    @property
    def _others(self) -> tuple[Pairwise, ...]:
        return other_parts(self.near)

    def _clouds(self, particles: Particles, resolution: Resolution) -> Clouds:
        potential, charge_unit = with_charge_unit(self._coulomb, particles)
        assert isinstance(potential, DampedCoulomb)
        assert particles.charge is not None  # checked before
        charge = particles.mask_empty(particles.charge)
        if charge_unit is not None:
            charge = charge * (1 / charge_unit)
        x = particles.mask_empty(particles.position) * potential.damping
        cell = self._cell(particles.space) * potential.damping
        fraction = matmul(x, inverse_matrix(cell))
        factors = self.structure_factors(fraction, charge, particles, resolution)
        dipole = second = jnp.zeros((), x.dtype)
        axis = self._open_axis(particles.space)
        if axis is not None:
            place = fraction[:, axis]
            dipole, second = particles.sum(charge * place), particles.sum(charge * place * place)
        power = factors[0] ** 2 + factors[1] ** 2
        total, squares = particles.sum(charge), particles.sum(charge * charge)
        sums = ChargeSums(power, total, squares, dipole, second)
        modes = self.modes(resolution, particles.space, x.dtype)
        unit = potential.coulomb_constant * potential.damping
        return Clouds(cell, charge, fraction, factors, sums, modes, unit, potential.damping)

    def _cloud_force(self, particles: Particles, resolution: Resolution) -> Float[Array, "n d"]:
        clouds = self._clouds(particles, resolution)
        weight = 2 * influence(clouds.cell, clouds.modes)[None] * clouds.factors
        slopes = self.slopes(weight, clouds.fraction, clouds.charge, particles, resolution)
        axis = self._open_axis(particles.space)
        if axis is not None:
            place = clouds.fraction[:, axis]
            of_slab = slab_slopes(clouds.cell, clouds.sums, axis, clouds.charge, place)
            slopes = slopes + of_slab[:, None] * (np.arange(3) == axis).astype(place.dtype)[None]
        # s = x · cell⁻¹
        force = -matmul(slopes, inverse_matrix(clouds.cell).T)
        return clouds.unit * force * clouds.damping

    def _cell(self, space: AbstractSpace) -> Float[Array, "3 3"]:
        return self._with_slab(space.basis(3), self._open_axis(space))

    def _with_slab(self, rows: Any, axis: int | None) -> Any:
        """Short lattice vectors; along an open axis the distance of the images that waves have there."""
        if axis is None:
            return rows
        return rows * np.where(np.arange(3) == axis, self.slab, 1.0).astype(rows.dtype)[:, None]

    def _open_axis(self, space: AbstractSpace) -> int | None:
        name, periodic = type(self).__name__, space.periodic_axes(3)
        if self.slab is None:
            if not all(periodic):
                hint = (
                    "; for a slab between two open sides give slab=3" if sum(periodic) == 2 else ""
                )
                raise ParameterError(
                    f"{name} sums over periodic images along every axis; the space is periodic along "
                    f"{periodic}{hint}"
                )
            return None
        if sum(periodic) != 2:
            raise ParameterError(
                f"{name}(slab=…) is for a space that is open along one axis, e.g. Box(lengths, (True, True, "
                f"False)); this one is periodic along {periodic}"
            )
        return periodic.index(False)

    def _resolution(self, particles: Particles, cache: EwaldCache | None = None) -> Resolution:
        """That of the cache, or without one the given resolution, or the one for this box.

        **Errors:** `ParameterError` for the cache of another sum, and where a trace hides the box.
        """
        given = getattr(self, self.resolution_name)
        if cache is not None:
            cache.require_resolution_for(self.resolution_choices, self.resolution_name, given)
            return cache.resolution
        if given is not None:
            return given
        name, space = self.resolution_name, particles.space
        if not is_concrete(space):
            raise ParameterError(
                f"{type(self).__name__} chooses its {name} from the box, whose numbers are hidden inside of "
                f"jit, grad and vmap: give {name}=…, e.g. force.for_start(state).{name} from outside"
            )
        cell = self._with_slab(space_numbers(space, 3).basis, self._open_axis(space))
        return self.choose_resolution(cell, particles.num_particles)

    def _check(self, particles: Particles) -> None:
        """**Errors:** of particles that have no such energy."""
        name = type(self).__name__
        if particles.dimension != 3:
            raise ShapeError(
                f"{name} is for three dimensions; these particles have {particles.dimension}"
            )
        if particles.charge is None:
            raise ParameterError(f"{name} acts between charges: give Particles(…, charge=…)")
        self._open_axis(particles.space)
        if not self.background:
            require_neutral(particles, name)

    def _is_unbalanced(self, particles: Particles) -> Bool[Array, ""]:
        return jnp.array(False) if self.background else is_unbalanced(particles)
