"""What is wrong with molecules is an error before the first step, and is named."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import CutoffError, DamagedFileError, ParameterError
from physkit.particles import DistanceConstraints, Particles, RigidWater, lattice
from physkit.particles.forces import (
    Ewald,
    FENEBonds,
    Forces,
    HarmonicAngles,
    HarmonicBonds,
    HarmonicTorsions,
    LennardJones,
    Modulated,
    MorseBonds,
    Pairwise,
    PeriodicTorsions,
    RyckaertBellemansTorsions,
    SpecialPairs,
    TorsionMaps,
    read_funcfl,
    read_setfl,
)

SITES, BOX = lattice.simple_cubic(4, density=0.1)
LINE = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 1, 0], [4, 1, 1]])
BENT = np.array([[0.0, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1], [2, 1, 1]])
CHAIN = np.array([[9.9, 5, 5], [0.2, 5, 5], [0.5, 5, 5]])  # a bond over the side of a box of 10
TWO_SPECIES = LennardJones(jnp.ones((2, 2)), 1.0)
TRIANGLE = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])


def crystal(**options):
    return Particles(SITES, space=BOX, **options)


def start(force, particles):
    """What `run` does before its first step."""
    return pk.init(pk.Simulation(pk.VelocityVerlet(force), dt=1e-3), particles)


def with_charge(force):
    return start(force, crystal(charge=np.ones(64)))


# What is wrong → what does it, and the error that names it.
FORCES = {
    "net charge, Ewald": (lambda: with_charge(Ewald(2.0)), ParameterError, "add up to 64.*background=True"),
    "net charge, mesh": (
        lambda: with_charge(pk.ParticleMeshEwald(2.0, 1e-3)), ParameterError, "add up to 64",
    ),
    "cutoff beyond the cell": (
        lambda: start(Pairwise(LennardJones(), 5.0), crystal()), CutoffError, "5 is beyond the image limit 4.3",
    ),
    "cutoff of a mesh": (
        lambda: start(pk.ParticleMeshEwald(5.0, 1e-3), crystal(charge=np.tile([1, -1], 32))),
        CutoffError, "5 is beyond the image limit 4.3",
    ),
    "cutoff of many bodies": (
        lambda: start(pk.ManyBody(pk.potentials.StillingerWeber(sigma=4.0)), crystal()),
        CutoffError, "7.2 is beyond",
    ),
    "torsion on one line": (
        lambda: start(PeriodicTorsions([[1, 2, 3, 4], [0, 1, 2, 3]], 1.0, 3), Particles(LINE)),
        ParameterError, r"torsions\[1\], of particles \[0, 1, 2, 3\], .*on one line",
    ),
    "polynomial torsion": (
        lambda: start(RyckaertBellemansTorsions([[0, 1, 2, 3]], np.arange(6)), Particles(LINE)),
        ParameterError, "on one line",
    ),
    "improper torsion, inside of a sum": (
        lambda: start(
            HarmonicBonds([[0, 1]], 1.0, 1.0) + Modulated(HarmonicTorsions([[3, 2, 1, 0]], 1.0), 1.0),
            Particles(LINE),
        ),
        ParameterError, "on one line",
    ),
    "torsion map": (
        lambda: start(TorsionMaps([[3, 4, 2, 1, 0]], np.ones((4, 4))), Particles(LINE)),
        ParameterError, r"torsion maps\[0\].*on one line",
    ),
    "angle of one spot": (
        lambda: start(HarmonicAngles([[0, 1, 2]], 1.0, 1.0), Particles(LINE[[0, 0, 1]])),
        ParameterError, r"angles\[0\].*on one spot",
    ),
    "molecule split over the box": (
        lambda: start(HarmonicBonds([[0, 1], [1, 2]], 100.0, 0.3), Particles(CHAIN)),
        ParameterError, r"particles \[0, 1\] has the length 0.3, but they are 9.7 apart.*split over the border",
    ),
    "split over an open axis": (
        lambda: start(
            MorseBonds([[0, 1], [1, 2]], 1.0, 1.0, 0.3),
            Particles(CHAIN, space=pk.Box([10.0] * 3, (False, True, True))),
        ),
        ParameterError, "split over the border",
    ),
    "bond beyond half the box": (
        lambda: start(HarmonicBonds([[0, 1]], 1.0, 6.0), Particles(CHAIN, space=pk.Box([10.0] * 3))),
        ParameterError, "length 6, beyond half the box, 5",
    ),
    "bond longer than it can be": (
        lambda: start(FENEBonds([[0, 1]], 30.0, 0.9), Particles(LINE)),
        ParameterError, "cannot be longer than 0.9; at the start it is 1",
    ),
    "no species": (
        lambda: start(Pairwise(TWO_SPECIES, 2.0), crystal()), ParameterError, "give Particles.*species",
    ),
    "species without parameters": (
        lambda: start(Pairwise(TWO_SPECIES, 2.0), crystal(species=np.arange(64) % 3)),
        ParameterError, "LennardJones has tables for 2 species.*has species 2",
    ),
    "species of special pairs": (
        lambda: start(SpecialPairs([[0, 1]], TWO_SPECIES), crystal(species=np.arange(64) % 3)),
        ParameterError, "tables for 2 species.*has species 2",
    ),
    "species of many bodies": (
        lambda: start(pk.ManyBody(_gold_and_copper()), crystal(species=np.arange(64) % 3)),
        ParameterError, "tables for 2 species.*has species 2",
    ),
    "constraint that is named twice": (
        lambda: Particles(TRIANGLE, constraints=DistanceConstraints([[0, 1], [1, 0]], 1.0)),
        ParameterError, r"\[0, 1\] has 2 constraints",
    ),
    "overlapping constraints": (
        lambda: Particles(
            TRIANGLE,
            constraints=RigidWater([[0, 1, 2]], 1.0, 2**0.5) + DistanceConstraints([[1, 2]], 2**0.5),
        ),
        ParameterError, "particle 1 is in 2 clusters.*overlapping",
    ),
    "constraint split over the box": (
        lambda: Particles(CHAIN, constraints=DistanceConstraints([[0, 1]], 0.3)),
        ParameterError, "9.7 apart.*split over the border",
    ),
}  # fmt: skip


def _gold_and_copper():
    table = np.ones((2, 8))
    return pk.potentials.EmbeddedAtom(
        table, table, np.ones((2, 2, 8)), density_spacing=1.0, distance_spacing=0.3, cutoff=2.0
    )


@pytest.mark.parametrize("name", FORCES)
def test_it_is_named_before_the_first_step(name):
    build, error, words = FORCES[name]
    with pytest.raises(error, match=words):
        build()


def test_what_is_right_starts():
    """Across a side of the box, bent, stretched by a user, or with torsions that have no energy."""
    boxed = Particles(CHAIN, space=pk.Box([10.0] * 3))
    assert isinstance(start(HarmonicBonds([[0, 1], [1, 2]], 100.0, 0.3), boxed).state, Particles)
    linear = PeriodicTorsions([[0, 1, 2, 3], [1, 2, 3, 4]], [0.0, 1.0], 3)
    springs = HarmonicBonds([[0, 1], [3, 4]], 1.0, 0.1)
    start(Forces((linear, springs), ("torsions", "springs")), Particles(LINE))
    start(TorsionMaps([[0, 1, 2, 3, 4]], np.ones((4, 4))), Particles(BENT))


def test_a_truncated_potential_file_is_named(tmp_path):
    setfl = "a\nb\nc\n1 Cu\n8 1.0 8 0.5 3.5\n29 63.5 3.6 fcc\n" + "0.1 " * 24
    funcfl = "a\n29 63.5 3.6 fcc\n8 1.0 8 0.5 3.5\n" + "0.1 " * 24
    for read, text in ((read_setfl, setfl), (read_funcfl, funcfl)):
        path = tmp_path / "cut.eam"
        path.write_text(text)
        read(path)
        path.write_text(text[:-20])
        with pytest.raises(DamagedFileError, match=r"cut\.eam.* cut short: .* numbers wanted"):
            read(path)


def test_a_force_of_openmm_that_has_no_counterpart_is_named():
    openmm = pytest.importorskip("openmm")
    system = openmm.System()
    system.addParticle(1.0)
    system.addForce(openmm.GBSAOBCForce())
    with pytest.raises(ParameterError, match="the system has a GBSAOBCForce: no force here does"):
        pk.interop.from_openmm(system, positions=np.zeros((1, 3)))
