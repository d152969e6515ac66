"""Quantities of a running particle mesh: density, potential, energy and Fourier modes."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, static
from physkit.coupling import Comoving, ParticleMesh

from .._observer import AbstractQuantity
from .._snapshot import Snapshot


class FieldEnergy(AbstractQuantity):
    """½ ∫ ρ φ dV of the running particle mesh: the energy of the electric field.

    **Returns:** a scalar, energy.

    **Errors:** `ObserverError` where no particle mesh is running.
    """

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        return require_mesh(snapshot).energy(snapshot.clock, snapshot.state)


class ModeAmplitude(AbstractQuantity):
    """Amplitude of one Fourier mode of the density on the running particle mesh.

        ρ_n = (2/N) Σ_i ρ_i exp(−2πi n·x_i/L)

    Complex: its magnitude is the amplitude of the wave, its angle the phase.

    **Arguments:**

    - `mode`: the integers n, one per axis; a plain integer in one dimension.

    **Errors:** `ObserverError` where no particle mesh is running, or for another number of axes.
    """

    mode: tuple[int, ...] = static(converter=lambda n: (n,) if isinstance(n, int) else tuple(n))

    def __call__(self, snapshot: Snapshot) -> Array:
        density = require_mesh(snapshot).density(snapshot.state)
        grid = density.grid
        if len(self.mode) != grid.dimension:
            raise ObserverError(
                f"{self.mode} on a mesh with {grid.dimension} axes: one number each"
            )
        phase = jnp.zeros(density.data.shape, density.data.dtype)
        for n, x, length in zip(self.mode, density.coordinates, grid.space.lengths, strict=True):
            # The factor takes the dtype of the coordinates: the box may hold another.
            phase = phase + (2 * jnp.pi * n / length).astype(x.dtype) * x
        # (2, *points): both parts in one sum, so in one reduction over devices.
        wave = jnp.stack([jnp.cos(phase), -jnp.sin(phase)]) * density.data[None]
        # Twice, as the modes n and −n of a real density together make up the wave.
        real, imaginary = 2 * grid.sum(wave) / math.prod(grid.shape)
        return jax.lax.complex(real, imaginary)


class MeshDensity(AbstractQuantity):
    """Density on the running particle mesh: charge or mass per volume, `[*points]`.

    **Errors:** `ObserverError` where no particle mesh is running.
    """

    def __call__(self, snapshot: Snapshot) -> Array:
        return require_mesh(snapshot).density(snapshot.state).data


class MeshPotential(AbstractQuantity):
    """Potential on the running particle mesh, `[*points]`.

    **Errors:** `ObserverError` where no particle mesh is running.
    """

    def __call__(self, snapshot: Snapshot) -> Array:
        return require_mesh(snapshot).potential(snapshot.state).data


def require_mesh(snapshot: Snapshot) -> ParticleMesh:
    """The particle mesh that is running.

    **Errors:** `ObserverError` when there is none, or more than one.
    """
    meshes: list[ParticleMesh] = []
    for term, _ in snapshot.terms():
        # In comoving coordinates the mesh is within the term that scales its forces.
        term = term.inner if isinstance(term, Comoving) else term
        meshes += [term] if isinstance(term, ParticleMesh) else []
    if len(meshes) != 1:
        raise ObserverError(f"this quantity is about one particle mesh; {len(meshes)} are running")
    return meshes[0]
