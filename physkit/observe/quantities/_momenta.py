"""Momentum, angular momentum and center of mass."""

from jaxtyping import Array, Float

from physkit.core import ObserverError, ratio, static
from physkit.particles import angular_momentum, center_of_mass, total_momentum

from .._observer import AbstractQuantity
from .._selection import select_particle_components
from .._snapshot import Snapshot


class Momentum(AbstractQuantity):
    """Total momentum Σ m v of the particles that move; constant where all forces are between particles.

    **Arguments:**

    - `component`: one component; all particle components if left out.

    **Returns:** `[d]`, mass · length / time.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " d"]:
        return _total(
            [total_momentum(p) for p in select_particle_components(snapshot, self.component)]
        )


class CenterOfMass(AbstractQuantity):
    """Center of mass of the unwrapped paths, Σ m r / Σ m: it does not jump when particles cross the cell.

    **Arguments:**

    - `component`: one component; all particle components if left out.

    **Returns:** `[d]`, length.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " d"]:
        components = select_particle_components(snapshot, self.component)
        # Each center is divided by its own mass: weight the centers by mass again.
        masses = [p.sum(p.mass) for p in components]
        weighted = [m * center_of_mass(p) for m, p in zip(masses, components, strict=True)]
        return ratio(_total(weighted), _total(masses))


class AngularMomentum(AbstractQuantity):
    """Angular momentum, L = Σ m (r − o) × v, of the unwrapped paths.

    Constant in free space under central forces; a periodic cell does not conserve it.

    **Arguments:**

    - `component`: one component; all particle components if left out.
    - `about`: `"origin"`, or `"center"` for the center of mass.

    **Returns:** `[3]`; a scalar in two dimensions; mass · length² / time.

    **Errors:** `ShapeError` in one dimension, where there is none.
    """

    component: str | None = static(default=None)
    about: str = static(default="origin")

    def __check_init__(self):
        if self.about not in ("origin", "center"):
            raise ObserverError(f'about must be "origin" or "center"; got {self.about!r}')

    def __call__(self, snapshot: Snapshot) -> Float[Array, "..."]:
        about = None if self.about == "origin" else CenterOfMass(self.component)(snapshot)
        return _total(
            [
                angular_momentum(p, about)
                for p in select_particle_components(snapshot, self.component)
            ]
        )


def _total(terms: list[Array]) -> Array:
    """The sum of at least one array."""
    # Not from Python's 0, which would add an operation.
    return sum(terms[1:], terms[0])
