"""The same physics in other units: what physkit ships, and specimens with an absolute number inside."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.integrators import EquationsOfMotion, Heun
from physkit.testing import Units, check_units

STEPS = 6


def particles(u, *, n=3, d=2, space=None, charge=False, speed=1.0):
    """A jittered lattice at distances near 1.1 u.length."""
    rng = np.random.default_rng(4)
    sites = np.stack(np.meshgrid(*[np.arange(n)] * d), -1).reshape(-1, d) * 1.15 + 0.5
    x = sites + rng.uniform(-0.05, 0.05, sites.shape)
    v = speed * rng.normal(size=sites.shape)
    mass, charges = rng.uniform(1, 2, len(x)), rng.choice([-1.0, 1.0], len(x))
    return pk.Particles(
        jnp.asarray(x) * u.length, jnp.asarray(v) * u.speed, jnp.asarray(mass) * u.mass, space,
        charge=jnp.asarray(charges) * u.charge if charge else None,
    )  # fmt: skip


def motion(u, integrator, state, **more):
    """The last positions and velocities, and what was observed, as pure numbers."""
    observers = [pk.Every(2, potential=pk.PotentialEnergy(), kinetic=pk.KineticEnergy())]
    sim = pk.Simulation(integrator, 0.005 * u.time, observers=observers, **more)
    done = pk.run(sim, state, STEPS, progress=False)
    return {
        "x": done.state.position / u.length,
        "v": done.state.velocity / u.speed,
        **{k: f / u.energy for k, f in done.frames.items()},
    }


def pair_motion(u, potential, **more):
    box = pk.Box(jnp.asarray([3.45, 3.45]) * u.length)
    force = pk.Pairwise(potential, 1.6 * u.length, use_neighbor_list=False, **more)
    return motion(u, pk.VelocityVerlet(force), particles(u, space=box, charge=True))


def energies(u, table):
    return jnp.asarray(table) * u.energy


PAIRS = {
    "LennardJones": lambda u: pk.LennardJones(1.2 * u.energy, 1.0 * u.length),
    "WCA": lambda u: pk.potentials.WCA(1.2 * u.energy, 1.0 * u.length),
    "Morse": lambda u: pk.potentials.Morse(1.2 * u.energy, 5.0 / u.length, 1.1 * u.length),
    "Buckingham": lambda u: pk.potentials.Buckingham(
        900.0 * u.energy, 0.2 * u.length, 1.0 * u.energy * u.length**6
    ),
    "Yukawa": lambda u: pk.potentials.Yukawa(1.0 * u.energy * u.length, 0.7 * u.length),
    "SoftSphere": lambda u: pk.potentials.SoftSphere(1.0 * u.energy, 1.0 * u.length, 9.0),
    "Coulomb": lambda u: pk.Coulomb(1.0 * u.energy * u.length / u.charge**2, 0.8 * u.length),
}


def list_motion(u):
    box = pk.Box(jnp.asarray([3.45, 3.45]) * u.length)
    force = pk.Pairwise(PAIRS["LennardJones"](u), 1.4 * u.length, exact=True)
    return motion(u, pk.VelocityVerlet(force), particles(u, space=box))


def orbit(u, softening=0.1, speed=1.0):
    constant = 1.0 * u.length**3 / u.mass / u.time**2
    force = pk.DirectGravity(constant, softening * u.length)
    return motion(u, pk.Leapfrog(force), particles(u, speed=speed))


def molecule(u):
    bonds = pk.HarmonicBonds([[0, 1], [1, 2]], 50.0 * u.stiffness, 1.1 * u.length)
    angles = pk.HarmonicAngles([[0, 1, 2]], 5.0 * u.energy, 1.9)
    return motion(u, pk.RK4(EquationsOfMotion(bonds + angles)), particles(u))


def outside(u):
    force = (
        pk.HarmonicTrap(2.0 * u.stiffness, jnp.asarray([1.0, 1.5]) * u.length)
        + pk.UniformAcceleration(jnp.asarray([0.0, -9.8]) * u.acceleration)
        + pk.UniformField(jnp.asarray([1.0, 0.3]) * u.force / u.charge)
    )
    field = 1.3 * u.mass / u.charge / u.time
    return motion(u, pk.Boris(field, force=force), particles(u, charge=True))


def relaxed(u, tolerance=None):
    box = pk.Box(jnp.asarray([3.45, 3.45]) * u.length)
    force = pk.Pairwise(PAIRS["LennardJones"](u), 1.6 * u.length, use_neighbor_list=False)
    found = pk.minimize(force, particles(u, space=box))
    return {
        "x": found.state.position / u.length,
        "energy": force.energy(pk.components.Clock.at(0, 0.0, 1.0), found.state) / u.energy
        if tolerance
        else 0.0,
        "converged": found.converged,
    }


def on_a_line(u, term, value, *, dt, boundary=None, periodic=True, integrator=pk.RK4):
    grid = pk.Grid(pk.Box([2.0 * u.length], periodic=periodic), (24,))
    wave = lambda x: (1.0 + 0.3 * jnp.sin(jnp.pi * x / u.length)) * value
    field = pk.Field.from_function(grid, wave, boundary=boundary)
    sim = pk.Simulation(integrator(term), dt * u.time)
    return pk.run(sim, field, STEPS, progress=False).state.data / value


FIELDS = {
    "diffusion between walls": lambda u: on_a_line(
        u, pk.equations.Diffusion(0.1 * u.diffusivity, scheme=pk.schemes.Central(2)), u.temperature,
        dt=0.01, periodic=False, integrator=Heun,
        boundary={"x": (
            pk.boundaries.Dirichlet(1.0 * u.temperature),
            pk.boundaries.Neumann(0.5 * u.temperature / u.length),
        )},
    ),
    "advection": lambda u: on_a_line(u, pk.equations.Advection(0.7 * u.speed), u.temperature, dt=0.01),
    "burgers": lambda u: on_a_line(
        u, pk.equations.Burgers(0.05 * u.diffusivity), u.speed, dt=0.01, integrator=pk.ETDRK4
    ),
    "kdv": lambda u: on_a_line(
        u, pk.equations.KortewegDeVries(6.0 * u.speed, 0.01 * u.length**3 / u.time), 1.0, dt=0.001,
        integrator=pk.ETDRK4,
    ),
    "fisher": lambda u: on_a_line(u, pk.equations.FisherKPP(2.0 / u.time, 1.5), 1.0, dt=0.01),
}  # fmt: skip


def gas_motion(u, reconstruction, riemann=None):
    grid = pk.Grid(pk.Box([1.0 * u.length]), (32,))

    # Small ripples on a large background, and a jump: both show an absolute number.
    def density(x):
        jump = jnp.where(x > 0.5 * u.length, 0.5, 0.0)
        return u.density * (1.0 + 0.2 * jnp.sin(2 * jnp.pi * x / u.length) + jump)

    gas = pk.components.Gas.from_primitive(
        grid, density, (0.3 * u.speed,), 1.0 * u.pressure, gamma=1.4
    )
    riemann = riemann or pk.riemann.HLLC()
    law = pk.equations.CompressibleEuler(1.4, riemann=riemann, reconstruction=reconstruction)
    sim = pk.Simulation(pk.SSPRK3(law), 0.004 * u.time)
    state = pk.run(sim, gas, STEPS, progress=False).state
    return {
        "density": state.density.data / u.density,
        "momentum": state.momentum.data / (u.density * u.speed),
        "energy": state.energy.data / u.pressure,
    }


def dam_break(u):
    """A millimeter of water in kilometers is as wet as any other."""
    grid = pk.Grid(pk.Box([1.0 * u.length], periodic=False), (24,))
    x = grid.coordinates()[0]
    depth = jnp.where(x < 0.5 * u.length, 1e-3 * u.length, 0.0)
    water = pk.components.ShallowWaterState.of(grid, depth, boundary=pk.boundaries.Mirror())
    law = pk.equations.ShallowWaterFV(9.81 * u.acceleration)
    sim = pk.Simulation(pk.SSPRK2(law), 0.1 * u.time)
    state = pk.run(sim, water, STEPS, progress=False).state
    return {
        "depth": state.depth.data / u.length,
        "momentum": state.momentum.data / u.length / u.speed,
    }


R = pk.reconstructions
GASES = {
    "MUSCL": lambda u: gas_motion(u, R.MUSCL()),
    "WENO5": lambda u: gas_motion(u, R.WENO5()),
    "exact": lambda u: gas_motion(u, R.PiecewiseConstant(), pk.riemann.ExactRiemann()),
}


def guarded(u, tolerance=1e-3):
    """A step far too long, which a guard on the energy must see in all units."""
    sim = pk.Simulation(
        pk.VelocityVerlet(pk.HarmonicTrap(400.0 * u.stiffness)), 0.09 * u.time,
        guards=[pk.guards.EnergyDrift(2, tolerance)],
    )  # fmt: skip
    return pk.run(sim, particles(u), STEPS, progress=False).state.position / u.length


def overlapping(u):
    """Two particles in one place."""
    state = particles(u)
    x = state.position.at[1].set(state.position[0])
    state = pk.Particles(x, state.velocity, state.mass)
    force = pk.Pairwise(PAIRS["LennardJones"](u), 1.6 * u.length)
    return motion(u, pk.VelocityVerlet(force), state)


CASES = {
    **{
        name: functools.partial(lambda u, p: pair_motion(u, p(u)), p=p) for name, p in PAIRS.items()
    },
    "neighbor list, exact sums": list_motion,
    "gravity": orbit,
    "molecule": molecule,
    "outside fields": outside,
    "minimize": relaxed,
    **FIELDS,
    **GASES,
    "water on dry ground": dam_break,
    "energy guard": guarded,
    "overlap": overlapping,
}
QUICK = (
    "minimize",
    "diffusion between walls",
    "energy guard",
    "WENO5",
    "gravity",
    "water on dry ground",
)
ERRORS = {
    "energy guard": pk.errors.SimulationDiverged,
    "overlap": pk.errors.OverlapError,
}
DIMENSIONS = dict.fromkeys((*FIELDS, *GASES, "water on dry ground"), 1)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_same_physics(name):
    # A descent gives all particles the mass 1: its time is √(length/force), here no power of two.
    exact = name != "minimize"
    check_units(
        CASES[name], dimension=DIMENSIONS.get(name, 2), exact=exact, raises=ERRORS.get(name, ())
    )


class Regularized(pk.AbstractForce):
    """A trap whose pull is softened by an absolute 1e-6."""

    conserves_momentum = False
    stiffness: jax.Array = pk.param(default=1.0)
    component: str | None = pk.static(default=None)

    def energy(self, clock, state, cache=None):
        return jnp.sum(self.stiffness * state.position**2 / (1 + 1e-6 / jnp.sum(state.position**2)))


def trapped(u, force):
    sim = pk.Simulation(pk.VelocityVerlet(force(2.0 * u.stiffness)), 0.01 * u.time)
    return pk.run(sim, particles(u), 2, progress=False).state.position / u.length


def test_an_absolute_number_is_found():
    check_units(functools.partial(trapped, force=pk.HarmonicTrap))
    with pytest.raises(AssertionError, match=r"in powers of two, float64: .* differs"):
        check_units(functools.partial(trapped, force=Regularized))


def threshold(u):
    if 2.0 * u.length < 1e-3:
        raise pk.errors.OverlapError("two bodies overlap")
    return 1.0


def test_an_error_in_some_units_only_is_found():
    with pytest.raises(AssertionError, match=r"in powers of two, .*OverlapError.* no error"):
        check_units(threshold)


def test_the_same_mistake_in_all_units_is_no_agreement():
    def mistaken(u):
        raise pk.errors.ShapeError("a mistake")

    with pytest.raises(pk.errors.ShapeError, match="a mistake"):
        check_units(mistaken)
    check_units(mistaken, raises=pk.errors.ShapeError)


def test_a_warning_in_some_units_only_is_found():
    def warns(u):
        if u.energy < 1e-3:
            import warnings

            warnings.warn("tiny", stacklevel=1)
        return 1.0

    with pytest.raises(AssertionError, match=r"warned of .*tiny.*; in units of one of nothing"):
        check_units(warns)


def test_units_that_are_derived():
    u = Units(2.0, 4.0, 8.0, dimension=2)
    assert (u.speed, u.acceleration, u.force, u.energy) == (0.5, 0.125, 1.0, 2.0)
    assert (u.stiffness, u.volume, u.density, u.pressure) == (0.5, 4.0, 2.0, 0.5)


def test_numbers_that_are_not_finite_agree_with_nothing():
    with pytest.raises(AssertionError, match=r"in units of one, float64: .* is not finite"):
        check_units(lambda u: {"x": np.array([1.0, np.nan])})
