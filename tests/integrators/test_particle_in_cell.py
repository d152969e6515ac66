"""Fast charges in given fields and in those that they make: pushers, charge conservation, growth rates."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import NoEnergyError, ObserverError, ParameterError, ShapeError, StepSizeError
from physkit.coupling import CIC, PCS, TSC, deposit, deposit_current
from physkit.fields import ElectromagneticField
from physkit.fields.equations import Maxwell
from physkit.fields.operators import staggered_divergence
from physkit.geometry import Box, Grid, Location
from physkit.integrators import (
    HigueraCary,
    ParticleInCell,
    RelativisticBoris,
    RelativisticMotion,
    Vay,
)
from physkit.integrators.staggered._pushers import _mean_gamma
from physkit.observe import Every
from physkit.particles import Particles
from physkit.simulate import Simulation, simulate
from physkit.systems import weibel_growth_rate, weibel_instability

PUSHERS = [RelativisticBoris(), Vay(), HigueraCary()]


def charges(grid, count=60, seed=0, dtype=float):
    d, rng = len(grid.shape), np.random.default_rng(seed)
    x = rng.uniform(size=(count, d)) * np.asarray(grid.space.lengths)
    return Particles(
        jnp.asarray(x, dtype),
        2 * rng.normal(size=(count, d)),
        0.02 * rng.uniform(0.5, 1, count),
        grid.space,
        charge=0.02 * rng.choice([-1, 1.5], count),
    )


def plasma(grid, kernel=None, **options):
    maxwell = Maxwell(component="light")
    pic = ParticleInCell(maxwell, "ions", kernel=kernel or CIC())
    dtype = grid.space.lengths.dtype
    field = ElectromagneticField.of(grid, mode="TE" if grid.dimension == 2 else None, dtype=dtype)
    state = pic.with_gauss_law({"light": field, "ions": charges(grid, dtype=dtype)})
    dt = 0.9 * maxwell.longest_step(grid)
    return pic, Simulation(pic, dt=dt, **options), state


@pytest.mark.parametrize(
    ("shape", "kernel"),
    [
        ((5, 4), TSC()),
        pytest.param((6, 5), PCS(), marks=pytest.mark.slow),
        pytest.param((4, 5, 6), CIC(), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_currents_carry_the_charge(shape, kernel):
    d = len(shape)
    grid = Grid(Box([1.0, 2.0, 1.5][:d]), shape)
    before = charges(grid, 30)
    step = np.random.default_rng(1).uniform(-1, 1, (30, d)) * np.asarray(grid.spacing)
    after = before.shift(pk.components.ParticleIncrement(position=jnp.asarray(step)))
    nodes = Location((True,) * d)

    @jax.jit
    def residual(before, after):
        current = deposit_current(before.charge, before, after, 0.3, grid, kernel)
        rho = [deposit(p.charge, p, grid, kernel, location=nodes) for p in (before, after)]
        return (
            (rho[1] - rho[0]) / 0.3,
            staggered_divergence(current),
            [c.integral() for c in current],
        )

    change, flow, total = residual(before, after)
    size = float(jnp.max(jnp.abs(flow.data)))
    assert size > 0.01
    np.testing.assert_allclose(change.data + flow.data, 0, atol=1e-13 * size)
    # ∫ J dV = Σ q v
    expected = np.sum(np.asarray(before.charge)[:, None] * step / 0.3, axis=0)
    np.testing.assert_allclose(np.array(total), expected, rtol=1e-11)


def test_currents_in_si_units():
    """Cells of 10 nm: the volume of one times a step is 0 in single precision."""
    h, e, dt = 1e-8, 1.6e-19, 1.7e-17
    grid = Grid(Box(jnp.full(3, 4 * h, jnp.float32)), (4, 4, 4))
    step = jnp.full((1, 3), 0.2 * h, jnp.float32)
    before = Particles(jnp.full_like(step, 1.5 * h), 0.0, 9.1e-31, grid.space, charge=-e)
    after = before.shift(pk.components.ParticleIncrement(position=step))
    for current in deposit_current(before.charge, before, after, jnp.float32(dt), grid):
        assert current.data.dtype == jnp.float32
        np.testing.assert_allclose(jnp.sum(current.data), -e * 0.2 / dt / h**2, rtol=1e-5)


@pytest.mark.slow  # in media, it stays in the fast suite, too
def test_gauss_law_stays():
    grid = Grid(Box([2.0, 3.0]), (8, 6))
    pic, simulation, start = plasma(grid, TSC())
    residual = np.asarray(pic.gauss_residual(start).data)
    np.testing.assert_allclose(residual, residual.mean(), atol=1e-13)
    end = simulate(simulation, start, 200).state
    assert float(jnp.max(jnp.abs(end["light"].Ex.data - start["light"].Ex.data))) > 0.01
    np.testing.assert_allclose(pic.gauss_residual(end).data, residual, atol=1e-12)


@pytest.mark.parametrize(
    "medium", [pk.electromagnetism.Dielectric(4.0), pk.electromagnetism.Drude(2.0)], ids=str
)
def test_gauss_law_stays_in_media(medium):
    grid = Grid(Box([2.0, 3.0]), (8, 6))
    maxwell = Maxwell(medium, component="light")
    pic = ParticleInCell(maxwell, "ions")
    field = maxwell.add_memory(ElectromagneticField.of(grid, mode="TE"))
    start = pic.with_gauss_law({"light": field, "ions": charges(grid)})
    residual = np.asarray(pic.gauss_residual(start).data)
    np.testing.assert_allclose(residual, residual.mean(), atol=1e-13)
    end = simulate(Simulation(pic, dt=0.1), start, 30).state
    assert float(jnp.max(jnp.abs(end["light"].Ex.data - start["light"].Ex.data))) > 0.01
    np.testing.assert_allclose(pic.gauss_residual(end).data, residual, atol=1e-12)


def test_a_background_at_rest():
    grid = Grid(Box([2.0, 3.0]), (8, 6))
    pic, _, start = plasma(grid)
    background = pic.charge_density(start) * -1.0
    neutral = pic.with_gauss_law(start, background)
    np.testing.assert_allclose(neutral["light"].Ex.data, 0, atol=1e-13)
    np.testing.assert_allclose(pic.gauss_residual(neutral).data, background.data, atol=1e-13)


@pytest.mark.parametrize("pusher", PUSHERS, ids=lambda p: type(p).__name__)
def test_pushers(pusher):
    """In pure B the momentum keeps its size; where E and B cancel a fast particle goes straight; order 2."""

    def end(b, e, u, dt, steps):
        d = len(u)
        one = Particles(jnp.zeros((1, d)), jnp.array([u]), 1.3, charge=-0.7)
        return simulate(Simulation(RelativisticMotion(b, e, pusher), dt=dt), one, steps).state

    for b, u in ((2.0, [3.0, 1.0]), ([0.3, 0.5, 2.0], [3.0, 1.0, 0.5])):
        speed = np.linalg.norm(end(b, None, u, 0.5, 500).velocity)
        expected = np.linalg.norm(u)
        assert abs(speed / expected - 1) < 1e-13
    v = 0.99
    u = v / math.sqrt(1 - v**2)
    drifted = end([0.0, 0.0, 1.0], [0.0, v, 0.0], [u, 0.0, 0.0], 0.5, 100)
    away = float(jnp.max(jnp.abs(drifted.position[0] - jnp.array([50 * v, 0, 0]))))
    # Boris's cancels E and v × B only where the step is short.
    assert (away > 1e-3) if isinstance(pusher, RelativisticBoris) else (away < 1e-10)

    def b(t, x, y):
        return 1 + 0.3 * x + 0.1 * t

    def e(t, x, y):
        return 0.2 * jnp.sin(y), 0.3 + 0 * x

    ends = [np.asarray(end(b, e, [1.0, 0.5], 2 / n, n).position) for n in (16, 32, 64)]
    order = math.log2(np.max(abs(ends[0] - ends[1])) / np.max(abs(ends[1] - ends[2])))
    assert 1.9 < order < 2.1


@pytest.mark.parametrize(
    ("u", "tau"),
    [
        ([3.0, 1.0], [2.0]),
        ([1e10, 0.0], [5e8]),
        ([0.1, 0.0], [1e4]),
        ([1e9, 2e9, 0.5e9], [1e9, 1e9, 4e9]),
        ([0.1, 0.2, 0.3], [1e4, 2e4, 1e4]),
    ],
)
def test_mean_gamma_in_single_precision(u, tau):
    """Squares of the largest of these are beyond single precision, and their differences are its rounding."""

    def reference(u, tau):
        along = jnp.vdot(u, tau) if len(u) == 3 else 0.0
        rest = 4 * (tau @ tau + along**2)
        sigma = 1 + u @ u - tau @ tau
        larger = abs(sigma) + jnp.sqrt(sigma**2 + rest)
        return jnp.sqrt(0.5 * jnp.where(sigma < 0, rest / larger, larger))

    def found(u, tau):
        return _mean_gamma(u[None], tau[None], jnp.ones((), u.dtype))[0, 0]

    expected = jax.value_and_grad(reference, (0, 1))(*(jnp.asarray(x) for x in (u, tau)))
    single = [jnp.asarray(x, jnp.float32) for x in (u, tau)]
    value, slopes = jax.value_and_grad(found, (0, 1))(*single)
    np.testing.assert_allclose(value, expected[0], rtol=1e-5)
    for x, got, slope in zip((u, tau), slopes, expected[1], strict=True):
        least = 1e-6 * float(value) / max(np.abs(x))
        np.testing.assert_allclose(got, slope, rtol=1e-4, atol=least)


@pytest.mark.parametrize("pusher", PUSHERS, ids=lambda p: type(p).__name__)
def test_fast_charges_turn_in_single_precision(pusher):
    """At γ = 10¹⁰ by 2 atan(τ/γ); Higuera and Cary's γ is that of the mean of u."""
    u = jnp.array([[1e10, 0.0]], jnp.float32)
    after = pusher.push(u, 0 * u, jnp.array([[5e8]], jnp.float32), jnp.float32(1))
    angle = 2 * (math.asin if isinstance(pusher, HigueraCary) else math.atan)(0.05)
    np.testing.assert_allclose(after[0] / 1e10, [math.cos(angle), -math.sin(angle)], rtol=1e-5)


