"""Boxes of particles side by side: neighbor lists that are shared, exact sums, devices."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.ensemble import predict_batch_memory

from .sweep_problems import boxes

pytestmark = pytest.mark.slow


def velocity_sweep(velocities, model, **more):
    over = pk.SweepAxis(lambda m: m[1].velocity, velocities, name="v")
    return pk.sweep(model, 120, over=over, progress=False, **more)


def test_exact_pair_sums_do_not_depend_on_the_chunk_size():
    model, velocities = boxes()
    three, six = (velocity_sweep(velocities, model, chunk_size=chunk) for chunk in (3, 6))
    np.testing.assert_array_equal(three["x"][:], six["x"][:])
    assert np.ptp(three["x"][:][:, -1], axis=0).max() > 0.1  # members do differ
    assert three.ok.all()
    over = pk.SweepAxis(lambda m: m[1].velocity, velocities)
    sim, state, _ = pk.Sweep(model, 120, over=over).member(5)
    np.testing.assert_array_equal(pk.run(sim, state, 120, progress=False)["x"], six["x"][5])


def test_growing_lists_changes_no_number(monkeypatch):
    model, velocities = boxes()
    without_growth = velocity_sweep(velocities, model)
    monkeypatch.setattr("physkit.ensemble.compute._chunk_runner.GROWTH_FACTOR", 0.5)
    with_growth = velocity_sweep(velocities, model, chunk_size=3)
    assert any("ListedPairs" in what for what in with_growth.growths)
    np.testing.assert_array_equal(with_growth["x"][:], without_growth["x"][:])


def test_members_that_fail_do_not_change_the_others():
    model, velocities = boxes()
    without_failures = velocity_sweep(velocities, model)
    velocities = velocities.copy()
    velocities[1, 0, 0] = np.nan
    velocities[4] *= 1e3
    found = velocity_sweep(velocities, model)
    assert [f.member for f in found.failed] == [1, 4]
    assert "moved further" in found.failed[1].reason
    others = [0, 2, 3, 5]
    np.testing.assert_array_equal(found["x"][:][others], without_failures["x"][:][others])


def test_large_members_are_initialized_one_by_one(monkeypatch):
    model, velocities = boxes()
    as_one_batch = velocity_sweep(velocities, model)
    monkeypatch.setattr("physkit.particles.neighbors._neighbor_list.SMALL_SYSTEM", 16)
    initialized = []
    one = lambda *given, **more: initialized.append(1) or pk.init(*given, **more)
    monkeypatch.setattr("physkit.ensemble.compute._chunk_runner.init", one)
    found = velocity_sweep(velocities[:5], model)
    assert len(initialized) == 5
    np.testing.assert_array_equal(found["x"][:], as_one_batch["x"][:5])


def test_boxes_of_several_densities_share_a_skin():
    (sim, _), _ = boxes()
    force = pk.Pairwise(pk.LennardJones(), cutoff=1.5, use_neighbor_list=True)
    sim = pk.Simulation(
        pk.VelocityVerlet(force), dt=0.004, observers=pk.Every(20, e=pk.TotalEnergy())
    )
    states = []
    for density in (0.4, 0.7, 1.1):  # the last one has room for a skin of 0.04 only
        sites, box = pk.lattice.face_centered_cubic(2, density=density)
        atoms = pk.Particles(sites, space=box)
        states.append(pk.maxwell_boltzmann(jax.random.key(1), atoms, 0.5))
    sweep = pk.Sweep((sim, states[0]), 40, over=pk.designs.initial_states(states))
    limit = float(states[2].space.max_cutoff(3))
    skin = pk.find(sweep.models[0], pk.Pairwise).skin
    assert limit - 1.5 > skin > 0.99 * (limit - 1.5)
    found = pk.sweep(sweep, progress=False)
    assert found.ok.all()
    one = pk.run(sim, states[2], 40, progress=False)
    np.testing.assert_allclose(found["e"][2], one["e"], rtol=1e-10)


def test_memory_of_a_batch_is_predicted():
    model, velocities = boxes()
    over = pk.SweepAxis(lambda m: m[1].velocity, velocities)
    need = predict_batch_memory(pk.Sweep(model, 120, over=over))
    state = sum(x.nbytes for x in jax.tree.leaves(model[1]))
    assert 3 * state < need.per_member < 100 * state
    assert need.bytes_for(10) == pytest.approx(
        need.fixed + 10 * (need.per_member + 5 * need.frames), rel=0.1
    )
    assert need.max_members(need.bytes_for(7) + 1) == 7


DEVICES = """
import json, sys
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
from tests.ensemble.sweep_problems import boxes
import physkit as pk

model, velocities = boxes()
over = pk.SweepAxis(lambda m: m[1].velocity, velocities[:5])
two = pk.sweep(model, 60, over=over, progress=False)
one = pk.sweep(model, 60, over=over, progress=False, devices=jax.local_devices()[:1])
same = np.array_equal(two["x"][:], one["x"][:])
print(json.dumps({"devices": jax.local_device_count(), "same": bool(same), "ok": bool(two.ok.all())}))
"""


def test_two_devices_give_the_same_bits():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", DEVICES], env={**os.environ, **flags}, text=True, timeout=900,
        capture_output=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"devices": 2, "same": True, "ok": True}


def test_plain_pair_sums_agree_before_chaos():
    model, velocities = boxes(exact=False)
    two, six = (velocity_sweep(velocities, model, chunk_size=chunk) for chunk in (2, 6))
    np.testing.assert_allclose(two["x"][:], six["x"][:], atol=1e-10)
    assert jnp.isfinite(six["x"][:]).all()
