"""The dipole moment of a periodic cell."""

from typing import TypeGuard

import jax
from jaxtyping import Array, Float

from physkit.core import ObserverError, ParameterError, PyTree, get_component, static
from physkit.particles import AbstractBodies, Particles
from physkit.particles.forces import VirtualSites

from .._observer import AbstractQuantity
from .._selection import select_particle_components
from .._snapshot import Snapshot


class DipoleMoment(AbstractQuantity):
    """Total dipole moment Σ q r of the unwrapped paths: it does not jump when a molecule crosses the cell.

    Charges on the sites of rigid bodies and on the `VirtualSites` of a running force count where they are. Its
    fluctuations give `dielectric_constant`.

    **Arguments:**

    - `component`: one component; all particle components if left out.

    **Returns:** `[d]`, charge · length.

    **Errors:** `ParameterError` for particles without charge; `ObserverError` where running forces see unequal
    numbers of charged virtual sites.

    **Notes:** for molecules that are neutral each and start whole; for ions it is their current, summed up.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " d"]:
        select_particle_components(snapshot, self.component)  # raises where there are none
        is_named = self.component is None and isinstance(snapshot.state, dict)
        moments = []
        for name in snapshot.state if is_named else (self.component,):
            if not isinstance(get_component(snapshot.state, name), AbstractBodies):
                continue
            charged = _charged_particles(snapshot, name)
            if charged.charge is None:
                raise ParameterError(
                    "DipoleMoment is of charges: give Particles(…, charge=…), RigidBodies(…, site_charge=…)"
                )
            moments.append(charged.sum(charged.charge[:, None] * charged.unwrapped))
        first, *others = moments
        return sum(others, first)


def _charged_particles(snapshot: Snapshot, name: str | None) -> Particles:
    """The particles of a component, the sites of its bodies, and the virtual sites that forces see."""
    forces = [
        force
        for term, _ in snapshot.terms()
        for force in jax.tree.leaves(term, is_leaf=_has_sites)
        if _has_sites(force) and force.component == name and force.charge is not None
    ]
    # Several forces may see the same sites.
    counts = {force.parents.places.shape[0] for force in forces}
    if len(counts) > 1:
        raise ObserverError(
            f"the running forces see {sorted(counts)} virtual sites with charges: which of them there are, "
            "DipoleMoment cannot tell; observe a function of the state"
        )
    if not forces:
        return get_component(snapshot.state, name).site_particles()
    force, state = forces[0], snapshot.state
    while _has_sites(force):  # sites may have sites as parents
        force, state = force.inner, force.seen_state(state)
    return get_component(state, name)


def _has_sites(node: PyTree) -> TypeGuard[VirtualSites]:
    return isinstance(node, VirtualSites)