@pytest.mark.slow
def test_filaments_grow_as_theory_says():
    simulation, state = weibel_instability(0.5, cells=24, per_cell=1)
    frames = simulate(simulation, state, 240).frames
    t = np.arange(241) * float(simulation.dt)
    magnetic = np.asarray(frames["magnetic"])
    part = (t > 10) & (magnetic < 0.02)
    rate = 0.5 * np.polyfit(t[part], np.log(magnetic[part]), 1)[0]
    assert abs(rate / float(weibel_growth_rate(0.5, 1.0)) - 1) < 0.02
    # Momenta are half a step behind.
    kinetic = np.asarray(frames["kinetic"])
    total = np.asarray(frames["field"])[:-1] + 0.5 * (kinetic[:-1] + kinetic[1:])
    lost = abs(total - total[0])[part[:-1]].max()
    assert lost < 0.1 * magnetic[part].max()


@pytest.mark.slow
def test_a_cold_plasma_rings():
    """Particles displaced along x: E_x oscillates at the plasma frequency."""
    grid = Grid(Box([2 * math.pi, 0.8]), (32, 4))
    x = (np.arange(64) + 0.5) / 64 * 2 * math.pi
    y = (np.arange(4) + 0.5) * 0.2
    places = np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
    places[:, 0] += 1e-3 * np.sin(places[:, 0])
    weight = float(np.prod(np.asarray(grid.space.lengths))) / len(places)
    electrons = Particles(places, None, weight, grid.space, charge=-weight)
    pic = ParticleInCell(Maxwell(component="light"), "electrons")
    field = ElectromagneticField.of(grid, mode="TE")
    state = pic.with_gauss_law({"light": field, "electrons": electrons})
    watch = Every(1, e=lambda now: now.state["light"].Ex.data[8, 0])
    frames = simulate(Simulation(pic, dt=0.1, observers=watch), state, 130).frames
    e = np.asarray(frames["e"])
    t = 0.1 * np.arange(131)
    falls = [t[i] + 0.1 * e[i] / (e[i] - e[i + 1]) for i in np.nonzero(e[1:] * e[:-1] < 0)[0]]
    # Half a period apart; h = 0.2 makes waves slower by (kh)²/6 at most.
    assert np.diff(falls).mean() == pytest.approx(math.pi, rel=0.01)


