"""What a force says beside itself: its virial, energies of particles and heat flux, against its energy."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import Cache, NoEnergyError, NoVirialError, State, get_component
from physkit.geometry import Free
from physkit.particles import Particles
from physkit.particles.forces import acts_from_outside

from ._compare import check_equal
from ._perturbed_states import allows_any_strain, strain_state

if TYPE_CHECKING:
    from ._force import ForceExamination


def check_virial(exam: "ForceExamination") -> None:
    """W_ab = −∂E/∂ε_ba, where ε strains particles and cell alike; 0 for a force from outside.

    In the cell of the state and, with the cache that was carried there, in a larger one.
    """
    term, clock = exam.term, exam.clock
    if not exam.takes_other_cells:  # a strain of the state alone is none of its energy
        return
    if not _is_defined(lambda: term.virial(clock, exam.state, exam.cache)):
        return
    is_outside = acts_from_outside(term)
    can_shear = all(
        allows_any_strain(get_component(exam.state, name).space) for name in term.components
    )

    @jax.jit
    def values(state: State, cache: Cache) -> Any:
        energies = term.energy(clock, state, cache), term.energy(clock, state)
        virials = term.virial(clock, state, cache), term.virial(clock, state)
        return energies, virials, _minus_slope_by_strain(exam, state)

    for state, cache, where in _cells(exam):
        energies, (virial, uncached), slope = jax.tree.map(np.asarray, values(state, cache))
        name = f"{exam.what}.energy with a cache against without{where}"
        check_equal(*energies, name, "sum")
        name = f"{exam.what}.virial with a cache against without{where}"
        check_equal(virial, uncached, name, "sum", floor=1e-12 * float(np.max(np.abs(slope))))
        if is_outside:
            name = f"{exam.what}.virial against 0, as of any force from outside"
            check_equal(virial, np.zeros_like(virial), name)
            continue
        if not can_shear:  # only the diagonal of a rectangular box's strain means anything
            virial, slope = np.diagonal(virial), np.diagonal(slope)
        name = f"{exam.what}.virial against minus the derivative of energy by strain{where}"
        check_equal(virial, slope, name, "gradient")
    if not is_outside and not can_shear:
        _check_shear(exam)


def _check_shear(exam: "ForceExamination") -> None:
    """The virial of particles in a rectangular box, which a sheared one shows in full."""

    @jax.jit
    def values(state: State) -> Any:
        slope = _minus_slope_by_strain(exam, state, keeps_angles=False)
        return exam.term.virial(exam.clock, state, exam.cache), slope

    try:
        virial, slope = values(exam.state)
    except NoVirialError:
        return  # an energy that reads what only a rectangular box has
    name = f"{exam.what}.virial against minus the derivative of energy by strain (shear)"
    check_equal(virial, slope, name, "gradient")


def _minus_slope_by_strain(
    exam: "ForceExamination", state: State, *, keeps_angles: bool = True
) -> Any:
    def strained_energy(strain):
        # No cache: its lists and cells are of the unstrained box.
        return exam.term.energy(exam.clock, strain_state(state, strain, keeps_angles=keeps_angles))

    dimension = get_component(state, exam.term.component).dimension
    return -jax.grad(strained_energy)(jnp.zeros((dimension, dimension))).T


def check_particle_energies(exam: "ForceExamination") -> None:
    """Energies of particles, where they are defined, add up to the energy."""
    term, clock, state, cache = exam.term, exam.clock, exam.state, exam.cache
    if not _is_defined(lambda: term.particle_energies(clock, state, cache)):
        return
    if getattr(term, "tail", False):
        return  # what lies beyond a cutoff belongs to no particle

    @jax.jit
    def energies(state: State, cache: Cache) -> Any:
        parts = term.particle_energies(clock, state, cache)
        return jnp.sum(parts), jnp.sum(jnp.abs(parts)), term.energy(clock, state, cache)

    computed, magnitude, expected = energies(state, cache)
    name = f"{exam.what}: the sum of particle_energies against the energy"
    check_equal(computed, expected, name, "sum", floor=1e-12 * float(magnitude))


def check_heat_flux(exam: "ForceExamination") -> None:
    """J = Σ x (F·v + dE/dt) over particles, with their energies E; in free space, where x has one value."""
    term, clock, state, cache = exam.term, exam.clock, exam.state, exam.cache
    particles = get_component(state, term.component)
    is_free = isinstance(particles, Particles) and isinstance(particles.space, Free)
    if not is_free or len(term.components) > 1:
        return
    if not _is_defined(lambda: term.heat_flux(clock, state, cache)):
        return
    if not _is_defined(lambda: term.particle_energies(clock, state, cache)):
        return
    if acts_from_outside(term):
        return  # it carries nothing from particle to particle

    @jax.jit
    def fluxes(x, v, cache):
        here = exam.state_at(x)
        force = term(clock, here, cache)[0]
        change = jax.jvp(
            lambda x: term.particle_energies(clock, exam.state_at(x), cache), (x,), (v,)
        )[1]
        power = jnp.sum(force * v, axis=1) + change
        return term.heat_flux(clock, here, cache), power @ x, jnp.abs(power) @ jnp.abs(x)

    computed, expected, magnitude = fluxes(particles.position, particles.velocity, cache)
    name = f"{exam.what}.heat_flux against Σ x (F·v + dE/dt) of particle_energies"
    # Each sum is of large terms that cancel: momentum times places far from the origin.
    floor = 1e-11 * float(np.max(magnitude))
    check_equal(computed, expected, name, "gradient", floor=floor)


def _cells(exam: "ForceExamination") -> list[tuple[State, Cache, str]]:
    """The state that is examined and, where it has a cell, the same in a slightly larger one."""
    cells = [(exam.state, exam.cache, "")]
    if exam.in_larger_cell is not None:
        cells.append((*exam.in_larger_cell, ", in a box that grew by 1 %"))
    return cells


def _is_defined(function: Any) -> bool:
    """Whether a force says this at all. Abstract evaluation: not what it is."""
    try:
        jax.eval_shape(function)
    except (NoEnergyError, NoVirialError):
        return False
    return True
