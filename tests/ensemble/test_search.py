"""Searches without gradients: minima, dead members, batches, folders, bad input."""

import json
import re
import subprocess
import sys
import warnings
from functools import partial

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import physkit as pk
from physkit import plot
from physkit.core import replace_fields
from physkit.ensemble.search._population import PopulationLoss
from physkit.fit.solve._search_method import trace_loss
from physkit.storage import FolderLock
from tests.ensemble.test_claims import dead_process

CMAES, OpenES, DE = pk.fitting.CMAES, pk.fitting.OpenES, pk.fitting.DifferentialEvolution
QUIET = {"progress": False}


def both(model):
    return {"width": model["width"], "place": model["place"]}


def start(dtype="float64"):
    return {"width": jnp.asarray(1.0, dtype), "place": jnp.asarray([0.2, 0.3], dtype)}


def valley(model, target):
    """A valley in the logarithm of `width`, dead where `place` is right of 0.8."""
    away = model["place"] - target
    loss = jnp.log(model["width"] / 3) ** 2 + 100 * (away[0] - away[1]) ** 2 + jnp.sum(away**2)
    return jnp.where(model["place"][0] > 0.8, jnp.nan, loss)


BOUNDS = {"width": pk.bounds.PositiveBound(), "place": pk.bounds.Interval(0.0, 1.0)}
TARGET = jnp.asarray([0.7, 0.4])


def search(method, **options):
    given = {"where": both, "bounds": BOUNDS, "data": TARGET, "key": 2, **QUIET, **options}
    return pk.fit(valley, start(), method=method, **given)


@pytest.fixture(scope="module")
def found():
    return search(CMAES(population=12, max_generations=150))


def test_a_search_finds_the_minimum_within_its_bounds(found):
    assert found.converged
    assert found.loss < 1e-10
    np.testing.assert_allclose(found.values["width"], 3.0, rtol=1e-4)
    np.testing.assert_allclose(found.values["place"], TARGET, atol=1e-5)
    np.testing.assert_array_equal(found.model["place"], found.values["place"])
    np.testing.assert_allclose(valley(found.model, TARGET), found.loss, rtol=1e-5)
    history = found.history
    assert len(history.loss) == found.steps
    assert np.all(np.diff(history.loss) <= 0)
    assert np.all(history.loss <= history.best)
    assert np.all(history.best <= history.mean)
    np.testing.assert_array_equal(history.evaluations, 1 + 12 * np.arange(1, found.steps + 1))
    assert history.sigma[-1] < 1e-3 * history.sigma[0]
    assert history.failed.sum() > 0
    assert any("were dead" in remark for remark in found.remarks)
    assert found.labels == ("width", "place[0]", "place[1]")
    assert f"{found.steps} generations" in repr(found)


def test_a_history_is_drawn(found):
    ax = plot.fit_history(found)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), found.history.loss)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), found.history.evaluations)
    assert ax.get_yscale() == "log"


def test_a_key_gives_the_same_bits_and_another_others(found):
    short = search(CMAES(population=12, max_generations=150), batch_size=1)
    np.testing.assert_array_equal(short.history.mean, found.history.mean)
    with pytest.warns(UserWarning, match="max_generations=3 are used up"):
        other = search(CMAES(population=12, max_generations=3), key=4)
    assert not np.any(other.history.mean == found.history.mean[:3])


@pytest.mark.parametrize(
    ("method", "below"),
    [
        (OpenES(population=32, max_generations=60, target=8e-2), 8e-2),
        (DE(population=24, max_generations=150, target=1e-5), 1e-5),
        (DE(population=24, greedy=True, max_generations=100, target=1e-5), 1e-5),
    ],
)
def test_the_other_methods_reach_their_target(method, below):
    found = search(method)
    assert found.converged
    assert found.loss < below
    assert "below the target" in found.reason
    assert np.all(found.history.loss[:-1] > below)


def test_no_search_returns_a_point_worse_than_it_was_given():
    best = {"x": jnp.ones(3)}
    for method in (
        pk.fitting.CMAES(sigma=1.0, max_generations=2),
        pk.fitting.DifferentialEvolution(sigma=1.0, max_generations=2),
    ):
        with pytest.warns(UserWarning, match="NOT converged"):
            found = pk.fit(
                lambda m: jnp.sum((m["x"] - 1) ** 2), best, where=lambda m: m["x"], method=method,
                progress=False,
            )  # fmt: skip
        np.testing.assert_array_equal([found.loss, *found.values["x"]], [0, 1, 1, 1])


