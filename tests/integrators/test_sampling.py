"""Metadynamics, replica exchange, basin hopping: exact distributions, bitwise restarts, what is refused."""

import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit import sampling
from physkit.core import (
    Clock,
    ComponentError,
    DeclarationError,
    ObserverError,
    ParameterError,
    SelectionError,
    ShapeError,
    StepCount,
    replace_fields,
)
from physkit.integrators.sampling import _basin_hopping
from physkit.particles import Particles


def first(particles):
    return particles.position[0, 0]


X = sampling.CollectiveVariable(first)


def tilted_well(t, particles):
    x = particles.position[:, 0]
    return jnp.sum(x**4 - 2 * x**2 + 0.3 * x)


WELL = pk.ExternalEnergy(tilted_well)


def frames(run, name):
    return np.asarray(run.frames[name])


def same_bits(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def interrupted(sim, state, steps, folder, key=3):
    """Half of the steps, then the rest by another call that finds the checkpoint, as after a kill."""
    pk.run(sim, state, steps // 2, key=key, checkpoint=folder, progress=False)
    return pk.run(sim, state, steps, key=key, checkpoint=folder, resume=True, progress=False)


# --- metadynamics -------------------------------------------------------------------------------------


def metadynamics(**options):
    bias = sampling.GridBias(X, -2.5, 2.5, nodes=101)
    options = {"height": 0.03, "width": 0.15, "bias_factor": 8.0, "interval": 50} | options
    return pk.Metadynamics(pk.BAOAB(WELL + bias, temperature=0.15, friction=1.0), **options)


@pytest.mark.slow
def test_hills_fill_up_the_free_energy(tmp_path):
    """F of a double well within k_B T/3 over both wells and the barrier; bitwise after a stop."""
    watch = pk.Every(
        2000,
        F=sampling.MetadynamicsFreeEnergy(),
        x=sampling.CollectiveVariables(),
        conserved=pk.quantities.ConservedEnergy(),
    )
    sim = pk.Simulation(metadynamics(), dt=0.1, observers=watch)
    start = Particles(jnp.ones((1, 1)))
    run = pk.run(sim, start, 200_000, key=3, progress=False)
    nodes = np.linspace(-2.5, 2.5, 101)
    inside = np.abs(nodes) < 1.4
    difference = frames(run, "F")[50:].mean(0) - (nodes**4 - 2 * nodes**2 + 0.3 * nodes)
    difference = difference[inside] - difference[inside].mean()
    assert np.abs(difference).max() < 0.15 / 3
    again = interrupted(sim, start, 200_000, tmp_path / "halves")
    same_bits(again.carry, run.carry)


def test_the_first_hills_are_gaussians_of_the_right_height():
    """A resting particle: the second hill is lower by e^{−h/k_BΔT}."""
    bias = sampling.GridBias(X, -2.0, 2.0, nodes=401)
    inner = pk.Brownian(bias, temperature=1e-9, friction=1.0)
    meta = pk.Metadynamics(inner, height=0.5, width=0.2, bias_factor=1 + 0.25e9, interval=1)
    result = pk.simulate(pk.Simulation(meta, dt=1e-6), Particles(jnp.zeros((1, 1))), 2, key=0)
    nodes = np.linspace(-2.0, 2.0, 401)
    gauss = np.exp(-0.5 * (nodes / 0.2) ** 2)
    expected = 0.5 * (1 + np.exp(-0.5 / 0.25)) * gauss
    np.testing.assert_allclose(np.asarray(result.carry.aux[2]), expected, atol=1e-3)


def test_metadynamics_says_what_is_missing():
    with pytest.raises(SelectionError):
        pk.Metadynamics(pk.BAOAB(WELL, 1.0, 1.0), height=0.1, width=0.1)
    bias = sampling.GridBias(X, -2.0, 2.0)
    with pytest.raises(DeclarationError, match="temperature"):
        pk.Metadynamics(pk.VelocityVerlet(bias), height=0.1, width=0.1)
    with pytest.raises(ShapeError, match="width"):
        metadynamics(width=[0.1, 0.2])
    with pytest.raises(ParameterError, match="height"):
        metadynamics(height=-1.0)
    for factor in (1.0, 0.5):  # hills would be NaN, or grow without a limit
        with pytest.raises(ParameterError, match="bias_factor must be above 1"):
            metadynamics(bias_factor=factor)
    watch = pk.Every(1, F=sampling.MetadynamicsFreeEnergy())
    sim = pk.Simulation(pk.VelocityVerlet(WELL), dt=0.1, observers=watch)
    with pytest.raises(ObserverError, match="Metadynamics"):
        pk.simulate(sim, Particles(jnp.ones((1, 1))), 1)


@pytest.mark.parametrize("other", [{"lower": -3.0}, {"upper": 3.0}, {"nodes": 51}], ids=str)
def test_hills_in_a_carry_stay_on_their_grid(other):
    def sim(lower=-2.0, upper=2.0, nodes=101):
        bias = sampling.GridBias(X, lower, upper, nodes=nodes)
        inner = pk.BAOAB(WELL + bias, temperature=0.15, friction=1.0)
        return pk.Simulation(pk.Metadynamics(inner, 0.03, 0.15, interval=1), dt=0.01)

    carry = pk.simulate(sim(), Particles(jnp.ones((1, 1))), 2, key=0).carry
    assert np.max(sim().integrator.bias(carry.aux).values) > 0
    pk.simulate(sim(), carry, 1)
    with pytest.raises(ParameterError, match=r"101 nodes from -2 to 2, and .* Start from"):
        pk.simulate(sim(**other), carry, 1)


# --- replica exchange ---------------------------------------------------------------------------------

TEMPERATURES = np.array([0.15, 0.3, 0.6])


def temperature_axis(values):
    return pk.SweepAxis(lambda m: m[0].integrator.temperature, values)


@pytest.mark.slow
def test_exchanged_populations_of_a_double_well_are_exact(tmp_path):
    """Every temperature has its own distribution, the coldest too, which alone would not cross; bitwise."""
    thermostat = pk.BAOAB(WELL, temperature=0.2, friction=1.0)
    watch = (
        pk.Every(20, x=pk.Positions()),
        pk.Average(20, square=lambda now: jnp.mean(now.state.position**2)),
    )
    sim = pk.Simulation(thermostat, dt=0.05, observers=watch)
    start = Particles(jnp.ones((1, 1)))
    exchange, replicas = pk.replica_exchange(
        (sim, start), over=temperature_axis(TEMPERATURES), interval=10
    )
    run = pk.run(exchange, replicas, 200_000, key=1, progress=False)
    left = (frames(run, "x")[500:, :, 0, 0] < 0).mean(0)
    x = np.linspace(-3, 3, 4001)
    weight = np.exp(-(x**4 - 2 * x**2 + 0.3 * x) / TEMPERATURES[:, None])
    np.testing.assert_allclose(left, weight[:, x < 0].sum(1) / weight.sum(1), atol=0.02)
    square = np.mean(frames(run, "x")[1:] ** 2, axis=(0, 2, 3))
    np.testing.assert_allclose(run.summary["square"]["mean"], square, rtol=1e-3)
    # All states have been everywhere, and none twice at a time.
    who = frames(run, "replica")
    assert (np.sort(who, axis=1) == np.arange(3)).all()
    assert all(len(np.unique(who[:, k])) == 3 for k in range(3))
    again = interrupted(exchange, replicas, 20_000, tmp_path / "halves", key=1)
    same_bits(again.carry, pk.run(exchange, replicas, 20_000, key=1, progress=False).carry)


@pytest.mark.slow
def test_swaps_are_accepted_as_often_as_detailed_balance_says():
    """Harmonic oscillators in two dimensions: 2 T_a/(T_a + T_b) for T_a < T_b, from exponential energies.

    By temperature and, with half the stiffness instead of twice the temperature, by Hamiltonian; there U
    differs by place, and 64 oscillators are members of one sweep.
    """
    trap = pk.Simulation(pk.BAOAB(pk.HarmonicTrap(1.0), temperature=1.0, friction=1.0), dt=0.5)
    start = Particles(jnp.ones((1, 2)))
    axes = {
        2 / 3: temperature_axis([1.0, 2.0]),
        # Both at T = 1 with k and 2k: x scales, and U_k(x) is exponential at any k; the same ratio of β k.
        2 / 3 + 1e-9: pk.SweepAxis(lambda m: pk.find(m, pk.HarmonicTrap).stiffness, [1.0, 2.0]),
    }
    for expected, axis in axes.items():
        model = pk.replica_exchange((trap, start), over=axis, interval=4)
        sweep = pk.sweep(model, 4000, replicas=64, key=0, progress=False)
        rates = np.asarray(sweep["acceptance"])[:, -1, 0]
        assert abs(rates.mean() - expected) < 4 * rates.std() / 8
        assert rates.std() / 8 < 0.005


def test_velocities_follow_the_temperature():
    """One swap: what comes from a place of temperature 1 to one of 4 moves twice as fast."""
    free = pk.Simulation(pk.Andersen(pk.VelocityVerlet(pk.HarmonicTrap(0.0)), 1.0, 1e-12), dt=0.1)
    start = Particles(jnp.zeros((2, 3)), jnp.ones((2, 3)))
    over = pk.SweepAxis(lambda m: m[0].integrator.temperature, [1.0, 4.0])
    exchange, replicas = pk.replica_exchange((free, start), over=over, interval=1)
    result = pk.simulate(exchange, replicas, 1, key=0)
    velocity = np.asarray(result.state.states.velocity)
    np.testing.assert_allclose(velocity[:, 0, 0], [0.5, 2.0])
    assert np.asarray(result.carry.aux.replica).tolist() == [1, 0]


@pytest.mark.slow
def test_replicas_have_lists_and_observers_of_their_own():
    """A melt at two temperatures, with neighbor lists and a guard of every place."""
    position, box = pk.lattice.face_centered_cubic(3, spacing=1.7)
    atoms = Particles(position, space=box)
    force = pk.Pairwise(pk.LennardJones(), cutoff=1.5, skin=0.2)
    sim = pk.Simulation(
        pk.BAOAB(force, temperature=1.0, friction=1.0),
        dt=0.004,
        observers=pk.Every(10, T=pk.Temperature(), U=pk.PotentialEnergy()),
        guards=pk.Guard(10, lambda now: jnp.max(jnp.abs(now.state.velocity)) < 50),
    )
    exchange, replicas = pk.replica_exchange(
        (sim, atoms), over=temperature_axis([1.0, 1.1]), interval=5
    )
    run = pk.run(exchange, replicas, 40, key=0, progress=False)
    assert {frames(run, name).shape for name in "TU"} == {(5, 2)}
    assert np.isfinite(frames(run, "U")).all()


def test_a_part_that_an_exchange_sets_is_not_swept_but_its_neighbor_is():
    def stiffness(k):
        return pk.SweepAxis(
            lambda m: pk.find(m, pk.HarmonicTrap).stiffness[k], [1.0, 2.0], name="k"
        )

    sim = pk.Simulation(pk.BAOAB(pk.HarmonicTrap([1.0, 2.0]), 1.0, 1.0), dt=0.1)
    start = Particles(jnp.zeros((1, 2)))
    exchange = pk.replica_exchange((sim, start), over=stiffness(0), interval=1)
    pk.Sweep(exchange, 1, over=stiffness(1), key=0)
    with pytest.raises(SelectionError, match="sweeping it would change nothing"):
        pk.Sweep(exchange, 1, over=stiffness(0), key=0)


def test_replica_exchange_says_what_is_wrong():
    sim = pk.Simulation(pk.BAOAB(WELL, 1.0, 1.0), dt=0.1)
    start = Particles(jnp.ones((1, 1)))
    with pytest.raises(ParameterError, match="two or more"):
        pk.replica_exchange((sim, start), over=temperature_axis([1.0]))
    with pytest.raises(SelectionError, match="neither"):
        pk.replica_exchange((sim, start), over=pk.SweepAxis(lambda m: m[0].dt, [0.1, 0.2]))
    with pytest.raises(SelectionError, match="nothing but their states"):
        pk.replica_exchange((sim, start), over=pk.SweepAxis("state", [start, start]))
    exchange, _ = pk.replica_exchange((sim, start), over=temperature_axis([1.0, 2.0]), interval=1)
    with pytest.raises(DeclarationError, match="Replicas"):
        pk.simulate(exchange, start, 1, key=0)
    exchange = pk.replica_exchange((sim, start), over=temperature_axis([1.0, 2.0]), interval=1)
    # The temperature of the integrator inside is that of no place: members would be all alike.
    inner = pk.SweepAxis(lambda m: pk.find(m, pk.BAOAB).temperature, [1.0, 2.0])
    with pytest.raises(SelectionError, match="sweeping it would change nothing"):
        pk.Sweep(exchange, 1, over=inner, key=0)
    ladders = lambda m: pk.find(m, pk.integrators.ReplicaExchange).values[0]
    friction = pk.SweepAxis(lambda m: pk.find(m, pk.BAOAB).friction, [1.0, 2.0])
    for over in (pk.SweepAxis(ladders, np.array([[1.0, 2.0], [1.0, 3.0]])), friction):
        pk.Sweep(exchange, 1, over=over, key=0)
    with pytest.raises(DeclarationError, match="temperature"):
        pk.replica_exchange(
            (pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.0)), dt=0.1), start),
            over=pk.SweepAxis(lambda m: pk.find(m, pk.HarmonicTrap).stiffness, [1.0, 2.0]),
        )


