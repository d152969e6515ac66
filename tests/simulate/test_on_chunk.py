"""The function that `run`, `fit` and `sweep` call as they go, with a logger that only remembers."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import physkit as pk
from physkit.simulate.loop import _chunk_scheduler

from .problems import Explosive, particles, springs


class Logger:
    """Remembers what it is told, as W&B or TensorBoard would send it."""

    def __init__(self):
        self.steps, self.rows, self.reports = [], [], []

    def __call__(self, report):
        self.reports.append(report)
        self.steps.append(getattr(report, "step", None))
        self.rows.append(report.metrics())


@pytest.fixture
def short_chunks(monkeypatch):
    """Chunks of one block, however fast the machine is."""
    monkeypatch.setattr(
        _chunk_scheduler.ChunkScheduler, "update", lambda self, blocks, seconds: None
    )


@pytest.mark.usefixtures("short_chunks")
def test_a_run_tells_every_frame_once(tmp_path):
    sim, logger, to_files = springs(), Logger(), Logger()
    run = pk.run(sim, particles(), 24, progress=False, on_chunk=logger)
    period = sim.observation_period
    assert logger.steps == list(range(0, 25, period))
    assert len(logger.steps) > 2
    for name in run.frames:
        told = np.concatenate([r.frames[name] for r in logger.reports if name in r.frames])
        times = np.concatenate([r.times[name] for r in logger.reports if name in r.times])
        np.testing.assert_array_equal(told, run.frames[name])
        np.testing.assert_array_equal(times, run.times[name])
    last = logger.reports[-1]
    assert last.health.ok
    assert last.time == pytest.approx(float(sim.dt) * 24)
    scalars = [n for n, x in run.frames.items() if x.ndim == 1]
    assert set(logger.rows[-1]) == {"time", "steps_per_second", *scalars}
    assert logger.rows[-1][scalars[0]] == run.frames[scalars[0]][-1]
    # The same where frames go to files; a resumed run tells what is new.
    pk.run(sim, particles(), 24 - period, progress=False, to=tmp_path / "a", on_chunk=to_files)
    begun = len(to_files.reports)
    pk.run(sim, particles(), 24, progress=False, to=tmp_path / "a", resume=True, on_chunk=to_files)
    assert to_files.steps[begun:] == [24 - period, 24]
    assert to_files.reports[begun].frames == {}
    told = np.concatenate([r.frames[scalars[0]] for r in to_files.reports if r.frames])
    np.testing.assert_array_equal(told, run.frames[scalars[0]])


def test_a_run_that_goes_wrong_tells_that_last():
    sim = pk.Simulation(pk.VelocityVerlet(Explosive()), dt=0.1)
    logger = Logger()
    with pytest.raises(pk.SimulationDiverged):
        pk.run(sim, particles(), 200, progress=False, on_chunk=logger)
    assert not logger.reports[-1].health.ok
    assert logger.reports[-1].frames == {}
    assert all(report.health.ok for report in logger.reports[:-1])

    def broken(report):
        if not report.health.ok:
            raise ConnectionError("no network")

    with pytest.raises(pk.SimulationDiverged) as caught:
        pk.run(sim, particles(), 200, progress=False, on_chunk=broken)
    assert any("ConnectionError, too: no network" in note for note in caught.value.__notes__)


@pytest.mark.usefixtures("short_chunks")
def test_a_function_that_raises_ends_the_run_and_loses_no_frame(tmp_path):
    def broken(report):
        if report.step >= 12:
            raise ConnectionError("no network")

    with pytest.raises(ConnectionError):
        pk.run(springs(), particles(), 24, progress=False, to=tmp_path / "a", on_chunk=broken)
    kept = pk.open(tmp_path / "a")
    assert max(series.step[-1] for series in kept.values()) == 12
    done = pk.run(springs(), particles(), 24, progress=False, to=tmp_path / "a", resume=True)
    whole = pk.run(springs(), particles(), 24, progress=False)
    for name, frames in whole.frames.items():
        np.testing.assert_array_equal(np.asarray(done.recording[name], frames.dtype), frames)


def residuals(model):
    x = jnp.arange(4.0)
    return model["a"] * x + model["b"] * jnp.exp(-x) - (2.0 * x + 3.0 * jnp.exp(-x))


MODEL = {"a": jnp.asarray(1.0), "b": jnp.asarray(0.5)}


def test_a_fit_tells_every_step():
    logger = Logger()
    found = pk.fit(residuals, MODEL, where=lambda m: m, progress=False, on_iteration=logger)
    assert logger.steps == list(range(1, found.steps + 1))
    np.testing.assert_allclose([row["loss"] for row in logger.rows], found.history.loss)
    assert set(logger.rows[0]) == {"loss", "gradient_norm", "a", "b"}
    assert logger.rows[-1]["a"] == pytest.approx(2.0, abs=1e-5)
    # The parameters told are those that have the loss told.
    for report in logger.reports:
        r = residuals(report.values)
        assert 0.5 * float(jnp.sum(r**2)) == pytest.approx(report.loss, rel=1e-6, abs=1e-12)


def test_a_fit_by_optax_and_one_of_several_starts_tell_as_they_go():
    logger, several = Logger(), Logger()
    with pytest.warns(UserWarning, match="NOT converged"):
        pk.fit(
            lambda m: jnp.sum(residuals(m) ** 2), MODEL, where=lambda m: m, progress=False,
            method=pk.fitting.Optax(optax.adam(0.05), steps=100), on_iteration=logger,
        )  # fmt: skip
    assert logger.steps == list(range(2, 101, 2))
    assert logger.rows[-1]["loss"] < logger.rows[0]["loss"]
    pk.fit(residuals, MODEL, where=lambda m: m, progress=False, starts=3, on_iteration=several)
    assert all(a < b for a, b in zip(several.steps, several.steps[1:], strict=False))
    assert several.reports[0].finite_starts == 3
    assert several.rows[-1]["b"] == pytest.approx(3.0, abs=1e-5)


def test_a_sweep_tells_every_chunk(tmp_path):
    sim = pk.Simulation(
        pk.Euler(lambda t, y: -y), dt=0.1, observers=pk.Every(2, y=lambda now: now.state)
    )
    over = pk.SweepAxis(lambda m: m[1], [1.0, 2.0, 3.0, 4.0, 5.0], name="start")
    logger = Logger()
    swept = pk.sweep(
        (sim, jnp.asarray(0.0)), 4, over=over, chunk_size=2, to=tmp_path / "s", progress=False,
        on_chunk=logger,
    )  # fmt: skip
    assert [report.chunk for report in logger.reports] == [0, 1, 2]
    assert [(report.done, report.total) for report in logger.reports] == [(2, 5), (4, 5), (5, 5)]
    told = np.concatenate([np.asarray(report.members["y"]) for report in logger.reports])
    np.testing.assert_array_equal(told, swept["y"])
    assert logger.rows[0]["failed"] == 0
    assert logger.rows[0]["mean last y"] == pytest.approx(float(np.mean(swept["y"][:2, -1])))
    with pytest.raises(pk.errors.ParameterError, match="nor on_chunk="):
        pk.sweep(
            (sim, jnp.asarray(0.0)),
            4,
            over=over,
            to=tmp_path / "w",
            engine="local",
            on_chunk=logger,
        )
