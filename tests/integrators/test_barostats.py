"""Barostats: volumes of an ideal gas, effective energies, lists in a box that changes, and what is refused."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    Clock,
    CutoffError,
    DeclarationError,
    NoVirialError,
    ParameterError,
    StepCount,
)
from physkit.integrators import BoxMotion, MartynaTobiasKlein, ThermostatChain
from physkit.particles import kinetic_energy

from .problems import NoForce, evolve

KEY = jax.random.key(5)


def thermostat(force, temperature=1.0):
    return pk.VelocityRescaling(pk.VelocityVerlet(force), temperature, relaxation_time=0.3)


def rescaling(force, shape="isotropic", pressure=1.0, interval=1):
    return pk.StochasticCellRescaling(
        thermostat(force), pressure, 1.0, 1.0, shape=shape, interval=interval
    )


def monte_carlo(force, shape="isotropic"):
    return pk.MonteCarloBarostat(thermostat(force), 1.0, 0.8, shape=shape, interval=1)


def equations_of_motion(force, shape="isotropic"):
    return MartynaTobiasKlein(force, 1.0, 1.0, 0.7, 2.0, shape=shape)


def state_of(bath, particles):
    """`particles`, with the variables that a deterministic bath needs."""
    if not isinstance(bath, MartynaTobiasKlein):
        return particles
    d, dtype = particles.dimension, particles.position.dtype
    return {
        "atoms": particles,
        "thermostat": ThermostatChain.at_rest(dtype=dtype),
        "barostat": BoxMotion.at_rest(d, dtype=dtype),
    }


def particles_of(state):
    return state["atoms"] if isinstance(state, dict) else state


def force_for(make, force):
    return force("atoms") if make is equations_of_motion else force(None)


# --- volumes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "shape", "dt", "gamma"),
    [
        # Momentum is conserved: V^(N−1) e^(−P V/k_B T), but for trial moves of all N positions.
        (rescaling, "isotropic", 0.05, 8),
        pytest.param(rescaling, "triclinic", 0.05, 8, marks=pytest.mark.slow),
        (monte_carlo, "isotropic", 0.1, 9),
        pytest.param(equations_of_motion, "isotropic", 0.025, 8, marks=pytest.mark.slow),
    ],
    ids=["StochasticCellRescaling", "triclinic", "MonteCarloBarostat", "MartynaTobiasKlein"],
)
def test_volumes_of_an_ideal_gas(make, shape, dt, gamma):
    """Mean and variance of V are those of a gamma distribution, exactly: ⟨V⟩ = N k_B T/P = var V P/k_B T."""
    bath = make(force_for(make, lambda name: NoForce(component=name)), shape)
    start = np.random.default_rng(0).uniform(0, 2, (8, 3))
    space = pk.Triclinic(2 * np.eye(3)) if shape == "triclinic" else pk.Box.cube(2.0)

    def replica(key):
        v = jax.random.normal(key, (8, 3))
        gas = pk.Particles(start, v - jnp.mean(v, axis=0, keepdims=True), space=space)
        carry = evolve(bath, state_of(bath, gas), jnp.asarray(dt), round(3 / dt), key=key)

        def record(carry, n):
            key_n = jax.random.fold_in(key, n)
            carry = evolve(bath, carry[0], jnp.asarray(dt), round(1 / dt), key=key_n, aux=carry[1])
            return carry, particles_of(carry[0]).space.volume

        return jax.lax.scan(record, carry, jnp.arange(4, dtype=jnp.int32))[1]

    volume = np.asarray(jax.jit(jax.vmap(replica))(jax.random.split(KEY, 2000)))
    # Standard errors: 0.05 of the mean, 0.25 of the variance.
    assert np.mean(volume) == pytest.approx(gamma, abs=0.15)
    assert np.var(volume) == pytest.approx(gamma, abs=0.9)


@pytest.mark.slow
def test_volumes_of_rigid_molecules():
    """Centers of molecules follow the box: 8 dumbbells are an ideal gas of 8."""
    draw = np.random.default_rng(1)
    first = draw.uniform(0, 2, (8, 3))
    x = np.stack([first, first + np.array([0.4, 0, 0])], axis=1).reshape(16, 3)
    bonds = pk.particles.DistanceConstraints(np.arange(16).reshape(8, 2), 0.4)

    def replica(bath, key):
        v = jax.random.normal(key, (16, 3))
        v = v - jnp.mean(v, axis=0, keepdims=True)
        gas = pk.Particles(x, v, space=pk.Box.cube(2.0), constraints=bonds).constrain_velocities()
        carry = evolve(bath, gas, jnp.asarray(0.02), 150, key=key)

        def record(carry, n):
            key_n = jax.random.fold_in(key, n)
            carry = evolve(bath, carry[0], jnp.asarray(0.02), 50, key=key_n, aux=carry[1])
            return carry, carry[0].space.volume

        return jax.lax.scan(record, carry, jnp.arange(6, dtype=jnp.int32))[1]

    keys = jax.random.split(KEY, 1000)
    for make, gamma in ((rescaling, 8), (monte_carlo, 9)):
        bath = make(NoForce())
        volume = jax.jit(jax.vmap(partial(replica, bath)))(keys)
        assert float(jnp.mean(volume)) == pytest.approx(gamma, abs=0.25)
        assert float(jnp.var(volume)) == pytest.approx(gamma, abs=1.5)


# --- a liquid --------------------------------------------------------------------------------------


def liquid(dtype=None, spacing=1.8, space=None, cells=2):
    x, box = pk.lattice.face_centered_cubic((cells,) * 3, spacing=spacing)
    space = box if space is None else space(box)
    x = x if dtype is None else jnp.asarray(x, dtype)
    return pk.maxwell_boltzmann(1, pk.Particles(x, space=space), 1.0)


def lennard_jones(name=None, **options):
    return pk.Pairwise(pk.LennardJones(), cutoff=1.5, component=name, **options)


@pytest.mark.parametrize(
    "make", [rescaling, equations_of_motion, pytest.param(monte_carlo, marks=pytest.mark.slow)]
)
def test_the_effective_energy_errs_with_the_step(make):
    """Kinetic and potential energy and that of the baths: constant but for the error of dt."""
    if make is rescaling:
        bath = pk.StochasticCellRescaling(
            thermostat(lennard_jones()), 2.0, 0.3, 0.1, interval=2, shape="anisotropic"
        )
    elif make is monte_carlo:
        bath = pk.MonteCarloBarostat(thermostat(lennard_jones()), 2.0, 0.05, interval=2)
    else:
        bath = MartynaTobiasKlein(lennard_jones("atoms"), 1.0, 2.0, 0.5, 2.0)
    state = state_of(bath, liquid())

    @jax.jit
    def energies(dt, steps):
        """What is constant, the energy and the volume, at fifty times."""
        clock = Clock.at(StepCount.of(0), jnp.asarray(0.0), dt)

        def record(carry, n):
            key = jax.random.fold_in(KEY, n)
            after, aux = evolve(bath, carry[0], dt, steps, key=key, aux=carry[1])
            p = particles_of(after)
            terms = bath.terms(aux)
            energy = kinetic_energy(p) + sum(f.energy(clock, after, c) for f, c in terms)
            total = energy + bath.bath_energy(clock, after, aux)
            return (after, aux), (total, energy, p.space.volume)

        start = evolve(bath, state, dt, 0, key=KEY)
        return jax.lax.scan(record, start, jnp.arange(50, dtype=jnp.int32))[1]

    found = [energies(1.2 / 50 / k, jnp.int32(k)) for k in (2, 4, 8)]
    errors = [float(jnp.std(total)) for total, _, _ in found]
    order = np.polyfit(np.log([4, 2, 1]), np.log(errors), 1)[0]
    # Rescaled velocities are of first order in the step, with a small factor.
    assert (1.7 if make is equations_of_motion else 0.7) < order < 2.6, errors
    _, energy, volume = found[-1]
    assert errors[-1] < 0.03 * float(jnp.std(energy))
    assert float(jnp.std(volume)) > 0.5


@pytest.mark.slow
def test_lists_follow_the_box():
    """A box that is pressed and pulled, with a list and without: the same motion, and few rebuilds."""
    ramp = lambda t: 15 * jnp.sin(6 * t)
    gas = liquid(spacing=2.2)
    finals = []
    for use in (True, False):
        force = lennard_jones(use_neighbor_list=use)
        bath = pk.StochasticCellRescaling(
            thermostat(force), ramp, 0.2, 0.1, interval=2, shape="semi-isotropic"
        )
        observers = pk.Every(10, volume=lambda now: now.state.space.volume)
        sim = pk.Simulation(bath, dt=0.004, observers=observers)
        finals.append(pk.run(sim, gas, 160, key=3, progress=False))
    volume = finals[0].frames["volume"]
    assert np.max(volume) > 1.15 * np.min(volume)
    np.testing.assert_allclose(finals[0].frames["volume"], finals[1].frames["volume"], rtol=1e-7)
    np.testing.assert_allclose(finals[0].state.position, finals[1].state.position, rtol=1e-5)
    rebuilds = int(finals[0].carry.aux[0][0][1][0].neighbors.num_rebuilds)
    assert 3 < rebuilds < 80


def test_a_box_too_small_for_the_cutoff_is_an_error():
    bath = pk.StochasticCellRescaling(thermostat(lennard_jones()), 500.0, 0.1, 0.05, interval=1)
    with pytest.raises(CutoffError, match="minimum-image limit"):
        pk.run(pk.Simulation(bath, dt=0.002), liquid(), 400, key=3, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("make", [rescaling, pytest.param(monte_carlo, marks=pytest.mark.slow)])
def test_members_of_a_batch_have_boxes_of_their_own(make):
    bath = make(lennard_jones())
    sim = pk.Simulation(bath, dt=0.004)
    members = [liquid(spacing=1.75), liquid()]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *members)
    keys = jax.random.split(KEY, 2)
    run = jax.jit(lambda state, key: pk.simulate(sim, state, 6, key=key).state)
    together = jax.jit(jax.vmap(run))(batch, keys)
    for k, member in enumerate(members):
        alone = run(member, keys[k])
        np.testing.assert_allclose(together.space.lengths[k], alone.space.lengths, rtol=1e-9)
        np.testing.assert_allclose(together.position[k], alone.position, rtol=1e-7, atol=1e-9)
    assert not np.allclose(together.space.lengths[0], members[0].space.lengths)


@pytest.mark.slow
def test_a_moved_box_is_resumed_bit_by_bit(tmp_path):
    sim = pk.Simulation(rescaling(lennard_jones(), interval=3), dt=0.004)
    gas = liquid(np.float32)
    whole = pk.run(sim, gas, 20, key=1, progress=False)
    for steps in (8, 20):
        part = pk.run(
            sim, gas, steps, key=1, progress=False, checkpoint=tmp_path / "kept", resume=True
        )
    assert part.resumed_from == 8
    np.testing.assert_array_equal(part.state.space.lengths, whole.state.space.lengths)
    np.testing.assert_array_equal(part.state.position, whole.state.position)
    assert not np.array_equal(whole.state.space.lengths, gas.space.lengths)


# --- files -----------------------------------------------------------------------------------------


def test_each_frame_has_its_box(tmp_path):
    bath = pk.StochasticCellRescaling(thermostat(lennard_jones()), 20.0, 0.2, 0.05, interval=1)
    sim = pk.Simulation(
        bath, dt=0.004, observers=pk.Every(5, x=pk.Positions(), cell=pk.BoxVectors())
    )
    final = pk.run(sim, liquid(), 10, key=1, to=tmp_path / "run", progress=False).state
    recording = pk.open(tmp_path / "run")
    cells = np.asarray(recording["cell"])
    assert cells.shape == (3, 3, 3)
    np.testing.assert_allclose(np.diagonal(cells[-1]), final.space.lengths, rtol=1e-12)
    assert cells[-1, 0, 0] < 0.99 * cells[0, 0, 0]
    for frame in (0, 2):
        loaded = pk.storage.load_component(recording["x"], frame, quiet=True)
        assert isinstance(loaded.space, pk.Box)
        np.testing.assert_allclose(loaded.space.lengths, np.diagonal(cells[frame]), rtol=1e-6)
    pk.export(tmp_path / "run", tmp_path / "all.xyz")
    lattices = [
        line for line in (tmp_path / "all.xyz").read_text().splitlines() if "Lattice" in line
    ]
    found = [float(line.split('"')[1].split()[0]) for line in lattices]
    np.testing.assert_allclose(found, cells[:, 0, 0], rtol=1e-6)


def test_positions_without_their_box_are_an_error():
    sim = pk.Simulation(
        rescaling(lennard_jones()), dt=0.004, observers=pk.Every(5, x=pk.Positions())
    )
    with pytest.raises(pk.errors.ObserverError, match=r"cell=BoxVectors\(\)"):
        pk.simulate(sim, liquid(), 5, key=1)


# --- mistakes --------------------------------------------------------------------------------------


def start(bath, state):
    pk.init(pk.Simulation(bath, dt=0.004), state, key=1)


def test_what_cannot_be_held_is_refused():
    lj = lennard_jones()
    gas = liquid()
    refused = [
        (rescaling(lj), pk.Particles(gas.position), "periodic along every axis"),
        (rescaling(lj), gas.replace(space=pk.Box([3.4] * 3, (True, True, False))), "walls"),
        (rescaling(lj, "triclinic"), gas, "Triclinic"),
        (rescaling(lj + pk.HarmonicTrap(1.0)), gas, "HarmonicTrap acts from outside"),
        (
            rescaling(lj + pk.forces.Modulated(pk.UniformAcceleration([1.0, 0, 0]), 1.0)),
            gas,
            "acts from outside",
        ),
        (rescaling(lj), gas.replace(frozen=jnp.arange(32) == 0), "frozen particles"),
        (
            pk.StochasticCellRescaling(pk.VelocityVerlet(lj), 1.0, 1.0, 1.0),
            gas,
            "temperature of the thermostat inside",
        ),
    ]
    for bath, state, says in refused:
        with pytest.raises(DeclarationError, match=says):
            start(bath, state)
    apart = gas.space.displacement(gas.position[0], gas.position[1])
    bond = pk.DistanceConstraints([[0, 1]], float(jnp.linalg.norm(apart)))
    held = pk.Particles(gas.position, space=gas.space, constraints=bond)
    bath = equations_of_motion(lennard_jones("atoms"))
    with pytest.raises(
        DeclarationError, match="takes none with constraints: StochasticCellRescaling"
    ):
        start(bath, state_of(bath, held))
    with pytest.raises(NoVirialError):
        start(rescaling(lj + pk.ExternalForce(lambda t, p: 0 * p.position)), gas)
    with pytest.raises(pk.errors.ComponentError, match="BoxMotion"):
        start(
            equations_of_motion(lennard_jones("atoms")),
            {"atoms": gas, "thermostat": ThermostatChain.at_rest()},
        )


def test_wrong_parameters_are_errors():
    inner = thermostat(lennard_jones())
    with pytest.raises(ParameterError, match="needs compressibility"):
        pk.StochasticCellRescaling(inner, 1.0, 1.0)
    with pytest.raises(ParameterError, match="relaxation_time must be positive; got 0"):
        pk.StochasticCellRescaling(inner, 1.0, 0.0, 1.0)
    with pytest.raises(ParameterError, match="shape is one of"):
        pk.StochasticCellRescaling(inner, 1.0, 1.0, 1.0, shape="cubic")
    with pytest.raises(ParameterError, match="max_change must be positive"):
        pk.MonteCarloBarostat(inner, 1.0, -0.1)
    with pytest.raises(ParameterError, match="box_period must be positive"):
        MartynaTobiasKlein(lennard_jones(), 1.0, 1.0, 1.0, 0.0)
    with pytest.raises(pk.errors.NotReversible, match="StochasticCellRescaling"):
        rescaling(lennard_jones()).require_reversible(liquid())


@pytest.mark.slow
def test_the_box_over_devices_is_that_of_one(monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    with jax.enable_x64(True):
        sites, box = pk.lattice.face_centered_cubic(7, density=0.8)
        atoms = pk.maxwell_boltzmann(0, pk.Particles(sites, space=box), 1.0)
        force = pk.Pairwise(pk.LennardJones(), cutoff=2.5)
        bath = pk.VelocityRescaling(pk.VelocityVerlet(force), temperature=1.0, relaxation_time=0.1)
        barostat = pk.StochasticCellRescaling(bath, 1.0, 0.5, 0.1)
        record = pk.Every(10, volume=lambda now: now.state.space.volume, e=pk.PotentialEnergy())
        sim = pk.Simulation(barostat, dt=0.004, observers=record)
        one = pk.run(sim, atoms, 50, key=1, progress=False)
        two = pk.run(sim, atoms, 50, key=1, progress=False, devices=2)
        assert np.ptp(one["volume"]) > 10
        np.testing.assert_allclose(two["volume"], one["volume"], rtol=1e-12)
        np.testing.assert_allclose(two["e"], one["e"], rtol=1e-10)
