"""Whatever goes wrong in a member, it is flagged, and no statistic counts it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk

from .sweep_problems import damping, pendulum


@pytest.fixture(scope="module")
def faulty():
    """Atoms of which the first member is well, and each other one has a fault of its own."""
    sites, box = pk.lattice.face_centered_cubic(2, density=0.6)
    atoms = pk.maxwell_boltzmann(0, pk.Particles(sites, space=box), 1.0)
    force = pk.Pairwise(pk.LennardJones(), cutoff=1.5, use_neighbor_list=False)
    record = pk.Every(2, energy=pk.PotentialEnergy())
    broken = pk.Guard(2, lambda now: jnp.logical_not(now.state.velocity[0, 0] > 100.0))
    sim = pk.Simulation(pk.VelocityVerlet(force), 0.002, observers=record, guards=(broken,))
    position, velocity = np.asarray(atoms.position), np.asarray(atoms.velocity)
    mass, length = np.asarray(atoms.mass), np.asarray(box.lengths)
    members = {
        "well": {},
        "further between two force": {"dt": 1.0},
        "mass is zero or negative": {"mass": -mass},
        "minimum-image limit": {"length": length / 2},
        "box length or volume": {"length": length * np.array([1, 1, np.nan])},
        "not finite": {"velocity": np.full_like(velocity, np.nan)},
        "state is not finite": {
            "position": np.where(np.arange(len(position))[:, None] == 1, position[0], position)
        },
        "guard": {"velocity": velocity + np.eye(1, 3) * 101.0, "dt": 1e-6},
    }
    usual = {
        "dt": 0.002,
        "mass": mass,
        "length": length,
        "velocity": velocity,
        "position": position,
    }
    leaves = {
        "dt": lambda m: m[0].dt,
        "mass": lambda m: m[1].mass,
        "length": lambda m: m[1].space.lengths,
        "velocity": lambda m: m[1].velocity,
        "position": lambda m: m[1].position,
    }
    axes = [
        pk.SweepAxis(
            leaf, np.stack([one.get(name, usual[name]) for one in members.values()]), name=name
        )
        for name, leaf in leaves.items()
    ]
    found = pk.sweep(
        (sim, atoms), 4, over=pk.designs.zip_axes(*axes), progress=False,
        reduce=[pk.reductions.Mean("energy"), pk.reductions.Quantiles("energy")],
    )  # fmt: skip
    return list(members), found


def test_every_fault_flags_its_member(faulty):
    names, found = faulty
    assert list(found.ok) == [name == "well" for name in names]
    for failed in found.failed:
        reason = names[failed.member]
        # Of particles that overlap, a GPU says so; a CPU what comes of it.
        overlap = reason == "state is not finite" and "particles overlap" in failed.reason
        is_box = "box" in reason and "box" in failed.reason
        assert reason in failed.reason or overlap or is_box, failed
        assert np.isnan(found["energy"][failed.member, 1:]).all()


def test_statistics_leave_failed_members_out_and_say_so(faulty):
    _, found = faulty
    np.testing.assert_array_equal(found.reduced["mean energy"], found["energy"][0])
    np.testing.assert_array_equal(found.reduced["quantiles energy"][1], found["energy"][0])
    assert "mean energy: float64[3], of the 1 members that did not fail" in repr(found).replace(
        "float32", "float64"
    )
    with pytest.warns(pk.errors.PhyskitWarning, match="7 of 8 members failed and are left out"):
        statistics = pk.ensemble_statistics(found["energy"], key=0, resamples=2)
    np.testing.assert_array_equal(statistics.mean.value, found["energy"][0])
    assert statistics.num_members == 1


def test_whole_numbers_of_failed_members_do_not_count():
    sim, state = pendulum()
    count = pk.Every(5, n=lambda now: jnp.sum(now.state > -9))
    over = pk.SweepAxis(damping, [0.1, np.nan, 0.2], name="damping")
    found = pk.sweep(
        (pk.Simulation(sim.integrator, sim.dt, count), state), 5, over=over, progress=False
    )
    with pytest.warns(pk.errors.PhyskitWarning, match="1 of 3 members"):
        estimate = pk.statistics.bootstrap(
            lambda x: jnp.mean(x, 0), found["n"], key=np.int64(1), resamples=2
        )
    np.testing.assert_array_equal(estimate.value, [2.0, 2.0])


@pytest.mark.parametrize("chunk_size", [None, 1])
def test_a_fault_makes_the_mean_and_its_derivative_nan(chunk_size):
    sim, _ = pendulum()
    small = pk.Guard(5, lambda now: jnp.abs(now.state[0]) < 0.8)
    sim = pk.Simulation(sim.integrator, sim.dt, guards=(small,))

    def mean(factor, starts):
        def last(start):
            out = pk.simulate(sim, factor * jnp.stack([start, 0 * start]), 5)
            return jnp.where(out.carry.state[0] > 0, 1.0, 2.0) * out.carry.state[1]

        return pk.ensemble_mean(last, starts, chunk_size=chunk_size)

    both = jax.jit(jax.value_and_grad(mean))
    assert np.all(np.isfinite(both(1.0, jnp.array([0.1, 0.3]))))
    assert np.all(np.isnan(both(1.0, jnp.array([0.1, 1.0]))))


def test_members_of_a_mean_may_be_lists():
    square = lambda x: x**2
    assert pk.ensemble_mean(square, [1.0, 3.0], chunk_size=np.int64(1)) == 5.0
    assert pk.ensemble_mean(lambda m: m[0] * m[1], ([1, 2], np.array([3.0, 4.0]))) == 5.5


def test_quantiles_of_nan_are_nan():
    values = np.arange(40.0).reshape(20, 2)
    values[3, 1] = np.nan
    for points in (4, 256):
        quantiles = pk.reductions.Quantiles("x", points=points)
        result = quantiles.result(
            quantiles.combine(quantiles.summarize(values), quantiles.summarize(values[5:]))
        )
        assert np.all(np.isfinite(result[:, 0]))
        assert np.all(np.isnan(result[:, 1]))
    assert np.isnan(quantiles.result(quantiles.summarize(values[:, 1]))).all()
