"""Reductions over chunks of members, against NumPy on all members."""

import jax
import numpy as np
import pytest

import physkit as pk
from physkit.ensemble.statistics._reductions import describe_reductions, restore_reductions

from .sweep_problems import damping, pendulum

RNG = np.random.default_rng(0)
VALUES = RNG.normal(3.0, 2.0, (101, 4, 2))


def reduce_in_chunks(reduction, sizes=(30, 1, 50, 20)):
    chunks = np.split(VALUES, np.cumsum(sizes)[:-1])
    partial = reduction.summarize(chunks[0])
    for chunk in chunks[1:]:
        partial = reduction.combine(partial, reduction.summarize(chunk))
    return reduction.result(partial)


class TestCombining:
    def test_moments_equal_numpys(self):
        np.testing.assert_allclose(
            reduce_in_chunks(pk.reductions.Mean("x")), VALUES.mean(0), rtol=1e-13
        )
        np.testing.assert_allclose(
            reduce_in_chunks(pk.reductions.Variance("x")), VALUES.var(0, ddof=1), rtol=1e-13
        )
        assert np.isnan(
            pk.reductions.Variance("x").result(pk.reductions.Variance("x").summarize(VALUES[:1]))
        ).all()

    def test_variance_far_from_zero_keeps_its_digits(self):
        partial = lambda x: pk.reductions.Variance("x").summarize(x + 1e9)
        both = pk.reductions.Variance("x").combine(partial(VALUES[:40]), partial(VALUES[40:]))
        expected = (VALUES + 1e9).var(0, ddof=1)
        np.testing.assert_allclose(pk.reductions.Variance("x").result(both), expected, rtol=1e-6)

    def test_quantiles_are_exact_in_small_chunks_and_close_in_large_ones(self):
        levels = (0.0, 0.1, 0.5, 0.9, 1.0)
        exact = np.quantile(VALUES, levels, axis=0)
        np.testing.assert_allclose(
            reduce_in_chunks(pk.reductions.Quantiles("x", levels)), exact, rtol=1e-12
        )
        rough = reduce_in_chunks(pk.reductions.Quantiles("x", levels, points=16))
        ranks = (VALUES[None] <= rough[:, None]).mean(1)
        assert np.all(np.abs(ranks - np.reshape(levels, (5, 1, 1))) < 1 / 16)

    def test_histograms_equal_numpys(self):
        edges = np.linspace(-1, 6, 8)
        found = reduce_in_chunks(pk.reductions.Histogram("x", edges))
        assert found.shape == (4, 2, 7)
        np.testing.assert_array_equal(found[1, 0], np.histogram(VALUES[:, 1, 0], edges)[0])

    def test_bad_levels_and_edges_are_refused(self):
        for bad in (
            lambda: pk.reductions.Quantiles("x", (1.5,)),
            lambda: pk.reductions.Histogram("x", [1.0, 1.0]),
            lambda: pk.sweeping.Converged("x", 0.0),
        ):
            with pytest.raises(pk.errors.ParameterError):
                bad()


def test_reductions_stored_by_version_0_1_are_restored():
    fields = {"name": "x", "shares": [0.1, 0.9], "points": 64}
    (quantiles,) = restore_reductions(
        [
            {"kind": "Quantiles", "title": "quantiles x", "fields": fields},
            {"kind": "Reduction", "title": "of a user"},
        ]
    )
    assert (quantiles.name, quantiles.levels, quantiles.points) == ("x", (0.1, 0.9), 64)
    (row,) = describe_reductions((quantiles,))
    assert {**row["fields"], "shares": list(row["fields"]["shares"])} == fields


class TestInASweep:
    def sweep(self, **more):
        over = pk.SweepAxis(damping, np.linspace(0, 1, 12), name="damping")
        return pk.sweep(pendulum(), 40, over=over, progress=False, **more)

    def test_failed_members_do_not_count(self, tmp_path):
        values = np.linspace(0, 1, 12)
        values[[2, 7]] = np.nan
        over = pk.SweepAxis(damping, values)
        reduce = (
            pk.reductions.Mean("angle"),
            pk.reductions.Variance("angle"),
            pk.reductions.Quantiles("angle"),
        )
        found = pk.sweep(
            pendulum(),
            40,
            over=over,
            reduce=reduce,
            keep=False,
            chunk_size=5,
            to=tmp_path / "a",
            progress=False,
        )
        assert not found.frames
        every = pk.sweep(pendulum(), 40, over=over, progress=False)
        angles = every["angle"][:][every.ok]
        assert len(angles) == 10
        np.testing.assert_allclose(found.reduced["mean angle"], angles.mean(0), rtol=1e-10)
        np.testing.assert_allclose(
            found.reduced["variance angle"], angles.var(0, ddof=1), rtol=1e-8, atol=1e-15
        )
        expected = np.quantile(angles, (0.05, 0.5, 0.95), axis=0)
        np.testing.assert_allclose(found.reduced["quantiles angle"], expected, rtol=1e-9)
        again = pk.open(tmp_path / "a")
        np.testing.assert_array_equal(again.reduced["mean angle"], found.reduced["mean angle"])

    def test_a_sweep_stops_when_converged(self, tmp_path):
        stop = pk.sweeping.Converged("angle", error=10.0, min_members=6)
        found = self.sweep(stop_when=stop, chunk_size=3, to=tmp_path / "a")
        assert found.stopped_by == "converged"
        assert len(found.members) == 6
        assert len(self.sweep(stop_when=stop, chunk_size=3, to=tmp_path / "a").members) == 6
        assert "variance angle" in found.reduced
        never = self.sweep(stop_when=pk.sweeping.Converged("angle", error=1e-9), chunk_size=3)
        assert never.complete
        assert never.stopped_by is None

    @pytest.mark.slow
    def test_variance_of_a_trapped_particle_is_thermal(self):
        sim = pk.Simulation(
            pk.BAOAB(pk.HarmonicTrap(1.0), 1.0, 1.0),
            dt=0.1,
            observers=pk.Every(10, x=pk.Positions()),
        )
        start = pk.Particles(np.zeros((1, 1)), space=pk.Free())
        found = pk.sweep(
            (sim, start), 100, replicas=400, key=jax.random.key(0), reduce=pk.reductions.Variance("x"),
            keep=False, progress=False,
        )  # fmt: skip
        assert (
            abs(found.reduced["variance x"][-1, 0, 0] - 1.0) < 0.25
        )  # kT / k, 3.5 standard errors
