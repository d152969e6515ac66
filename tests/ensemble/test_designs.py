"""Which numbers are swept, designs, and what bad input gets."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.ensemble import execute, grid, random
from physkit.ensemble.compute._batch_memory import available_bytes, choose_chunk_size
from physkit.ensemble.compute._output_shapes import output_shapes
from physkit.ensemble.design._retry import scale_intervals
from physkit.observe import PerReplica

from .sweep_problems import angle, boxes, damping, gravity, pendulum

MODEL = pendulum()


def sweep(over=None, steps=10, model=MODEL, **more):
    return pk.Sweep(model, steps, over=over, **more)


class TestPoints:
    def test_products_zips_and_replicas_number_the_members(self):
        a, b = pk.SweepAxis(damping, [0.1, 0.2], "c"), pk.SweepAxis(gravity, [1.0, 2.0, 3.0], "g")
        at = sweep(pk.designs.cartesian_product(a, b)).coordinates
        np.testing.assert_array_equal(at["c"], [0.1, 0.1, 0.1, 0.2, 0.2, 0.2])
        np.testing.assert_array_equal(at["g"], [1, 2, 3, 1, 2, 3])
        assert sweep((a, b)).digest == sweep(pk.designs.cartesian_product(a, b)).digest
        at = sweep(pk.designs.zip_axes(b, pk.SweepAxis(angle, [4.0, 5.0, 6.0], "a"))).coordinates
        np.testing.assert_array_equal(at["a"] - at["g"], [3, 3, 3])
        two = sweep(a, replicas=3, key=jax.random.key(0))
        np.testing.assert_array_equal(two.coordinates["c"], [0.1] * 3 + [0.2] * 3)
        np.testing.assert_array_equal(two.coordinates["replica"], [0, 1, 2, 0, 1, 2])
        with pytest.raises(pk.errors.ShapeError, match=r"equally many values; got \[2, 3\]"):
            pk.designs.zip_axes(a, b)

    def test_one_axis_can_sweep_several_leaves(self):
        over = pk.SweepAxis({"c": damping, "g": gravity}, {"c": [0.1, 0.2], "g": [8.0, 9.0]})
        sim, state, _ = sweep(over).member(1)
        assert float(damping((sim, state))) == 0.2
        assert float(gravity((sim, state))) == 9.0
        assert float(angle((sim, state))) == 0.5
        both = pk.SweepAxis(lambda m: (damping(m), gravity(m)), ([0.1, 0.2], np.array([8.0, 9.0])))
        assert float(gravity(sweep(both).member(0)[:2])) == 8.0
        with pytest.raises(pk.errors.ShapeError, match="values for"):
            sweep(pk.SweepAxis({"c": damping}, {"d": [0.1]}))

    def test_length_is_the_number_of_points(self):
        assert len(pk.SweepAxis(damping, [0.1, 0.2])) == 2
        assert len(pk.SweepAxis(lambda m: m[1], [[0.1, 0.2]] * 3)) == 3

    def test_integers_can_be_swept(self):
        atoms = pk.Particles(jnp.zeros((2, 2)), space=pk.Free())
        sim = pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.0)), dt=0.1)
        over = pk.SweepAxis(lambda m: m[1].id, np.array([[0, 1], [5, 7]]), "ids")
        assert sweep(over, model=(sim, atoms)).member(1)[1].id.tolist() == [5, 7]
        with pytest.raises(pk.errors.ParameterError, match="whole number"):
            sweep(pk.SweepAxis(lambda m: m[1].id, [[0.5, 1.0]]), model=(sim, atoms))
        with pytest.raises(pk.errors.ParameterError, match=r"whole number \(.*int32"):
            sweep(pk.SweepAxis(lambda m: m[1].id, [[0, 2**40]]), model=(sim, atoms))

    def test_the_digest_does_not_depend_on_names_of_terms(self):
        force = pk.HarmonicTrap(1.0)
        atoms = pk.Particles(jnp.zeros((2, 2)))
        models = [
            (pk.Simulation(pk.VelocityVerlet(f), dt=0.1), atoms)
            for f in (force, force.named("trap"))
        ]
        plain = pk.SweepAxis(lambda m: pk.find(m, pk.HarmonicTrap).stiffness, [1.0, 2.0])
        named = pk.SweepAxis(lambda m: pk.find(m, "trap").stiffness, [1.0, 2.0])
        one, other = (sweep(o, model=m) for o, m in zip((plain, named), models, strict=True))
        assert one.digest == other.digest
        assert float(pk.find(other.member(1)[0], "trap").stiffness) == 2.0

    def test_the_digest_includes_closures(self):
        def model(threshold):
            above = lambda now: now.state[0] > threshold
            sim, state = MODEL
            return pk.Simulation(sim.integrator, sim.dt, pk.Every(5, above=above)), state

        over = pk.SweepAxis(damping, [0.1])
        one, same, other = (sweep(over, model=model(x)).digest for x in (0.1, 0.1, 0.2))
        assert one == same
        assert one != other

        def scaled(factor):
            first = lambda x: {"m": factor * x.max(0)}
            largest = lambda a, b: {"m": np.maximum(a["m"], b["m"])}
            return pk.reductions.Reduction(
                "angle", "largest", first, largest, lambda whole: whole["m"]
            )

        one, same, other = (sweep(over, reduce=scaled(x)).digest for x in (1.0, 1.0, 2.0))
        assert one == same
        assert one != other

    def test_different_sweeps_have_different_digests(self):
        over = pk.SweepAxis(damping, [0.1, 0.2])
        digests = {
            sweep(over).digest,
            sweep(over, steps=20).digest,
            sweep(over, key=jax.random.key(0)).digest,
            sweep(over, key=jax.random.key(1)).digest,
            sweep(over, reduce=pk.reductions.Mean("angle")).digest,
            sweep(over, retry=pk.sweeping.Retry(new_key=True)).digest,
            sweep(pk.SweepAxis(damping, [0.1, 0.3])).digest,
            sweep(pk.SweepAxis(gravity, [0.1, 0.2])).digest,
            sweep(over, model=pendulum(dt=0.04)).digest,
        }
        assert len(digests) == 9
        assert sweep(over).digest == sweep(pk.SweepAxis(damping, np.array([0.1, 0.2]))).digest


class TestDesigns:
    RANGES = (
        pk.ParameterRange(damping, 0.0, 1.0),
        pk.ParameterRange(gravity, 1.0, 100.0, logarithmic=True),
    )

    @pytest.mark.parametrize("design", [random, pk.designs.latin_hypercube, pk.designs.sobol])
    def test_stay_within_limits_and_are_reproducible(self, design):
        names = list(sweep(design(16, *self.RANGES)).coordinates)[:2]
        at, again, other = (sweep(design(16, *self.RANGES, seed=s)).coordinates for s in (0, 0, 1))
        for name, (low, high) in zip(names, [(0, 1), (1, 100)], strict=True):
            assert low <= at[name].min() <= at[name].max() <= high
            np.testing.assert_array_equal(at[name], again[name])
            assert not np.array_equal(at[name], other[name])

    def test_latin_hypercubes_fill_every_slice_once(self):
        at = sweep(pk.designs.latin_hypercube(10, *self.RANGES)).coordinates
        c, g = list(at.values())[:2]
        assert sorted(np.floor(10 * c)) == list(range(10))
        assert sorted(np.floor(5 * np.log10(g))) == sorted([*range(10)])

    def test_sobol_points_are_balanced(self):
        c = next(iter(sweep(pk.designs.sobol(64, *self.RANGES)).coordinates.values()))
        assert sorted(np.floor(64 * c)) == list(range(64))
        with pytest.raises(
            pk.errors.ParameterError, match="power of two of members: 8 or 16, not 10"
        ):
            pk.designs.sobol(10, *self.RANGES)

    def test_grids_include_their_limits(self):
        at = sweep(grid((3, 2), *self.RANGES)).coordinates
        c, g = list(at.values())[:2]
        np.testing.assert_allclose(c, [0, 0, 0.5, 0.5, 1, 1])
        np.testing.assert_allclose(g, [1, 100] * 3)

    def test_posterior_samples_have_the_covariance_of_the_fit(self):
        fitted = object.__new__(pk.Fit)
        covariance = np.array([[0.04, 0.03], [0.03, 0.09]])
        object.__setattr__(fitted, "covariance", covariance)
        object.__setattr__(fitted, "values", {"c": np.array(0.5), "g": np.array(9.0)})
        where = {"c": damping, "g": gravity}
        at = sweep(pk.designs.posterior_samples(fitted, where, 4000)).coordinates
        found = np.cov(at["c"], at["g"])
        np.testing.assert_allclose(found, covariance, atol=0.01)
        assert abs(at["g"].mean() - 9.0) < 0.02

    def test_bad_ranges_are_refused(self):
        for low, high, log in ((1, 1, False), (2, 1, False), (0, 1, True), (0, np.inf, False)):
            with pytest.raises(pk.errors.ParameterError):
                pk.ParameterRange(damping, low, high, log)
        with pytest.raises(pk.errors.ParameterError, match="whole number"):
            random(0, *self.RANGES)


class TestBadInput:
    def test_values_of_another_shape_are_refused(self):
        with pytest.raises(pk.errors.ShapeError, match=r"\[points, –\].*got \[2, 3\]"):
            sweep(pk.SweepAxis(damping, np.zeros((2, 3)), "damping"))
        with pytest.raises(pk.errors.ShapeError, match=r"\[points, 2\].*as many as for one point"):
            sweep(pk.SweepAxis(lambda m: m[1], [1.0, 2.0], "start"))
        with pytest.raises(pk.errors.ShapeError, match="no axis of points"):
            sweep(pk.SweepAxis(damping, 0.1, "damping"))
        with pytest.raises(pk.errors.ParameterError, match="must be numbers"):
            sweep(pk.SweepAxis(damping, ["a", "b"]))

    def test_a_static_leaf_is_refused(self):
        model, _ = boxes()
        with pytest.raises(
            pk.errors.SelectionError, match=r"cutoff = 1\.5 is a static field.*groups"
        ):
            sweep(pk.SweepAxis(lambda m: pk.find(m, pk.Pairwise).cutoff, [1.5, 2.0]), 20, model)

    def test_a_leaf_that_does_not_exist_is_refused(self):
        with pytest.raises(pk.errors.SelectionError, match=r"damp.*Available: integrator"):
            sweep(pk.SweepAxis(lambda m: m[0].damp, [1.0]))
        with pytest.raises(pk.errors.SelectionError, match='"state" or "key"; got \'seed\''):
            sweep(pk.SweepAxis("seed", [1.0]))

    def test_a_sweep_of_no_members_is_refused(self):
        with pytest.raises(pk.errors.ParameterError, match="no members: 0 points"):
            sweep(pk.SweepAxis(damping, np.zeros(0)))
        with pytest.raises(pk.errors.ParameterError, match="no members"):
            sweep(pk.SweepAxis(damping, [0.1]), replicas=0, key=jax.random.key(0))

    def test_replicas_without_noise_are_refused(self):
        with pytest.raises(pk.errors.ParameterError, match="differ by their noise alone"):
            sweep(replicas=3)
        with pytest.raises(pk.errors.ParameterError, match="keys are swept"):
            sweep(pk.SweepAxis("key", [1, 2]), key=jax.random.key(0))

    def test_bad_models_and_steps_are_refused(self):
        with pytest.raises(pk.errors.ParameterError, match=r"\(simulation, state\)"):
            sweep(model=MODEL[0])
        with pytest.raises(pk.errors.ParameterError, match="give its state"):
            sweep(model=(MODEL[0], pk.init(*MODEL)))
        with pytest.raises(
            pk.errors.ObserverError, match="multiple of the longest observer interval"
        ):
            sweep(pk.SweepAxis(damping, [0.1]), steps=7)
        with pytest.raises(pk.errors.ParameterError, match="steps are missing"):
            pk.sweep(MODEL, over=pk.SweepAxis(damping, [0.1]))
        with pytest.raises(pk.errors.ParameterError, match="already holds these arguments"):
            pk.sweep(sweep(pk.SweepAxis(damping, [0.1])), 10)

    def test_repeated_and_unknown_names_are_refused(self):
        with pytest.raises(pk.errors.ParameterError, match="two swept quantities are called"):
            sweep((pk.SweepAxis(damping, [0.1], "c"), pk.SweepAxis(gravity, [0.1], "c")))
        with pytest.raises(
            pk.errors.ParameterError, match=r"nothing is recorded as \['speed'\]; avail"
        ):
            pk.sweep(MODEL, 10, over=pk.SweepAxis(damping, [0.1]), keep=("speed",))
        with pytest.raises(pk.errors.ParameterError, match=r"nothing is recorded as \['speed'\]"):
            pk.sweep(
                MODEL, 10, over=pk.SweepAxis(damping, [0.1]), reduce=pk.reductions.Mean("speed")
            )

    def test_states_of_different_structure_are_refused(self):
        _, state = MODEL
        with pytest.raises(pk.errors.ShapeError, match=r"of one shape|must have shape"):
            sweep(pk.designs.initial_states([state, jnp.zeros(3)]))
        with pytest.raises(pk.errors.ShapeError):
            pk.designs.initial_states([])
        atoms = pk.Particles(jnp.zeros((2, 2)), space=pk.Free())
        trap = pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.0)), dt=0.1)
        boxed = pk.Particles(jnp.zeros((2, 2)), space=pk.Box([1.0, 1.0]))
        with pytest.raises(pk.errors.ShapeError, match="state 1 has another structure"):
            sweep(pk.designs.initial_states([atoms, boxed]), model=(trap, atoms))

    def test_groups_that_record_different_things_are_refused(self):
        sim, state = MODEL
        other = pk.Simulation(sim.integrator, sim.dt, pk.Every(5, angle=lambda n: n.state[0]))
        with pytest.raises(pk.errors.ShapeError, match="groups 0 and 1 record different things"):
            pk.sweep([MODEL, (other, state)], 10, over=pk.SweepAxis(damping, [0.1]))

        other = pk.Simulation(sim.integrator, sim.dt, pendulum(10)[0].observers)
        with pytest.raises(
            pk.errors.ShapeError, match=r"at different intervals, \[5\] and \[10\] steps"
        ):
            pk.sweep([MODEL, (other, state)], 10, over=pk.SweepAxis(damping, [0.1]))
        with pytest.raises(pk.errors.ParameterError, match="2 names, one for each model; got 'ab'"):
            sweep(model=[MODEL, MODEL], groups="ab")

    def test_two_statistics_of_one_title_are_refused(self):
        bins = (
            pk.reductions.Histogram("angle", (-1, 0, 1)),
            pk.reductions.Histogram("angle", (-1, 1)),
        )
        with pytest.raises(
            pk.errors.ParameterError, match=r"two statistics are called \['histogram angle'\]"
        ):
            sweep(pk.SweepAxis(damping, [0.1]), reduce=bins)

    def test_arguments_that_are_no_key_are_refused(self):
        with pytest.raises(pk.errors.ParameterError, match="key is a whole number or a JAX"):
            sweep(replicas=2, key=jnp.zeros(2))
        with pytest.raises(pk.errors.ShapeError, match="one key is needed"):
            sweep(replicas=2, key=jax.random.split(jax.random.key(0), 2))

    def test_keys_counts_and_states_are_converted_as_for_runs(self):
        plain = pk.Sweep(pendulum(), 20, replicas=2, key=jax.random.key(3))
        sim, state = pendulum()
        for start in ([0.5, 0.0], np.array([0.5, 0.0])):
            given = pk.Sweep((sim, start), np.int64(20), replicas=np.int32(2), key=3)
            assert given.digest == plain.digest
            assert given.models[0][1].dtype == state.dtype
        assert type(pk.Sweep(pendulum(), 2e1, replicas=2.0, key=3).replicas) is int

    def test_bad_chunk_sizes_and_numbers_are_refused(self, tmp_path):
        one = sweep(pk.SweepAxis(damping, [0.1]))
        for bad in (0, -1, True):
            with pytest.raises(pk.errors.ParameterError, match="chunk_size must be a whole number"):
                pk.sweep(one, chunk_size=bad)
        with pytest.raises(pk.errors.ParameterError, match=r"numbered 0 … 0; got \[3\]"):
            execute(one, tmp_path / "a", chunks=[3])

    def test_a_member_larger_than_the_device_is_refused(self, monkeypatch):
        one = sweep(pk.SweepAxis(damping, [0.1]))
        monkeypatch.setattr(
            "physkit.ensemble.compute._batch_memory.available_bytes", lambda device: 100.0
        )
        with pytest.raises(pk.errors.CapacityError, match=r"one member needs .* and a device has"):
            pk.sweep(one, progress=False)
        monkeypatch.setattr(
            "physkit.ensemble.compute._batch_memory.available_bytes", lambda device: 8.0
        )
        with pytest.raises(pk.errors.CapacityError, match="one member needs"):
            pk.sweep(one, progress=False)

    def test_a_processor_has_memory_where_devices_are_gpus(self, monkeypatch):
        cpus = jax.local_devices(backend="cpu")

        def local_devices(process_index=None, backend=None, host_id=None):
            # As JAX does by default on a machine with GPUs: no processor is among them.
            return cpus if backend == "cpu" else [SimpleNamespace(platform="gpu")]

        alone = available_bytes(cpus[0])
        monkeypatch.setattr(jax, "local_devices", local_devices)
        # Other programs take and give memory meanwhile.
        assert available_bytes(cpus[0]) == pytest.approx(alone, rel=0.5)

    def test_a_chunk_is_sized_where_only_gpus_are_known(self, monkeypatch):
        one = sweep(pk.SweepAxis(damping, [0.1, 0.2]))
        shapes, devices = output_shapes(one), jax.local_devices()

        def local_devices(process_index=None, backend=None, host_id=None):
            raise RuntimeError(f"Unknown backend {backend}")  # as with JAX_PLATFORMS=cuda

        monkeypatch.setattr(jax, "local_devices", local_devices)
        monkeypatch.setattr(
            "physkit.ensemble.compute._batch_memory.available_bytes", lambda device: 2.0**36
        )
        assert choose_chunk_size(one, devices, False, shapes) == 2

    def test_negative_time_steps_are_refused(self):
        with pytest.raises(
            pk.errors.ParameterError, match=r"steps must be positive; got dt = -0.1"
        ):
            sweep(pk.SweepAxis(lambda m: m[0].dt, [0.1, -0.1], name="dt"))

    def test_retries_that_change_nothing_are_refused(self):
        with pytest.raises(pk.errors.ParameterError, match="must change something"):
            pk.sweeping.Retry()
        with pytest.raises(pk.errors.ParameterError):
            pk.sweeping.Retry(step_divisor=0)
        with pytest.raises(pk.errors.ShapeError, match="one finite number for each of 1 members"):
            sweep(pk.SweepAxis(damping, [0.1]), cost=[1.0, 2.0])

    def test_retries_lengthen_intervals_of_observers_inside_of_others(self):
        sim, _ = MODEL
        inner = pk.Every(5, angle=lambda s: s.state[0])
        sim = pk.Simulation(sim.integrator, dt=sim.dt, observers=[PerReplica(inner)])
        assert scale_intervals(sim, 3).observers[0].interval == 15