def test_derivatives():
    grid = Grid(Box([2.0, 3.0]), (5, 4))
    _, simulation, start = plasma(grid)

    def energy(dx, du, dq):
        ions = start["ions"]
        ions = ions.replace(
            position=ions.position + dx, velocity=ions.velocity + du, charge=ions.charge * (1 + dq)
        )
        end = simulate(simulation, {**start, "ions": ions}, 4).state
        return (end["light"].Ey ** 2).integral() + jnp.sum(end["ions"].position[:, 0] ** 2)

    rng = np.random.default_rng(3)
    shape = start["ions"].position.shape
    point = (jnp.zeros(shape), jnp.zeros(shape), jnp.zeros(()))
    direction = (*(jnp.asarray(rng.normal(size=shape)) for _ in range(2)), jnp.asarray(0.5))
    both = jax.jit(jax.value_and_grad(energy, (0, 1, 2)))
    slope = both(*point)[1]
    total = sum(jnp.vdot(a, b) for a, b in zip(slope, direction, strict=True))
    shifted = lambda h: both(*(p + h * d for p, d in zip(point, direction, strict=True)))[0]
    numeric = (shifted(1e-6) - shifted(-1e-6)) / 2e-6
    np.testing.assert_allclose(total, numeric, rtol=1e-6)