# --- basin hopping ------------------------------------------------------------------------------------


def wall(t, particles):
    center = particles.position - jnp.mean(particles.position, axis=0, keepdims=True)
    beyond = jnp.maximum(jnp.sum(center**2, axis=1) - 4.0, 0)
    return 10 * jnp.sum(beyond**2)


@pytest.mark.slow
def test_basin_hopping_finds_the_smallest_clusters():
    """Seven Lennard-Jones atoms: −16.505384, the pentagonal bipyramid (Hoare & Pal 1971)."""
    x = np.random.default_rng(0).uniform(-1.2, 1.2, (7, 3))
    search = pk.BasinHopping(
        pk.Pairwise(pk.LennardJones()) + pk.ExternalEnergy(wall), temperature=0.8, displacement=0.4
    )
    watch = pk.Every(
        1, low=sampling.LowestEnergy(), x=sampling.LowestPositions(), U=pk.PotentialEnergy()
    )
    sim = pk.Simulation(search, dt=1.0, observers=watch)
    found = pk.sweep((sim, Particles(jnp.asarray(x))), 15, replicas=4, key=0, progress=False)
    low, U = np.asarray(found["low"]), np.asarray(found["U"])
    assert (np.diff(low, axis=1) <= 0).all()
    assert low[:, -1].min() == pytest.approx(-16.505384, abs=1e-6)
    # The energy of what is recorded as the lowest is the lowest energy of the chain.
    np.testing.assert_allclose(low[:, -1], np.minimum(low[:, 0], U[:, 1:].min(axis=1)), rtol=1e-6)
    best = np.asarray(found["x"])[low[:, -1].argmin(), -1]
    r = np.linalg.norm(best[:, None] - best, axis=-1)[np.triu_indices(7, 1)]
    assert np.sum(4 * (r**-12 - r**-6)) == pytest.approx(-16.505384, abs=1e-6)


