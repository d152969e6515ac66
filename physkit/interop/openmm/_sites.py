"""Virtual sites of an OpenMM system, and how its particles are numbered without them."""

from typing import Any, NamedTuple

import numpy as np

from physkit.core import ParameterError
from physkit.particles.forces import AbstractForce, VirtualSites

from ._quantities import Converter, plain


class Numbering(NamedTuple):
    """Particles first, sites after them, as `VirtualSites` shows them to its force.

    - `order`: `[m]`, OpenMM's numbers of the particles, then of the sites.
    - `place`: `[m]`, the inverse: where OpenMM's particle k is.
    - `count`: n, of particles. `parents`: `[s k]`, places. `weights`: `[s k-1]`, of all parents but the first.
    - `out_of_plane`: `[s]`, 1 / length; None where all sites are averages.
    """

    order: np.ndarray
    place: np.ndarray
    count: int
    parents: np.ndarray
    weights: np.ndarray
    out_of_plane: np.ndarray | None

    @property
    def has_sites(self) -> bool:
        """Whether there are any."""
        return self.count < len(self.order)

    def with_sites(
        self, force: AbstractForce, charge: np.ndarray | None, species: np.ndarray | None
    ) -> AbstractForce:
        """`force`, acting on the sites, too; `charge` and `species` are those of particles and sites."""
        if not self.has_sites:
            return force
        return VirtualSites(
            force,
            self.parents,
            self.weights,
            out_of_plane=self.out_of_plane,
            charge=None if charge is None else charge[self.count :],
            species=None if species is None else species[self.count :],
        )


def number_particles(system: Any, to: Converter) -> Numbering:
    """The numbering of a system, with its virtual sites.

    **Errors:** `ParameterError` for a kind of site that has no counterpart, for sites of different numbers of
    parents, and for a site whose parent is a site.
    """
    m = system.getNumParticles()
    is_site = np.array([system.isVirtualSite(k) for k in range(m)], bool)
    order = np.concatenate([np.flatnonzero(~is_site), np.flatnonzero(is_site)])
    place = np.argsort(order)
    count = m - int(is_site.sum())
    sites = [_read_site(system, int(k), to) for k in order[count:]]
    widths = {len(parents) for parents, _, _ in sites}
    if len(widths) > 1:
        raise ParameterError(
            f"virtual sites of {sorted(widths)} parents: one number is needed for all"
        )
    width = widths.pop() if widths else 2
    parents = place[np.array([p for p, _, _ in sites], int).reshape(-1, width)]
    if np.any(parents >= count):
        raise ParameterError(
            "a virtual site has a virtual site as parent, which has no counterpart here"
        )
    heights = np.array([height for _, _, height in sites])
    return Numbering(
        order,
        place,
        count,
        parents,
        np.array([weights for _, weights, _ in sites]).reshape(-1, width - 1),
        heights if np.any(heights) else None,
    )


def _read_site(system: Any, k: int, to: Converter) -> tuple[list[int], list[float], float]:
    """Parents of a site, the weights of all but the first, and its height out of their plane."""
    site = system.getVirtualSite(k)
    kind = type(site).__name__
    parents = [site.getParticle(i) for i in range(site.getNumParticles())]
    if kind in ("TwoParticleAverageSite", "ThreeParticleAverageSite"):
        return parents, [plain(site.getWeight(i)) for i in range(1, len(parents))], 0.0
    if kind == "OutOfPlaneSite":
        weights = [plain(site.getWeight12()), plain(site.getWeight13())]
        return parents, weights, plain(site.getWeightCross()) / to.length
    raise ParameterError(f"particle {k} is a {kind}, which has no counterpart here")
