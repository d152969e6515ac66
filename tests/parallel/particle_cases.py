"""Small cases of particle systems, run on one device and over several, and their differences.

As a program, `python particle_cases.py DEVICES SYSTEM …` prints the differences as JSON. Environment
variables choose the devices and the backend.
"""

import json
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk
from physkit.coupling import TSC, Drag, ParticleMesh
from physkit.geometry import Box, Grid
from physkit.integrators import RK4, Boris, Lie
from physkit.observe import (
    CenterOfMass,
    Every,
    FieldEnergy,
    KineticEnergy,
    MeanSquareDisplacement,
    MeshDensity,
    ModeAmplitude,
    Momentum,
    Positions,
    PotentialEnergy,
    Pressure,
    RadialDistribution,
    StructureFactor,
    Temperature,
    TotalEnergy,
    Velocities,
    VelocityAutocorrelation,
)
from physkit.particles import (
    DistanceConstraints,
    Ownership,
    Particles,
    RigidBodies,
    constrain,
    random_orientations,
)
from physkit.particles.forces import (
    DirectGravity,
    HarmonicAngles,
    HarmonicBonds,
    HarmonicTrap,
    LennardJones,
    Pairwise,
    SiteForce,
)


def fluid(cells=(16, 6), speed=1.0, periodic: Any = True, **options: Any) -> Particles:
    """Lennard-Jones particles near a lattice. They drift along x, and change slabs within some steps."""
    rng = np.random.default_rng(0)
    count = np.asarray(cells)
    sites = np.stack(np.meshgrid(*(np.arange(k) + 0.5 for k in cells), indexing="ij"), -1)
    x = 1.2 * sites.reshape(-1, len(cells)) + 0.02 * rng.standard_normal((count.prod(), len(cells)))
    v = speed * rng.standard_normal(x.shape)
    v += [4.0, *(0.0,) * (len(cells) - 1)] - v.mean(axis=0)
    return Particles(x, v, space=Box(1.2 * count, periodic), **options)


def molecular(observers: Any = (), **options: Any) -> tuple[Any, Any]:
    """Molecular dynamics at constant energy."""
    force = Pairwise(LennardJones(), 2.0, 0.3, **options)
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=observers), fluid()


def microcanonical() -> tuple[Any, Any]:
    observers = Every(
        20,
        energy=TotalEnergy(),
        temperature=Temperature(),
        pressure=Pressure(),
        momentum=Momentum(),
        center=CenterOfMass(),
        x=Positions(),
        v=Velocities(),
    )
    return molecular(observers)


def langevin() -> tuple[Any, Any]:
    atoms = fluid()
    force = Pairwise(LennardJones(), 2.0, 0.3) + HarmonicTrap(0.5, atoms.position)
    friction = jnp.linspace(0.5, 1.5, atoms.num_particles)
    observers = (
        Every(20, u=PotentialEnergy(), x=Positions()),
        MeanSquareDisplacement(10, 3),
        VelocityAutocorrelation(10, 3),
        RadialDistribution(20, 3.0, 20),
        StructureFactor(20, [[1, 0], [1, 1]]),
    )
    integrator = pk.BAOAB(force, temperature=1.0, friction=friction)
    return pk.Simulation(integrator, dt=0.004, observers=observers), atoms


def thermostatted() -> tuple[Any, Any]:
    names = np.arange(96) % 2
    atoms = fluid(species=names, charge=1.0 - 2.0 * names, mass=1.0 + names)
    force = Pairwise(
        LennardJones([[1.0, 0.5], [0.5, 1.0]], jnp.ones((2, 2))), 2.0, 0.3, component="atoms"
    )
    force = force + Pairwise(pk.potentials.Yukawa(), 2.0, 0.3, component="atoms")
    state = {"atoms": atoms, "thermostat": pk.integrators.ThermostatChain.at_rest()}
    integrator = pk.NoseHooverChain(force, temperature=1.0, period=0.5)
    observers = Every(20, conserved=pk.quantities.ConservedEnergy(), x=Positions(component="atoms"))
    return pk.Simulation(integrator, dt=0.004, observers=observers), state


def sheet() -> tuple[list[list[int]], list[list[int]]]:
    """Pairs and triples of neighbors on the fluid's lattice: along x (across slabs and box ends) and y."""
    index = np.arange(96).reshape(16, 6)
    along = [(index, np.roll(index, -1, axis=0)), (index[:, :-1], index[:, 1:])]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in along])
    corners = np.roll(index, 1, axis=0), index, np.roll(index, -1, axis=1)
    return pairs.tolist(), np.stack([x.ravel() for x in corners], 1).tolist()


