"""Bonded, charged and many-body forces in SI units and single precision: 10⁻¹⁰ m, 10⁻²² J, 10⁻¹⁹ C.

Powers of such numbers are beyond it. Energies, forces, virials and their derivatives by positions and by the
logarithms of all parameters are those in units of one.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit import forces, potentials
from physkit.core import Clock, StepCount
from physkit.testing import check_units

# Every force and its derivatives, in two systems of units.
pytestmark = pytest.mark.compiled_quickly

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = ("test_same_values_and_derivatives[MorseBonds]",)

# A chain of five that is bent and twisted, with bonds of about 1.
CHAIN = np.array(
    [[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [1.3, 1.0, 0.2], [2.2, 1.2, 0.7], [2.4, 2.1, 1.2]]
)
CHARGES = np.array([0.6, -0.4, 0.5, -0.9, 0.2])
PAIRS = [[0, 1], [1, 2], [2, 3], [3, 4]]
TRIPLES = [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
QUADRUPLES = [[0, 1, 2, 3], [1, 2, 3, 4]]


def chain(u):
    return pk.Particles(
        (CHAIN + 0.8) * u.length,
        mass=[u.mass] * 5,
        charge=CHARGES * u.charge,
        space=pk.Box(np.full(3, 6.0 * u.length)),
    )


def coulomb(u):
    """The Coulomb constant."""
    return 1.4 * u.energy * u.length / u.charge**2


def torsion_map(u):
    phi, psi = np.meshgrid(*[np.arange(6) * np.pi / 3] * 2, indexing="ij")
    return forces.TorsionMaps([[0, 1, 2, 3, 4]], (np.cos(phi) + np.sin(phi + 2 * psi)) * u.energy)


def metal(u):
    """Tables on grids of 0.25."""
    rho, r = np.linspace(0, 3, 13), np.linspace(0, 2.5, 11)
    fall = (1 - r / 2.5) ** 3
    return potentials.EmbeddedAtom(
        -np.sqrt(1 + rho)[None] * u.energy,
        fall[None],
        (3 * fall - fall**2)[None, None] * u.energy * u.length,
        density_spacing=0.25,
        distance_spacing=0.25 * u.length,
        cutoff=2.5 * u.length,
    )


def tersoff(u):
    return potentials.Tersoff(
        A=18.0 * u.energy,
        B=6.0 * u.energy,
        lambda1=2.5 / u.length,
        lambda2=1.7 / u.length,
        lambda3=0.9 / u.length,
        beta=0.3,
        c=2.0,
        d=1.5,
        R=1.6 * u.length,
        S=2.3 * u.length,
    )


def silicon(u):
    return potentials.StillingerWeber(2.0 * u.energy, 1.2 * u.length)


def angle_bias(u):
    return pk.HarmonicBias(pk.sampling.Angle([0, 1], 2, 3), 3.0 * u.energy, 1.5)


def size_bias(u):
    return pk.HarmonicBias(pk.sampling.RadiusOfGyration([0, 1, 2, 4]), 3 * u.stiffness, u.length)


FORCES = {
    "HarmonicBonds": lambda u: pk.HarmonicBonds(PAIRS, 30 * u.stiffness, 0.9 * u.length),
    "MorseBonds": lambda u: forces.MorseBonds(PAIRS, u.energy, 2 / u.length, 0.9 * u.length),
    "FENEBonds": lambda u: forces.FENEBonds(PAIRS, 30 * u.stiffness, 1.5 * u.length),
    "HarmonicAngles": lambda u: pk.HarmonicAngles(TRIPLES, 5 * u.energy, 1.9),
    "CosineAngles": lambda u: forces.CosineAngles(TRIPLES, 5 * u.energy, 1.9),
    "CosineSquaredAngles": lambda u: forces.CosineSquaredAngles(TRIPLES, 5 * u.energy, 1.9),
    "PeriodicTorsions": lambda u: pk.PeriodicTorsions(QUADRUPLES, 2 * u.energy, 3, 0.4),
    "RyckaertBellemansTorsions": lambda u: forces.RyckaertBellemansTorsions(
        QUADRUPLES, np.array([9.28, 12.16, -13.12, -3.06, 26.24, -31.5]) * u.energy
    ),
    "HarmonicTorsions": lambda u: forces.HarmonicTorsions(QUADRUPLES, 2 * u.energy, 0.4),
    "TorsionMaps": torsion_map,
    "Ewald": lambda u: pk.Ewald(2.4 * u.length, 1e-3, coulomb_constant=coulomb(u), waves=5),
    "Ewald, excluded": lambda u: pk.Ewald(
        2.4 * u.length, 1e-3, coulomb_constant=coulomb(u), waves=5, exclude=PAIRS
    ),
    "ParticleMeshEwald": lambda u: pk.ParticleMeshEwald(
        2.4 * u.length, 1e-3, coulomb_constant=coulomb(u), mesh=16
    ),
    "ReactionField": lambda u: pk.Pairwise(
        potentials.ReactionField(2.4 * u.length, 78.3, coulomb(u)),
        2.4 * u.length,
        truncation="plain",
    ),
    "StillingerWeber": lambda u: pk.ManyBody(silicon(u), cutoff=2.3 * u.length),
    "Tersoff": lambda u: pk.ManyBody(tersoff(u), cutoff=2.4 * u.length),
    "EmbeddedAtom": lambda u: pk.ManyBody(metal(u)),
    "HarmonicBias of an angle": angle_bias,
    "HarmonicBias of a size": size_bias,
}


def evaluate(u, name):
    """Energy, force and virial, and derivatives of the energy and of a sum of forces."""
    particles, force = chain(u), FORCES[name](u)
    weights = jnp.cos(jnp.arange(15.0)).reshape(5, 3)

    def values(position, charge, force):
        moved = particles.replace(position=position, charge=charge)
        cache = force.init(moved)
        pushed = force(CLOCK, moved, cache)[0]
        energy = force.energy(CLOCK, moved, cache)
        virial = force.virial(CLOCK, moved, cache)
        return {
            "energy": energy / u.energy,
            "force": jnp.sum(weights * (pushed / u.force)),
            "virial": jnp.sum(weights[:3] * virial) / u.energy,
        }

    numbers = particles.position, particles.charge, force
    slopes = {}
    for what in ("energy", "force", "virial"):
        one = jax.grad(lambda *x, what=what: values(*x)[what], (0, 1, 2), allow_int=True)
        slopes[what] = jax.tree.map(_by_logarithm, numbers, one(*numbers))
    return {"values": values(*numbers), "slopes": slopes}


def _by_logarithm(x, slope):
    # Whole numbers, places of bonds, have slopes of no type.
    return None if slope.dtype == jax.dtypes.float0 else np.asarray(x * slope)


@pytest.mark.parametrize("name", FORCES)
def test_same_values_and_derivatives(name):
    check_units(
        functools.partial(evaluate, name=name), precisions=(np.float32,), exact=False, relative=2e-3
    )
