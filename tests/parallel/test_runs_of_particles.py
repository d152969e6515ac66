"""Runs of particles over devices: states and gradients equal those of one, slabs grow, backends agree."""

import json
import os
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    CutoffError,
    DeclarationError,
    shard,
)
from physkit.geometry import Free
from physkit.particles import Particles
from physkit.particles.forces import (
    DirectGravity,
    Morse,
    Pairwise,
)

from .particle_cases import SYSTEMS, differences, distance, fluid, molecular

# Every system, on one device and on several.
pytestmark = [pytest.mark.compiled_quickly, pytest.mark.usefixtures("emulated")]

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = ()


@pytest.mark.slow
def test_states_that_cannot_be_sharded_raise():
    sim, atoms = molecular()
    with pytest.raises(CutoffError, match="at most 6 devices"):
        pk.simulate(sim, atoms, 1, devices=(8,))
    with pytest.raises(DeclarationError, match="slabs, along one axis"):
        pk.simulate(sim, atoms, 1, devices=(2, 2))
    stars = pk.Simulation(pk.VelocityVerlet(DirectGravity()), dt=0.1)
    with pytest.raises(DeclarationError, match="Free cannot be sharded"):
        pk.simulate(stars, Particles(np.eye(3)), 1, devices=(2,))
    _, bodies = SYSTEMS["molecules"]()
    pairs = Pairwise(pk.potentials.WCA(), 1.2, 0.1)
    both = pk.VelocityVerlet(pk.forces.SiteForce(pairs, component=["a", "b"]))
    state = {"a": bodies, "b": bodies.replace(space=Free())}
    with pytest.raises(DeclarationError, match="same axis; b are not"):
        pk.simulate(pk.Simulation(both, dt=0.01), state, 1, devices=(2,))
    mesh, plasma = SYSTEMS["plasma"]()
    backwards = pk.Simulation(mesh.integrator, dt=0.01, adjoint=pk.Reversible())
    with pytest.raises(pk.errors.NotReversible, match="what each device deposits"):
        pk.simulate(backwards, plasma, 1, devices=(2,))


@pytest.mark.slow
@pytest.mark.parametrize("devices", [(2,), (4,)])
@pytest.mark.parametrize("name", SYSTEMS)
def test_runs_equal_those_of_one_device(name, devices):
    found = differences(name, devices)
    assert max(found.values()) < 1e-10, found


@pytest.mark.slow
@pytest.mark.slow
def test_rigid_bodies_in_free_space_are_on_all_devices():
    molecule = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1.2, 0]])
    centers = np.array([[0.0, 0, 0], [2.5, 0.3, 0], [0, 2.6, 1.0], [3, 3, 3]])
    bodies = pk.RigidBodies.from_molecule(molecule, centers, [1.0, 1.0, 2.0])
    force = pk.forces.SiteForce(
        pk.Pairwise(pk.LennardJones(), cutoff=4.0, exclude=bodies.site_pairs)
    )
    watch = pk.Every(2, x=pk.Positions(), K=pk.quantities.KineticEnergy())
    bath = pk.BAOAB(force, temperature=0.5, friction=1.0)
    sim = pk.Simulation(bath, dt=0.002, observers=watch)
    one, many = (pk.simulate(sim, bodies, 10, key=1, devices=devices) for devices in (None, (2, 2)))
    assert float(jnp.max(jnp.abs(one.state.position - bodies.position))) > 1e-3
    for a, b in zip(
        jax.tree.leaves((one.state, one.frames)),
        jax.tree.leaves((many.state, many.frames)),
        strict=True,
    ):
        assert np.array_equal(a, b)


def test_exact_runs_have_the_bits_of_one_device():
    sim, atoms = molecular(exact=True)
    one = jax.jit(lambda atoms: pk.simulate(sim, atoms, 100).state)(atoms)
    two = pk.simulate(sim, atoms, 100, devices=(2,)).state
    assert np.array_equal(one.position, two.position)
    assert np.array_equal(one.velocity, two.velocity)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["microcanonical", "bonded", "cluster", "plasma"])
def test_gradients_equal_those_of_one_device(name):
    sim, state = SYSTEMS[name]()

    def loss(sim, velocity, devices):
        done = pk.simulate(sim, state.replace(velocity=velocity), 40, devices=devices)
        recorded = done.frames["energy"][-1] + jnp.sum(done.frames["x"][-1] ** 2)
        return recorded + jnp.sum(done.state.velocity**2)

    def gradient(devices):
        return eqx.filter_grad(lambda both: loss(*both, devices))((sim, state.velocity))

    (by_sim, by_velocity), (by_sim_2, by_velocity_2) = gradient(None), gradient((2,))
    assert distance(by_velocity_2, by_velocity) < 1e-10
    pairs = zip(*(jax.tree.leaves(x.integrator) for x in (by_sim, by_sim_2)), strict=True)
    assert all(distance(b, a) < 1e-10 for a, b in pairs)


@pytest.mark.slow
def test_full_slabs_grow_and_replay(tmp_path):
    """All particles move into one slab; a resumed run has the capacity that slabs have grown to."""
    atoms = fluid()
    force = Pairwise(Morse(1e-3, 2.0, 1.0), 2.0, 0.3)  # finite where particles meet
    sim = pk.Simulation(pk.VelocityVerlet(force), dt=0.01, observers=pk.Every(10, x=pk.Positions()))
    toward = 4.8 - ((atoms.position[:, :1] + 4.8) % 19.2 - 4.8)
    inwards = toward / 1.6 * jnp.asarray([[1.0, 0.0]])
    atoms = atoms.replace(velocity=0.1 * atoms.velocity + inwards)
    one = pk.run(sim, atoms, 100, progress=False)
    many = pk.run(sim, atoms, 90, devices=(2,), progress=False, to=tmp_path)
    assert any("particles in a slab" in growth.what for growth in many.growths), many.growths
    again = pk.run(sim, atoms, 100, devices=(2,), progress=False, to=tmp_path, resume=True)
    assert again.resumed_from == 90
    assert again.carry.carry.state.num_slots > shard(atoms, (2,)).num_slots
    assert distance(again.state.position, one.state.position) < 1e-10
    assert distance(again["x"], one.frames["x"]) < 1e-7  # single precision in the file


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pmap", "shard_map"])
def test_backends_of_real_devices(backend):
    """Devices must exist before JAX starts: one new process for all systems."""
    script = Path(__file__).parent / "particle_cases.py"
    settings = {
        **os.environ,
        "PHYSKIT_SPMD": backend,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "PYTHONPATH": str(script.parent.parent.parent),
    }
    done = subprocess.run(
        [sys.executable, str(script), "2", "microcanonical", "plasma"],
        env=settings,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [list(x) for x in found] == [["microcanonical"], ["plasma"]]
    for one in found:
        for values in one.values():
            assert max(values.values()) < 1e-10, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "steps", "temperature"),
    [("pmap", 100, 5.0), ("shard_map", 100, 5.0), ("pmap", 2000, 1.0)],
)
def test_reversible_over_devices(backend, steps, temperature):
    """Particles migrate in the forward pass and, at other steps, in the backward pass."""
    settings = {
        **os.environ,
        "PHYSKIT_SPMD": backend,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.parallel.reversible", str(steps), str(temperature)],
        cwd=Path(__file__).parents[2],
        env=settings,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["same bits"], found
    assert found["same bits of a run"], found
    assert found["faults"] == 0
    assert found["migrated"] > 0
    assert max(found["by state"] + found["by parameters"]) < 1e-10, found
    assert max(found["by dt and t0"]) < 1e-10, found
