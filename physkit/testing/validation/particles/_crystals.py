"""Silicon and copper by many-body potentials: cohesion and elasticity."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import Clock, StepCount
from physkit.geometry import Triclinic
from physkit.particles import Particles, lattice
from physkit.particles.forces import (
    AbstractManyBodyPotential,
    ManyBody,
    StillingerWeber,
    Tersoff,
    read_funcfl,
)

from .._case import Case, Published, reference_data

_LATTICE = 5.431  # Å
_GPA = 160.21766208  # of one eV/Å³

_VOIGT = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))


def cohesion() -> dict[str, float]:
    """Energy per atom of the perfect diamond lattice, a = 5.431 Å."""
    silicon = _diamond()
    second = Tersoff(
        A=3264.7, B=95.373, lambda1=3.2394, lambda2=1.3258, lambda3=1.3258, beta=0.33675, n=22.956,
        c=4.8381, d=2.0417, h=0.0, R=2.8, S=3.2,
    )  # fmt: skip
    potentials = {"Stillinger–Weber": StillingerWeber(), "Tersoff T2": second}
    each = {
        name: ManyBody(potential).particle_energies(_now(), silicon)
        for name, potential in potentials.items()
    }
    return {name: float(jnp.mean(x)) for name, x in each.items()}


def copper() -> dict[str, float]:
    """Energy per atom of face-centered copper, a = 3.615 Å, by Foiles' universal functions (u3)."""
    potential = read_funcfl(reference_data() / "eam/Cu_u3.eam")
    x, box = lattice.face_centered_cubic((4, 4, 4), spacing=3.615)
    each = ManyBody(potential).particle_energies(_now(), Particles(x, space=box))
    return {"energy": float(jnp.mean(each))}


def elasticity() -> dict[str, Any]:
    """Elastic constants at rest, GPa: second derivatives of the energy by strain, with relaxed atoms."""
    constants = elastic_constants(StillingerWeber(), _diamond())
    return {"C11": constants[0, 0], "C12": constants[0, 1], "C44": constants[3, 3]}


def elastic_constants(potential: AbstractManyBodyPotential, crystal: Particles) -> np.ndarray:
    """C = (E_εε − E_εx E_xx⁻¹ E_xε)/V by Voigt's six strains, in GPa for eV and Å."""
    assert isinstance(crystal.space, Triclinic)
    force = ManyBody(potential)
    cache, vectors = force.init(crystal), crystal.space.vectors

    def energy(voigt, shift):
        strain = jnp.zeros((3, 3), voigt.dtype)
        for (a, b), e in zip(_VOIGT, voigt, strict=True):
            strain = strain.at[a, b].add(e / 2).at[b, a].add(e / 2)
        x = crystal.position + shift
        deformed = crystal.replace(
            position=x + x @ strain, space=Triclinic(vectors + vectors @ strain)
        )
        return force.energy(_now(), deformed, cache)

    zero = jnp.zeros(6), jnp.zeros_like(crystal.position)
    (ee, ex), (_, xx) = jax.jit(jax.hessian(energy, (0, 1)))(*zero)
    size = crystal.position.size
    ex, xx = np.asarray(ex).reshape(6, size), np.asarray(xx).reshape(size, size)
    # Three shifts of the whole crystal cost no energy: the inverse leaves them out.
    relaxed = np.asarray(ee) - ex @ np.linalg.pinv(xx, rcond=1e-9) @ ex.T
    return relaxed / float(crystal.space.volume) * _GPA


def _now() -> Clock:
    return Clock.at(StepCount.of(0), 0.0, 1.0)


def _diamond(cells: int = 2) -> Particles:
    fcc = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    basis = np.concatenate([fcc, fcc + 0.25])
    corners = np.stack(np.meshgrid(*[np.arange(cells)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    position = _LATTICE * (corners + basis).reshape(-1, 3)
    return Particles(position, space=Triclinic(cells * _LATTICE * np.eye(3)))


CASES = (
    Case(
        "silicon-cohesion",
        cohesion,
        (Published("Stillinger–Weber", -4.33660, 1e-5), Published("Tersoff T2", -4.63041, 1e-5)),
        "LAMMPS, logs of the potential benchmarks",
    ),
    Case(
        "copper-cohesion",
        copper,
        (Published("energy", -3.54000, 1e-5),),
        "LAMMPS, log of the benchmark of EAM; its file potentials/Cu_u3.eam",
        needs_reference_data="eam/Cu_u3.eam",
    ),
    Case(
        "silicon-elasticity",
        elasticity,
        (Published("C11", 151.4, 0.3), Published("C12", 76.4, 0.3), Published("C44", 56.4, 0.3)),
        "Cowley 1988, Phys. Rev. Lett. 60, 2379",
    ),
)