def bonded() -> tuple[Any, Any]:
    """A net of bonds and angles; bonded particles do not interact otherwise."""
    pairs, triples = sheet()
    stiffness = jnp.linspace(20.0, 40.0, len(pairs))
    force = HarmonicBonds(pairs, stiffness, jnp.linspace(1.1, 1.3, len(pairs)))
    force = force + HarmonicAngles(triples, jnp.linspace(1.0, 2.0, len(triples)), 1.5)
    force = force + Pairwise(LennardJones(), 2.0, 0.3, exclude=pairs)
    observers = Every(20, energy=TotalEnergy(), pressure=Pressure(), x=Positions())
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=observers), fluid(speed=2.0)


def constrained() -> tuple[Any, Any]:
    """Bent molecules of three along x, across slabs and the box's end, with two rigid bonds or three."""
    index = np.roll(np.arange(96).reshape(16, 6), 1, axis=0)[:15].reshape(5, 3, 6)
    a, b, c = (index[:, k].ravel() for k in range(3))
    closed = np.arange(30) < 12
    pairs = [*zip(a, b, strict=True), *zip(b, c, strict=True), *zip(a[closed], c[closed])]
    lengths = np.array([1.2] * 60 + [2.38] * 12)
    plain = fluid(speed=2.0)
    atoms = Particles(
        plain.position, plain.velocity, space=plain.space,
        constraints=DistanceConstraints(pairs, lengths),
    )  # fmt: skip
    observers = Every(20, energy=TotalEnergy(), pressure=Pressure(), t=Temperature(), x=Positions())
    force = Pairwise(LennardJones(), 2.0, 0.3, exclude=[(int(i), int(j)) for i, j in pairs])
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=observers), constrain(atoms)


class Angular(pk.AbstractManyBodyPotential):
    """An energy of angles and distances, of species with a number each."""

    strength: Any = pk.param()
    cutoff = 2.0
    num_species = 2

    def site_energies(self, near):
        weight = jnp.exp(-near.distance) * (2.0 - near.distance) ** 3
        bend = weight[:, None] * weight[None] * (near.cosine + 0.3) ** 2
        mixed = self.strength[near.species] * near.sum(
            weight * self.strength[near.neighbor_species]
        )
        return near.sum_pairs(bend) - jnp.sqrt(0.1 + mixed)


def molecules() -> tuple[Any, Any]:
    """Rigid molecules of two sites that turn, whose sites stand out of their slab; springs between some."""
    bodies = _bodies()
    # Site 1 of one molecule and site 0 of the next along x, across slabs.
    first = np.arange(0, 88, 3)
    springs = np.stack([2 * first + 1, 2 * (first + 8)], axis=1)
    pair = LennardJones([[1.0, 0.6], [0.6, 0.8]], [[1.0, 0.9], [0.9, 0.8]])
    force = SiteForce(Pairwise(pair, 1.6, 0.1, exclude=bodies.site_pairs))
    force = force + SiteForce(HarmonicBonds(springs, 5.0, 1.2))
    observers = Every(20, energy=TotalEnergy(), x=Positions(), sites=Positions(sites=True))
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=observers), bodies


def solution() -> tuple[Any, Any]:
    """Such molecules and atoms between them, which one force sees as one; springs between both."""
    bodies, names = _bodies(), ["molecules", "atoms"]
    x = 1.8 * np.stack(np.meshgrid(np.arange(0, 12, 2), np.arange(4), [0, 1], indexing="ij"), -1)
    speed = np.random.default_rng(1).standard_normal((48, 3)) - np.array([4.0, 0.0, 0.0])
    atoms = Particles(x.reshape(-1, 3), speed, space=bodies.space, species=[1] * 48)
    # The molecule of the next slab's side, and the atom.
    springs = np.stack([2 * np.arange(0, 96, 8), 192 + np.arange(0, 48, 4)], axis=1)
    pair = LennardJones([[1.0, 0.6], [0.6, 0.8]], [[1.0, 0.9], [0.9, 0.8]])
    force = SiteForce(Pairwise(pair, 1.6, 0.1, exclude=bodies.site_pairs), names)
    force = force + SiteForce(HarmonicBonds(springs, 0.5, 1.2), names)
    observers = Every(20, energy=TotalEnergy(), x=Positions("atoms"), v=Velocities("molecules"))
    sim = pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=observers)
    return sim, {"molecules": bodies, "atoms": atoms}


