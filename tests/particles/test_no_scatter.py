"""No shipped force scatters, nor does its gradient or a Hessian-vector product of its work."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit.particles.forces
from physkit.core import Clock, StepCount
from physkit.geometry import Box, Free
from physkit.particles import DistanceConstraints, Particles, RigidWater
from physkit.particles.forces import (
    WCA,
    BondedEnergy,
    Buckingham,
    CosineAngles,
    CosineSquaredAngles,
    Coulomb,
    DampedCoulomb,
    DirectGravity,
    Distance,
    Ewald,
    ExternalEnergy,
    ExternalForce,
    ExternalWrench,
    FENEBonds,
    GridBias,
    HarmonicAngles,
    HarmonicBias,
    HarmonicBonds,
    HarmonicTorsions,
    HarmonicTrap,
    LennardJones,
    ManyBody,
    Modulated,
    Morse,
    MorseBonds,
    NeuralPair,
    Pairwise,
    PeriodicTorsions,
    RyckaertBellemansTorsions,
    ScaledCharges,
    SiteForce,
    SmearedCoulomb,
    SoftSphere,
    SpecialPairs,
    Tersoff,
    Torsion,
    TorsionMaps,
    UniformAcceleration,
    UniformField,
    VirtualSites,
    Yukawa,
)
from tests.testing.shipped import three_bodies

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
RING = [[k, (k + 1) % 8] for k in range(8)]
TABLE = np.array([[1.0, 0.6], [0.6, 1.3]])


def make_network():
    return eqx.nn.MLP("scalar", "scalar", 4, 1, activation=jnp.tanh, key=jax.random.key(0))


POTENTIALS = [
    lambda: LennardJones(),
    lambda: WCA(),
    lambda: Morse(),
    lambda: Buckingham(1000.0, 0.2, 2.0),
    lambda: Yukawa(),
    lambda: SoftSphere(),
    lambda: Coulomb(),
    lambda: NeuralPair(make_network()),
    lambda: DampedCoulomb(0.8),
    lambda: SmearedCoulomb(0.8),
]

FORCES = [
    lambda: Pairwise(LennardJones(TABLE, TABLE), 1.4, 0.2, exact=True, exclude=RING),
    lambda: HarmonicBonds(RING, np.arange(1.0, 9.0), 0.5),
    lambda: HarmonicAngles([[0, 1, 2], [2, 3, 4]], [1.0, 2.0], 1.0),
    lambda: TorsionMaps([[0, 1, 2, 3, 4]], np.cos(np.arange(16.0)).reshape(4, 4)),
    lambda: FENEBonds(RING, 3.0, 9.0),
    lambda: MorseBonds(RING, 1.0, 1.0, 1.0),
    lambda: CosineAngles([[0, 1, 2]], 2.0),
    lambda: CosineSquaredAngles([[0, 1, 2]], 2.0, 1.7),
    lambda: PeriodicTorsions([[0, 1, 2, 4]], 1.3, 2, 0.4),
    lambda: HarmonicTorsions([[0, 1, 2, 4]], 1.3, 0.4),
    lambda: RyckaertBellemansTorsions([[0, 1, 2, 4]], np.arange(6.0)),
    lambda: BondedEnergy(RING, lambda x, p: p["k"] * jnp.sum(x[1] ** 4), {"k": 1.0}),
    lambda: SpecialPairs(RING, Coulomb(), np.arange(1.0, 9.0)),
    lambda: ManyBody(Tersoff(R=1.2, S=1.5, beta=0.3), 1.5, 0.2),
    lambda: DirectGravity(1.2, 0.1),
    lambda: Ewald(1.4, 1e-2, exclude=RING, background=True, waves=2, skin=0.2),
    lambda: HarmonicTrap(),
    lambda: HarmonicBias(Distance([0, 1], 2), 1.0, 0.5),
    lambda: GridBias(Torsion(0, 1, 2, 4), -np.pi, nodes=8),
    lambda: ScaledCharges(Pairwise(Coulomb(), 1.4), [0, 3], 0.6),
    lambda: UniformAcceleration([0.0, 0.0, 1.0]),
    lambda: UniformField([0.0, 0.0, 1.0]),
    lambda: ExternalEnergy(lambda t, p, a: a * jnp.sum(p.position**4), jnp.asarray(1.0)),
    lambda: ExternalForce(lambda t, p: jnp.sin(p.position)),
    lambda: VirtualSites(
        HarmonicBonds(RING, 1.0, 0.5),
        [[0, 1, 2]],
        [0.3, 0.2],
        out_of_plane=0.4,
        charge=1.0,
        species=0,
    ),
    lambda: Modulated(HarmonicBonds(RING, 1.0, 0.5), 2.0),
    lambda: SiteForce(HarmonicBonds([[0, 4], [1, 5]], 2.0, 1.1)),
    lambda: ExternalWrench(lambda t, b: (-b.position, jnp.sin(b.position))),
]
# What scatters is a user's own function, whose derivative JAX takes.
OWN_FUNCTION = {"EnergyFunction"}


def disturbed_lattice(space):
    sites = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3) * 1.12
    x = sites + np.random.default_rng(0).uniform(-0.08, 0.08, sites.shape)
    charge = np.random.default_rng(1).normal(size=27)
    return Particles(x, 0 * x, 1.0, space, charge=charge, species=np.arange(27) % 2)


def lowered_programs(force, state):
    """The force, its gradient in all that floats, Hessian-vector products, as they go to XLA."""
    cache = force.init(state)
    floating, rest = eqx.partition((force, state), eqx.is_inexact_array)

    def value(floating):
        force, state = eqx.combine(floating, rest)
        return jnp.sum(jnp.sin(force(CLOCK, state, cache)[0]))

    slope = jax.grad(value)
    over_reverse = lambda v: jax.jvp(slope, (floating,), (v,))
    over_forward = jax.grad(lambda x: jax.jvp(value, (x,), (floating,))[1])
    both = lambda v: (over_reverse(v), over_forward(v))
    return [jax.jit(f).lower(floating).as_text() for f in (slope, both)]


def class_of(make):
    return repr(make()).split("(")[0]


# Slow: programs of seconds, made of sums that others of the list show.
LARGE = ("ManyBody", "Ewald", "GridBias", "SiteForce", "TorsionMaps")
# Slow: all of these are the same pair sum.
PAIRWISE_BY_POTENTIAL = [lambda make=make: Pairwise(make(), 1.4, 0.2) for make in POTENTIALS]


@pytest.mark.parametrize(
    "make",
    [
        *[pytest.param(m, marks=[pytest.mark.slow] * (class_of(m) in LARGE)) for m in FORCES],
        *[pytest.param(make, marks=pytest.mark.slow) for make in PAIRWISE_BY_POTENTIAL],
    ],
    ids=class_of,
)
def test_nothing_scatters(make):
    force = make()
    if isinstance(force, SiteForce | ExternalWrench):
        state = three_bodies()
    else:
        state = disturbed_lattice(Free() if isinstance(force, DirectGravity) else Box([3.6] * 3))
    for text in lowered_programs(force, state):
        assert "scatter" not in text


def test_constraints_add_in_no_order():
    """Nothing of a drift, a kick and their gradient goes to places that may repeat."""
    corner = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    rigid = RigidWater([[0, 1, 2]], 1.0, 2**0.5)
    bonds = DistanceConstraints([[3, 4], [4, 5], [6, 7]], [1.0, 1.0, 1.0])
    position = np.concatenate([corner, corner[[1, 0, 2]] + 3, corner[:2] + 6])
    velocity = np.random.default_rng(0).normal(size=(8, 3))
    state = Particles(position, velocity, space=Box([20.0] * 3), constraints=rigid + bonds)
    floating, rest = eqx.partition(state, eqx.is_inexact_array)

    def value(floating):
        particles = eqx.combine(floating, rest)
        moved = particles.displace(0.01 * particles.velocity).constrain_velocities()
        return jnp.sum(jnp.sin(moved.position)) + jnp.sum(jnp.sin(moved.velocity))

    text = jax.jit(jax.grad(value)).lower(floating).as_text()
    scatters = [part.split("}>")[0] for part in text.split('"stablehlo.scatter"')[1:]]
    # Lengths are read once each.
    assert len(scatters) <= 2
    assert all("unique_indices = true" in part for part in scatters)


def test_a_plain_gather_would_scatter():
    """Else the test above could not fail."""
    pair = ExternalEnergy(
        lambda t, p: jnp.sum((p.position[jnp.array([0, 1])] - p.position[jnp.array([2, 2])]) ** 2)
    )
    assert "scatter" in lowered_programs(pair, disturbed_lattice(Free()))[0]


def test_every_force_has_a_case():
    shipped = {
        cls.__name__
        for cls in vars(physkit.particles.forces).values()
        if isinstance(cls, type)
        and issubclass(cls, physkit.particles.forces.AbstractForce)
        and not cls.__name__.startswith("Abstract")
    }
    assert {type(make()).__name__ for make in FORCES} | OWN_FUNCTION == shipped