def test_restarts_double_the_population_and_keep_the_best():
    def wells(x):  # the deeper one, at −3, is out of sight of the first population
        return jnp.minimum(jnp.sum((x - 1) ** 2) + 1.0, jnp.sum((x + 3) ** 2))

    method = CMAES(sigma=0.5, restarts=1, population=6, target=1e-8, max_generations=400)
    found = pk.fit(wells, jnp.ones(3), where=lambda m: m, method=method, key=0, **QUIET)
    assert found.converged
    first, second = found.attempts
    assert first.loss == pytest.approx(1.0)
    assert not np.array_equal(second.start["model"], first.start["model"])
    assert found.loss == min(first.loss, second.loss)
    steps = np.repeat([6, 12], [first.steps, second.steps])
    np.testing.assert_array_equal(found.history.population, steps)
    assert len(plot.fit_history(found).lines) == 5


def test_a_minimum_that_was_found_before_a_restart_is_one():
    def descend(generations, restarts=1, **options):
        method = CMAES(sigma=0.5, restarts=restarts, population=6, max_generations=generations)
        start = {"x": jnp.ones(2)}
        wanted = {"where": lambda m: m["x"], "method": method, "key": 0, **QUIET, **options}
        return pk.fit(lambda m: jnp.sum((m["x"] - 1) ** 2), start, **wanted)

    once = descend(400, restarts=0)
    twice = descend(once.steps + 3)
    assert twice.converged
    assert [attempt.converged for attempt in twice.attempts] == [True, False]
    assert "then, in restart 1, max_generations" in twice.reason
    with pytest.warns(UserWarning, match="max_generations"):
        assert not descend(once.steps - 3).converged


@pytest.mark.slow
def test_single_precision_stays_single():
    def loss(model):
        return jnp.sum((model["place"] - 1) ** 2)

    with jax.enable_x64(False):
        found = pk.fit(
            loss, start("float32"), where=lambda m: m["place"], method=CMAES(population=12), key=0, **QUIET
        )  # fmt: skip
    assert found.model["place"].dtype == np.float32
    assert found.converged
    assert found.loss < 1e-9


def decay(t, y, rate):
    return -rate[0] * y


def test_a_simulation_is_a_loss_like_any_other():
    def loss(model):
        result = pk.simulate(*model, 20)
        return (result.carry.state - jnp.exp(-1.4)) ** 2

    flow = pk.Function(decay, (jnp.asarray(0.3),))
    model = pk.Simulation(pk.RK4(flow), dt=0.05), jnp.asarray(1.0)
    found = pk.fit(
        loss, model, where=lambda m: pk.find(m, pk.Function).args[0],
        bounds=pk.bounds.PositiveBound(), method=CMAES(population=8, target=1e-10), key=0, **QUIET,
    )  # fmt: skip
    assert next(iter(found.values.values())) == pytest.approx(1.4, rel=1e-4)


DEVICES = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from tests.ensemble.test_search import network_losses
one = network_losses(None, jax.local_devices()[:1])
for batch, devices in ((1, 1), (None, 3), (70, 3)):
    assert np.array_equal(network_losses(batch, jax.local_devices()[:devices]), one), (batch, devices)