def _bodies() -> RigidBodies:
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.arange(12), np.arange(4), [0, 1], indexing="ij"), -1)
    centers = 1.8 * (grid.reshape(-1, 3) + 0.5) + 0.05 * rng.standard_normal((96, 3))
    return RigidBodies.from_molecule(
        [[-0.4, 0.0, 0.0], [0.3, 0.0, 0.0]], centers, [1.0, 1.5], Box([21.6, 7.2, 3.6]),
        orientation=random_orientations(jax.random.key(2), 96),
        velocity=rng.standard_normal((96, 3)) + np.array([5.0, 0.0, 0.0]), site_species=[0, 1],
    )  # fmt: skip


def many_body() -> tuple[Any, Any]:
    """Neighborhoods that reach across slabs, with bonds and pairs: energies and heat of each."""
    pairs, triples = sheet()
    force = pk.ManyBody(Angular([0.7, 1.1]), skin=0.3) + HarmonicBonds(pairs, 20.0, 1.2)
    force = force + HarmonicAngles(triples, 2.0, 1.5) + Pairwise(LennardJones(), 2.0, 0.3)
    observers = Every(
        20,
        energy=TotalEnergy(),
        pressure=Pressure(),
        heat=pk.quantities.HeatFlux(),
        each=pk.quantities.ParticleEnergies(),
        x=Positions(),
    )
    atoms = fluid(speed=2.0, species=np.arange(96) % 2)
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=observers), atoms


def passing() -> tuple[Any, Any]:
    """Features that travel from slab to slab."""
    network = pk.potentials.MessagePassing(2.0, 3, 2, hidden=4, key=0)
    force = pk.ManyBody(network, skin=0.3) + Pairwise(pk.potentials.WCA(), 2.0, 0.3)
    observers = Every(20, energy=TotalEnergy(), pressure=Pressure(), x=Positions())
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.002, observers=observers), fluid(speed=2.0)


def walled() -> tuple[Any, Any]:
    """Not periodic along the sharded axis; a trap holds the particles."""
    atoms = fluid(periodic=(False, True))
    force = Pairwise(LennardJones(), 2.0, 0.3) + HarmonicTrap([0.2, 0.0], [9.6, 3.6])
    observers = Every(20, energy=TotalEnergy(), x=Positions())
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=observers), atoms


def cluster() -> tuple[Any, Any]:
    """Bodies that all attract each other, in a box that is not periodic."""
    rng = np.random.default_rng(0)
    x, v = rng.uniform(1.0, 7.0, size=(60, 3)), rng.standard_normal((60, 3))
    box = Box([8.0, 8.0, 8.0], periodic=False)
    stars = Particles(x, v - v.mean(axis=0), rng.uniform(0.5, 1.5, size=60), space=box)
    observers = Every(20, energy=TotalEnergy(), x=Positions())
    gravity = DirectGravity(0.1, softening=0.1)
    return pk.Simulation(pk.VelocityVerlet(gravity), dt=0.01, observers=observers), stars


def _plasma(box: Any) -> Particles:
    rng = np.random.default_rng(0)
    n = 300
    x = rng.uniform(size=(n, 2)) * np.asarray(box.lengths)
    charge = 0.3 * (-1.0) ** np.arange(n)
    return Particles(x, 2 * rng.standard_normal((n, 2)), space=box, charge=charge)


def plasma() -> tuple[Any, Any]:
    box = Box([8.0, 4.0])
    mesh = ParticleMesh(Grid(box, (32, 16)), kernel=TSC())
    observers = Every(
        20,
        energy=TotalEnergy(),
        field=FieldEnergy(),
        mode=ModeAmplitude((1, 1)),
        density=MeshDensity(),
        x=Positions(),
    )
    return pk.Simulation(pk.VelocityVerlet(mesh), dt=0.01, observers=observers), _plasma(box)


def radiating() -> tuple[Any, Any]:
    """Fast charges in the light that they make."""
    box = Box([8.0, 4.0])
    grid = Grid(box, (32, 16))
    maxwell = pk.electromagnetism.Maxwell(component="light")
    pic = pk.electromagnetism.ParticleInCell(maxwell, "charges", kernel=TSC())
    field = pk.electromagnetism.ElectromagneticField.of(grid, mode="TE")
    observers = Every(
        20,
        field=pk.electromagnetism.ElectromagneticEnergy("light"),
        kinetic=pk.electromagnetism.RelativisticKineticEnergy(),
        x=Positions(),
    )
    state = pic.with_gauss_law({"light": field, "charges": _plasma(box)})
    return pk.Simulation(pic, dt=0.1, observers=observers), state