def test_moves_of_basin_hopping_go_with_its_displacement(monkeypatch):
    """Of a sweep over displacements, too: the largest move is computed where it is used."""
    moves = []

    def descend(force, state, caches, allowed_force, max_move, steps):
        moves.append(float(max_move))
        return state, caches, jnp.zeros(())

    monkeypatch.setattr(_basin_hopping, "descend", descend)
    search = pk.BasinHopping(pk.HarmonicTrap(1.0), temperature=1.0, displacement=0.4)
    given = pk.BasinHopping(pk.HarmonicTrap(1.0), 1.0, 0.4, max_move=0.3)
    for each in (search, replace_fields(search, {"displacement": jnp.asarray(0.8)}), given):
        each.init(None, Clock.at(StepCount.of(0), 0.0, 1.0), Particles(jnp.ones((1, 3))))
    assert moves == pytest.approx([0.1, 0.2, 0.3])


def test_basin_hopping_refuses_rigid_bodies():
    bodies = pk.RigidBodies.from_molecule(np.eye(3), np.eye(3), mass=np.ones(3))
    force = pk.forces.SiteForce(pk.HarmonicTrap(1.0))
    search = pk.BasinHopping(force, temperature=1.0, displacement=0.1)
    for call in (
        lambda: pk.simulate(pk.Simulation(search, dt=1.0), bodies, 1, key=0),
        lambda: pk.minimize(force, bodies),
    ):
        with pytest.raises(ComponentError, match="moves point particles; the state is RigidBodies"):
            call()


