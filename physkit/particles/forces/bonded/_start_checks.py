"""Whether tuples make sense at the positions of a start, checked where their numbers can be seen."""

import equinox as eqx
import numpy as np
from jaxtyping import Array

from physkit.core import Module, ParameterError, as_device_array, concrete_value, is_concrete
from physkit.geometry import AbstractSpace

from ..._particles import Particles
from ...neighbors import space_numbers
from ._tuples import Tuples

# Three particles whose angle has a smaller sine count as on one line: forces of a torsion are 1/sine.
_MIN_SINE = 1e-3
# A bond this many times its length is another bond or a broken one, where most are within `_USUAL`.
_MAX_STRETCH, _USUAL = 5.0, 1.5
_LEAST_VECTORS = 256  # of a program: fewer are repeated to fill it


def vectors_at_start(
    tuples: Tuples, differences: tuple[tuple[int, int], ...], particles: Particles
) -> np.ndarray | None:
    """x_a − x_b of each tuple by the nearest image, `[v m d]`; None where a trace hides them."""
    position, places = (concrete_value(x) for x in (particles.position, tuples.places))
    if position is None or places is None or not is_concrete(particles.space) or not places.size:
        return None
    first, second = (places[:, [pair[end] for pair in differences]].T for end in (0, 1))
    shape = (*first.shape, particles.dimension)
    # All vectors at once, of a size that others have, too: one small program for all forces.
    size = max(_LEAST_VECTORS, 1 << (first.size - 1).bit_length())
    ends = (np.resize(position[x.ravel()], (size, shape[-1])) for x in (first, second))
    found = _displacements(particles.space, *map(as_device_array, ends))
    return np.asarray(found, float)[: first.size].reshape(shape)


@eqx.filter_jit
def _displacements(space: AbstractSpace, x: Array, y: Array) -> Array:
    return space.displacement(x, y)


def require_radians(part: Module, name: str, least: float, most: float, limits: str) -> None:
    """**Errors:** `ParameterError` for an angle that no radians are, such as one in degrees."""
    numbers = concrete_value(getattr(part, name))
    if numbers is None:
        return
    # Rounding: π of single precision is above that of double.
    outside = numbers[(numbers < least - 1e-6) | (numbers > most + 1e-6)]
    if outside.size:
        raise ParameterError(
            f"{type(part).__name__}: {name} is in radians, {limits}; got {outside.flat[0]:g} (of degrees: "
            f"np.radians({outside.flat[0]:g}))"
        )


def require_apart(vectors: np.ndarray, tuples: Tuples, name: str) -> None:
    """**Errors:** `ParameterError` for an angle of which two neighbors are on one spot."""
    _raise_if(np.any(np.linalg.norm(vectors, axis=-1) == 0, axis=0), tuples, name, "on one spot")


def require_bent(vectors: np.ndarray, is_felt: np.ndarray, tuples: Tuples, name: str) -> None:
    """**Errors:** `ParameterError` for a dihedral angle that is undefined and has an energy (`is_felt`)."""
    length = np.linalg.norm(vectors, axis=-1)
    sine_length = np.linalg.norm(np.cross(vectors[:-1], vectors[1:]), axis=-1)
    is_straight = np.any(sine_length <= _MIN_SINE * length[:-1] * length[1:], axis=0)
    _raise_if(is_straight & is_felt, tuples, name, "three of them on one line")


def _raise_if(undefined: np.ndarray, tuples: Tuples, name: str, why: str) -> None:
    if np.any(undefined):
        worst = int(np.argmax(undefined))
        members = np.asarray(tuples.places)[worst].tolist()
        raise ParameterError(
            f"{name}[{worst}], of particles {members}, has no angle at the start: {why}. Wrong places, or "
            "positions that are not those of the molecule?"
        )


def check_lengths(
    vectors: np.ndarray, rest: np.ndarray, tuples: Tuples, particles: Particles
) -> None:
    """**Errors:** `ParameterError` for bonds that the box is too small for, or that its border has broken."""
    places = np.asarray(tuples.places)
    limit = space_numbers(particles.space, particles.dimension).max_cutoff
    if np.any(rest > limit):
        worst = int(np.argmax(rest > limit))
        raise ParameterError(
            f"the bond between particles {places[worst].tolist()} has the length {rest[worst]:g}, beyond half "
            f"the box, {limit:g}: bonds take the nearest image"
        )
    distance = np.linalg.norm(vectors, axis=-1)
    stretch = distance[rest > 0] / rest[rest > 0]
    if not stretch.size or np.quantile(stretch, 0.5, method="lower") > _USUAL:
        return
    # From one end of all particles to the other, along an axis without images.
    extent = np.ptp(np.asarray(particles.position, float), axis=0)
    is_open = ~np.array(particles.space.periodic_axes(particles.dimension))
    reach = np.abs(vectors) + _MAX_STRETCH * rest[:, None]
    is_across = np.any((reach >= extent) & is_open, axis=1)
    is_broken = is_across & (rest > 0) & (distance > _MAX_STRETCH * rest)
    if np.any(is_broken):
        worst = int(np.argmax(is_broken))
        raise ParameterError(
            f"the bond between particles {places[worst].tolist()} has the length {rest[worst]:g}, but they are "
            f"{distance[worst]:g} apart, from one end of all particles to the other, where the space has no "
            "images: a molecule split over the border of a box that the particles do not have (space=Box(…))?"
        )