@pytest.mark.slow
def test_float32():
    grid = Grid(Box(jnp.asarray([2.0, 3.0], jnp.float32)), (8, 6))
    pic, simulation, start = plasma(grid)
    end = simulate(simulation, start, 50).state
    assert end["light"].Ex.data.dtype == end["ions"].velocity.dtype == jnp.float32
    residual = pic.gauss_residual(start).data
    np.testing.assert_allclose(pic.gauss_residual(end).data, residual, atol=2e-4)


def test_wrong_input_is_explained():
    grid = Grid(Box([2.0, 3.0]), (8, 6))
    pic, simulation, start = plasma(grid)
    light, ions = start["light"], start["ions"]
    with pytest.raises(StepSizeError, match="Courant"):
        simulate(Simulation(pic, dt=1.0), start, 1)
    with pytest.raises(ShapeError, match='mode="TE"'):
        simulate(simulation, {"light": ElectromagneticField.of(grid), "ions": ions}, 1)
    with pytest.raises(ParameterError, match="no charge"):
        simulate(simulation, {"light": light, "ions": ions.replace(charge=None)}, 1)
    with pytest.raises(ParameterError, match="give it a name"):
        ParticleInCell(Maxwell(), "ions")
    with pytest.raises(ParameterError, match="species"):
        ParticleInCell(Maxwell(component="light"), "light")
    closed = Grid(Box([2.0, 3.0], (False, True)), (8, 6))
    walled = ElectromagneticField.of(closed, mode="TE")
    with pytest.raises(ParameterError, match="particle-in-cell"):
        simulate(Simulation(pic, dt=0.1), {"light": walled, "ions": ions}, 1)
    half = pk.electromagnetism.Dielectric(4.0, shape=lambda x, y: x - 1.0)
    inside = ParticleInCell(Maxwell(half, component="light"), "ions")
    with pytest.raises(ParameterError, match="ε depends on place"):
        inside.with_gauss_law(start)
    with pytest.raises(ParameterError, match="takes no wavevector"):
        ParticleInCell(Maxwell(component="light", wavevector=[1.0, 0.0]), "ions")
    complex_light = ElectromagneticField.of(grid, mode="TE", dtype=complex)
    with pytest.raises(ParameterError, match="real fields"):
        simulate(simulation, {"light": complex_light, "ions": ions}, 1)
    elsewhere = ions.replace(space=Box(1.5 * np.asarray(grid.space.lengths)))
    with pytest.raises(ParameterError, match="ParticleInCell: the particles' box"):
        simulate(simulation, start | {"ions": elsewhere}, 1)
    for integrator in (RelativisticMotion, pk.Boris):
        with pytest.raises(ParameterError, match="turns charges about B: give a number"):
            integrator(None)
    line = Particles([[0.1]], charge=1.0)
    with pytest.raises(ShapeError, match="take a plane"):
        simulate(Simulation(RelativisticMotion(1.0), dt=0.1), line, 1)


