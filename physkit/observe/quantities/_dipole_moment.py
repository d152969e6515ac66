"""The dipole moment of a periodic cell."""

from jaxtyping import Array, Float

from physkit.core import ParameterError, static

from .._observer import AbstractQuantity
from .._selection import select_particle_components
from .._snapshot import Snapshot


class DipoleMoment(AbstractQuantity):
    """Total dipole moment Σ q r of the unwrapped paths: it does not jump when a molecule crosses the cell.

    Its fluctuations give `dielectric_constant`.

    **Arguments:**

    - `component`: one component; all particle components if left out.

    **Returns:** `[d]`, charge · length.

    **Errors:** `ParameterError` for particles without charge.

    **Notes:** for molecules that are neutral each and start whole; for ions it is their current, summed up.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " d"]:
        moments = []
        for particles in select_particle_components(snapshot, self.component):
            if particles.charge is None:
                raise ParameterError("DipoleMoment is of charges: give Particles(…, charge=…)")
            moments.append(particles.sum(particles.charge[:, None] * particles.unwrapped))
        first, *others = moments
        return sum(others, first)