# --- kill -9 ------------------------------------------------------------------------------------------

KILLED = """
import sys, jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
import physkit as pk

def well(t, particles):
    x = particles.position[:, 0]
    return jnp.sum(x**4 - 2 * x**2 + 0.3 * x)

def temperature(model):
    return model[0].integrator.temperature

sim = pk.Simulation(pk.BAOAB(pk.ExternalEnergy(well), 0.2, 1.0), dt=0.05)
axis = pk.SweepAxis(temperature, [0.15, 0.3, 0.6])
exchange, replicas = pk.replica_exchange((sim, pk.Particles(jnp.ones((1, 1)))), over=axis, interval=10)
checkpoint = pk.Checkpoints(sys.argv[1], blocks=20_000) if sys.argv[1] else None
run = pk.run(
    exchange, replicas, int(sys.argv[2]), key=1, checkpoint=checkpoint, resume=bool(checkpoint), progress=False
)
aux = run.carry.aux
print(run.carry.state.states.position.ravel().tolist(), aux.replica.tolist(), aux.accepts.tolist())
"""


@pytest.mark.slow
def test_an_exchange_that_is_killed_goes_on_with_the_same_bits(tmp_path):
    script, folder, steps = tmp_path / "exchange.py", tmp_path / "checkpoints", "4000000"
    script.write_text(KILLED)
    command = [sys.executable, str(script)]
    first = subprocess.Popen([*command, str(folder), steps], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(folder.glob("*.h5")) and time.monotonic() < deadline:
        time.sleep(0.05)
    first.kill()
    assert first.wait() == -signal.SIGKILL  # in the middle, not at the end
    assert list(folder.glob("*.h5"))

    def results(checkpoints):
        done = subprocess.run(
            [*command, checkpoints, steps], capture_output=True, text=True, check=True, timeout=300
        )
        return done.stdout.splitlines()[-1]

    assert results(str(folder)) == results("")