def test_the_energy_of_fast_charges_takes_the_speed_of_light_of_their_integrator():
    one = Particles([[0.0, 0, 0]], [[6e8, 0, 0]], 2.0, charge=1.0)
    kinetic = pk.electromagnetism.RelativisticKineticEnergy()
    moved = RelativisticMotion([0.0, 0, 0], component="fast", speed_of_light=3e8)
    both = {"slow": one.replace(velocity=0 * one.velocity), "fast": one}
    apart = pk.Lie(moved, pk.VelocityVerlet(pk.HarmonicTrap(0.0, component="slow")))
    found = pk.evaluate(Simulation(apart, 1e-9), both, K=kinetic)["K"]
    np.testing.assert_allclose(found, 2 * 9e16 * (math.sqrt(5) - 1), rtol=1e-12)
    still = Simulation(pk.VelocityVerlet(pk.HarmonicTrap(0.0)), 1e-9)
    with pytest.raises(ObserverError, match="what the speed of light is"):
        pk.evaluate(still, one, K=kinetic)


def test_energies_of_fast_charges_are_relativistic():
    one = Particles([[0.0, 0, 0]], [[3.0, 0, 0]], 2.0, charge=1.0)

    def recorded(quantity):
        moved = RelativisticMotion([0.0, 0, 1.0], [0.1, 0, 0])
        return simulate(Simulation(moved, 0.01, Every(1, E=quantity)), one, 1).frames["E"][0]

    kinetic = recorded(pk.electromagnetism.RelativisticKineticEnergy())
    np.testing.assert_allclose(kinetic, 2 * (math.sqrt(10) - 1), rtol=1e-12)
    for quantity in (pk.TotalEnergy(), pk.PotentialEnergy(), pk.quantities.ConservedEnergy()):
        with pytest.raises(NoEnergyError, match="RelativisticKineticEnergy"):
            recorded(quantity)
    given = pk.electromagnetism.RelativisticKineticEnergy(speed_of_light=1.0)
    np.testing.assert_array_equal(recorded(given), kinetic)
    guard = pk.guards.EnergyDrift(5, energy=pk.electromagnetism.RelativisticKineticEnergy())
    moved = RelativisticMotion([0.0, 0, 1.0])
    assert pk.run(Simulation(moved, 0.01, guards=[guard]), one, 5, progress=False).steps == 5
    both = {"fast": one, "slow": Particles([[0.0, 0, 0]], [[0.1, 0, 0]], 2.0)}
    apart = pk.Lie(
        RelativisticMotion([0.0, 0, 1.0], component="fast"),
        pk.VelocityVerlet(pk.HarmonicTrap(0.0, component="slow")),
    )
    record = Every(1, slow=pk.KineticEnergy("slow"))
    slow = simulate(Simulation(apart, 0.01, record), both, 1).frames["slow"]
    np.testing.assert_allclose(slow, 0.01, rtol=1e-12)
    for quantity in (pk.KineticEnergy(), pk.Temperature()):
        with pytest.raises(ObserverError, match=r"holds γv(.|\n)*RelativisticKineticEnergy"):
            recorded(quantity)