def magnetized() -> tuple[Any, Any]:
    """Boris integrator with the energy-conserving mesh."""
    box = Box([8.0, 4.0])
    mesh = ParticleMesh(Grid(box, (16, 16)), kernel=TSC(), conserves="energy", interlaced=True)
    observers = Every(20, energy=KineticEnergy(), x=Positions())
    return pk.Simulation(Boris(0.5, force=mesh), dt=0.01, observers=observers), _plasma(box)


def drops() -> tuple[Any, Any]:
    """Particles and a flow that drag each other."""
    box = Box([8.0, 4.0])
    grid = Grid(box, (32, 16))
    wind = pk.Field.from_function(grid, lambda x, y: (jnp.sin(x) + 0 * y, jnp.cos(x) + 0 * y))
    state = {"particles": _plasma(box), "fluid": wind}
    drag = RK4(Drag(0.5, density=50.0, moving=True))
    observers = Every(
        20, momentum=Momentum(), x=Positions(), wind=pk.FieldValues(component="fluid")
    )
    return pk.Simulation(
        Lie(drag, pk.integrators.RemoveMomentum()), dt=0.02, observers=observers
    ), state


SYSTEMS = {
    f.__name__: f
    for f in (
        microcanonical,
        langevin,
        thermostatted,
        bonded,
        constrained,
        molecules,
        solution,
        many_body,
        passing,
        walled,
        cluster,
        plasma,
        radiating,
        magnetized,
        drops,
    )
}


def run_system(name: str, devices: tuple[int, ...] | None, steps: int = 60) -> Any:
    """Run a system over devices, or on one for None."""
    sim, state = SYSTEMS[name]()
    out = pk.run(sim, state, steps, key=jax.random.key(1), devices=devices, progress=False)
    assert out.stopped_by is None  # a signal would leave frames out
    return out


def differences(
    name: str, devices: tuple[int, ...], steps: int = 60, one: Any = None
) -> dict[str, float]:
    """Largest relative differences to one device, of everything that is recorded and of the state."""
    one = run_system(name, None, steps) if one is None else one
    many = run_system(name, devices, steps)
    found = {n: distance(many.frames[n], x) for n, x in one.frames.items()}
    for n, x in one.summary.items():
        found[n] = distance(many.summary[n]["value"], x["value"])
    return found | {
        "state": max(map(distance, *map(_numbers, (many.carry.state, one.carry.state))))
    }


def gradient(name: str, devices: tuple[int, ...] | None, steps: int = 20) -> Any:
    """The derivative of the last state's sum of squares by every number of simulation and state."""
    numbers, rest = eqx.partition(SYSTEMS[name](), eqx.is_inexact_array)

    def outcome(numbers):
        sim, state = eqx.combine(numbers, rest)
        done = pk.simulate(sim, state, steps, key=jax.random.key(1), devices=devices)
        last = jax.tree.leaves(eqx.filter(done.state, eqx.is_inexact_array))
        return sum(jnp.sum(x**2) for x in last), done.health

    found, health = jax.grad(outcome, has_aux=True)(numbers)
    health.check()
    return found


def has_migrated(state: Any) -> bool:
    """Whether any particle has changed devices."""

    def is_ownership(x):
        return isinstance(x, Ownership)

    nodes = jax.tree.leaves(state, is_leaf=is_ownership)
    return any(np.any(np.asarray(node.num_leaving)) for node in nodes if is_ownership(node))


def _numbers(state: Any) -> list[Any]:
    return [np.asarray(x, float) for x in jax.tree.leaves(state) if x.dtype != bool]


def distance(a: Any, b: Any) -> float:
    """The largest difference of two arrays, relative to the largest index in `b` (or to 1)."""
    a, b = np.nan_to_num(np.asarray(a), nan=-7.0), np.nan_to_num(np.asarray(b), nan=-7.0)
    assert a.shape == b.shape, (a.shape, b.shape)
    return float(np.abs(a - b).max(initial=0) / max(1.0, np.abs(b).max(initial=0)))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for system in sys.argv[2:]:
        count = tuple(map(int, sys.argv[1].split(",")))
        print(json.dumps({system: differences(system, count)}), flush=True)