assert np.all(np.isfinite(one)) and len(set(one)) == 150
"""


def network_losses(batch_size, devices):
    """Losses of 150 small networks that move a point, by products of matrices and a scan."""

    def loss(z, data):
        first, second = z[:24].reshape(3, 8), z[24:].reshape(8, 2)

        def step(x, force):
            inputs = jnp.concatenate([x, force[None]])
            hidden = jnp.tanh(jnp.matmul(inputs, first, precision="highest"))
            return x + 0.1 * jnp.matmul(hidden, second, precision="highest"), jnp.sin(x[0])

        x, path = jax.lax.scan(step, jnp.ones(2, z.dtype), data)
        return jnp.sum(x**2) + jnp.sum(path)

    data = jnp.linspace(0.0, 1.0, 30)
    z = jnp.asarray(np.random.default_rng(0).normal(size=(150, 40)))
    compute = PopulationLoss(trace_loss(loss, z[0], data), 150, 40, z.dtype, batch_size, devices)
    return compute(z)


def test_losses_have_the_same_bits_in_any_batch_on_any_devices():
    subprocess.run([sys.executable, "-c", DEVICES], check=True, timeout=200)


def test_a_search_goes_on_from_its_folder_with_the_same_bits(found, tmp_path):
    method, folder = CMAES(population=12, max_generations=150), tmp_path / "a"
    with pytest.warns(UserWarning, match="max_generations=5 are used up"):
        search(CMAES(population=12, max_generations=5), to=folder)
    with pytest.warns(
        UserWarning, match=r"stopped \(wall time\) after 5 .*; the same call goes on"
    ):
        search(method, to=folder, wall_time=0.0)
    files = sorted(path.name for path in (folder / "generations").iterdir())
    assert files == [f"{k:06d}.h5" for k in range(5)]
    resumed = search(method, to=folder)
    np.testing.assert_array_equal(resumed.history.mean, found.history.mean)
    np.testing.assert_array_equal(resumed.values["place"], found.values["place"])
    # Nothing is left to compute: the losses come from the files.
    path = folder / "generations" / "000000.h5"
    with pytest.raises(pk.errors.MismatchError, match=r"another search(.|\n)*the data"):
        search(method, to=folder, data=TARGET + 0.1)
    with pytest.raises(pk.errors.MismatchError, match="the random key"):
        search(method, to=folder, key=5)
    with pytest.raises(pk.errors.MismatchError, match=r"the method(.|\n)*sigma"):
        search(CMAES(population=12, sigma=0.2), to=folder)
    with pytest.raises(pk.errors.MismatchError, match="the program traced from the objective"):
        pk.fit(lambda m, t: 2 * valley(m, t), start(), where=both, bounds=BOUNDS, data=TARGET,
               key=2, method=method, to=folder, **QUIET)  # fmt: skip
    for rate in (0.1, 0.2):
        descent = OpenES(population=8, max_generations=1, optimizer=optax.sgd(rate))
        if rate == 0.1:
            with warnings.catch_warnings(action="ignore"):
                search(descent, to=tmp_path / "descent")
            continue
        with pytest.raises(pk.errors.MismatchError, match="the optimizer"):
            search(descent, to=tmp_path / "descent")
    shifted = TARGET + 0.1
    for closed_over in (TARGET, shifted):
        loss = partial(valley, target=closed_over)
        wanted = {"where": both, "bounds": BOUNDS, "key": 2, "to": tmp_path / "closed", **QUIET}
        short = CMAES(population=12, max_generations=2)
        if closed_over is TARGET:
            with warnings.catch_warnings(action="ignore"):
                pk.fit(loss, start(), method=short, **wanted)
            continue
        with pytest.raises(pk.errors.MismatchError, match="the program traced from the objective"):
            pk.fit(loss, start(), method=short, **wanted)
    (folder / "generations" / "000001.h5").replace(path)
    with pytest.raises(pk.errors.MismatchError, match="other members than this search draws"):
        search(method, to=folder)
    with h5py.File(path, "r+") as file:
        file["loss"][0] = 0.0
    cut = folder / "generations" / "000003.h5"
    cut.write_bytes(cut.read_bytes()[:500])
    with pytest.warns(UserWarning, match="is computed anew") as told:
        mended = search(method, to=folder)
    texts = " ".join(str(warning.message) for warning in told)
    assert re.findall(r"generation (\d+) is computed anew", texts) == ["0", "3"]
    assert cut.is_file()
    assert cut.with_suffix(".damaged").is_file()
    np.testing.assert_array_equal(mended.history.mean, found.history.mean)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").write_text("")
    with pytest.raises(pk.errors.FileError, match="holds no search"):
        search(method, to=tmp_path / "b")


def test_generations_without_a_living_member():
    with pytest.raises(
        pk.errors.ObjectiveError, match="any of the 8 members of the first generation"
    ):
        pk.fit(lambda x: jnp.log(-jnp.abs(x)), jnp.asarray(1.0), where=lambda m: m,
               method=CMAES(population=8), key=0, **QUIET)  # fmt: skip

    def dies(x):  # where members come near the minimum
        return jnp.where(jnp.abs(x) < 0.5, jnp.nan, x**2) * jnp.where(jnp.abs(x) < 1.5, jnp.nan, 1)

    with pytest.warns(UserWarning, match="max_generations"):
        found = pk.fit(dies, jnp.asarray(2.0), where=lambda m: m,
                       method=CMAES(population=8, max_generations=20), key=0, **QUIET)  # fmt: skip
    assert np.isfinite(found.loss)
    assert found.history.failed.max() > 0


def test_bad_input_is_refused():
    for make, message in (
        (lambda: CMAES(population=3), "population of at least 4"),
        (lambda: OpenES(population=2), "population of at least 4"),
        (lambda: OpenES(population=7), "must be even"),
        (lambda: DE(population=3), "population of at least 4"),
        (lambda: CMAES(sigma=0.0), "above 0; got 0"),
        (lambda: OpenES(sigma=float("nan")), "above 0; got nan"),
        (lambda: DE(weight=(0.9, 0.5)), "low ≤ high"),
        (lambda: replace_fields(DE(), {"weight": 0.8}).__check_init__(), "low ≤ high"),
        (lambda: DE(crossover=1.5), "fraction, 0 to 1"),
        (lambda: search(DE(max_evaluations=31)), "30 members(.|\n)*Give 32 or more"),
        (lambda: search(DE(), start_std=2.0), "leave out start_std="),
        (lambda: CMAES(restarts=-1), "0 or more"),
        (lambda: CMAES(max_generations=0), "max_generations must be a whole number from 1"),
        (lambda: CMAES(max_evaluations=99.5), "max_evaluations must be a whole number from 1"),
        (lambda: CMAES(population=7.5), "population must be a whole number from 1; got 7.5"),
        (lambda: OpenES(population=7.5), "population must be a whole number from 1; got 7.5"),
        (lambda: DE(population=7.5), "population must be a whole number from 1; got 7.5"),
        (lambda: CMAES(restarts=1.5), "restarts must be a whole number, 0 or more; got 1.5"),
        (lambda: pk.bounds.Interval(1.0, 0.0), "finite a < b"),
        (lambda: search(CMAES(), batch_size=0), "batch_size"),
        (lambda: search(CMAES(), devices=[]), "devices are JAX devices"),
        (lambda: search(CMAES(), wall_time=float("nan")), "wall_time is a number of seconds"),
        (lambda: search(CMAES(), starts=3), "leave out starts="),
        (lambda: search(pk.fitting.BFGS(), to="folder"), "of searches only"),
    ):
        with pytest.raises(pk.errors.ParameterError, match=message):
            make()
    with pytest.raises(pk.errors.SelectionError, match="int64 and has no derivative"):
        pk.fit(
            lambda m: 1.0 * m[0],
            (jnp.asarray(3), 0.0),
            where=lambda m: m[0],
            method=CMAES(),
            **QUIET,
        )
    for loss in (lambda x: x, lambda x: x[:1]):
        with pytest.raises(
            pk.errors.ObjectiveError, match="CMAES needs a loss, and the objective returns"
        ):
            pk.fit(loss, jnp.ones(3), where=lambda m: m, method=CMAES(), **QUIET)


def test_whole_numbers_of_methods_may_be_floats_or_of_numpy():
    for method in (CMAES(population=1e1), DE(population=np.int64(10), max_generations=1e2)):
        assert (type(method.population), method.population_size(3)) == (int, 10)


@pytest.mark.parametrize("method", [CMAES(max_generations=30), DE(max_generations=30)])
@pytest.mark.parametrize("kind", [int, bool])
def test_a_loss_may_be_a_whole_number(method, kind):
    def loss(x):
        return jnp.sum(jnp.round(10 * x).astype(int) ** 2) if kind is int else jnp.any(x > 0.9)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of losses in steps it may not be sure
        found = pk.fit(loss, jnp.ones(2), where=lambda m: m, method=method, key=0, **QUIET)
    assert found.loss == 0
    assert np.all(found.model < (0.051 if kind is int else 0.9))


def test_without_evosax_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "evosax", None)
    with pytest.raises(pk.errors.MissingExtraError, match=r"physkit\[evolve\]"):
        search(CMAES(population=12))


def test_a_folder_is_taken_whenever_its_search_was_killed(tmp_path):
    folder, method = tmp_path / "a", CMAES(population=12, max_generations=2)
    generations = folder / "generations"
    generations.mkdir(parents=True)
    (folder / "lock").write_text(json.dumps(dead_process()))
    (folder / ".writing-0123456789ab-search.h5").write_bytes(b"half")
    with pytest.warns(UserWarning, match="are used up"):
        search(method, to=folder)
    # Of a later kill: readers do not take it for a generation, and the next call removes it.
    (generations / ".writing-0123456789ab-000002.h5").write_bytes(b"half")
    assert [losses.shape for losses in pk.ensemble.read_generations(folder)] == [(12,), (12,)]
    with pytest.warns(UserWarning, match="are used up"):
        search(method, to=folder)
    assert sorted(p.name for p in generations.iterdir()) == ["000000.h5", "000001.h5"]
    # Generations of which nobody knows the search are not mixed with others.
    (folder / "search.h5").unlink()
    with pytest.raises(pk.errors.FileError, match="holds no search"):
        search(method, to=folder)


def test_a_search_that_has_just_begun_is_in_use(tmp_path):
    (tmp_path / "generations").mkdir()
    lock = FolderLock(tmp_path)
    with pytest.raises(pk.errors.FileInUseError, match="process"):
        search(CMAES(population=12, max_generations=2), to=tmp_path)
    lock.release()
