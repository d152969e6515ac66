"""Monte Carlo of spins keeps the Boltzmann distribution, which small lattices have by enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import physkit as pk
from physkit import systems
from physkit.core import (
    Clock,
    ComponentError,
    DeclarationError,
    ParameterError,
    ShapeError,
    SimulationDiverged,
    StepCount,
)
from physkit.geometry import Box, Grid
from physkit.integrators import SpinHeatBath, SpinMetropolis, SwendsenWang
from physkit.integrators.monte_carlo._swendsen_wang import cluster_labels
from physkit.observe import jackknife, spin_averages
from physkit.spins import IsingModel, PottsModel, Spins

CLOCK = Clock.at(StepCount.of(0), 0.0, 1.0, jax.random.key(7))


def states_of(model, grid):
    """All states of a small lattice, and their Boltzmann weights at T = 1.7 from a sum over pairs in NumPy."""
    q, shape = len(model.values), grid.shape
    states = np.array(list(itertools.product(range(q), repeat=int(np.prod(shape)))))
    values = np.asarray(model.values)[states].reshape(-1, *shape)
    same = lambda a, b: a * b if isinstance(model, IsingModel) else (a == b) * 1
    bonds = 0
    for axis, (n, wraps) in enumerate(zip(shape, grid.periodic)):
        for i in range(n if wraps else n - 1):
            a, b = (values.take(j % n, axis + 1) for j in (i, i + 1))
            bonds = bonds + same(a, b).reshape(len(values), -1).sum(1)
    along = values if isinstance(model, IsingModel) else (values == 0) * 1
    energy = -float(model.coupling) * bonds
    energy = energy - float(model.field) * along.reshape(len(values), -1).sum(1)
    weights = np.exp(-energy / 1.7)
    return values, energy, weights / weights.sum()


GRIDS = {
    "Ising": (IsingModel(0.8, 0.3), Grid(Box([4.0, 2.0], periodic=(True, False)), (4, 2))),
    "Ising against the field": (IsingModel(0.25, -0.3), Grid([2.0, 2.0, 2.0], (2, 2, 2))),
    "Potts": (PottsModel(3, 1.2, 0.2), Grid(Box([3.0, 2.0], periodic=False), (3, 2))),
}


# Every update and every grid, and clusters of both models; `make test-all` runs all pairs.
FAST_PAIRS = (
    ("Ising", SwendsenWang),
    ("Ising against the field", SpinMetropolis),
    ("Potts", SpinHeatBath),
    ("Potts", SwendsenWang),
)


@pytest.mark.parametrize(
    ("name", "update"),
    [
        pytest.param(
            *pair,
            id=f"{pair[0]}-{pair[1].__name__}",
            marks=[pytest.mark.slow] * (pair not in FAST_PAIRS),
        )
        for pair in itertools.product(GRIDS, (SpinHeatBath, SpinMetropolis, SwendsenWang))
    ],
)
def test_one_step_keeps_the_distribution(name, update):
    """Samples of the exact distribution are distributed so after a step, which changes many."""
    model, grid = GRIDS[name]
    values, energy, weights = states_of(model, grid)
    spins = Spins(jnp.asarray(values[5]), grid)
    assert np.isclose(float(model.energy(CLOCK, spins, None)), energy[5])
    count = 40_000
    drawn = np.random.default_rng(3).choice(len(values), count, p=weights)
    keys = jax.random.split(jax.random.key(1), count)
    integrator = update(model, 1.7)
    step = lambda key, x: integrator.update(key, spins.with_values(x), jnp.asarray(1.7)).data
    after = jax.jit(jax.vmap(step))(keys, jnp.asarray(values[drawn], jnp.int8))
    found = np.bincount(numbers_of(after, model), minlength=len(values))
    expected = weights * count
    often = expected > 5  # χ² needs some counts in a bin: rare states share one
    observed = np.append(found[often], found[~often].sum())
    expected = np.append(expected[often], expected[~often].sum() + 1e-9)
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, often.sum()) > 1e-4, statistic
    assert (np.asarray(after) != values[drawn]).mean() > 0.1

    # Detailed balance: of a step of clusters, and of the color that is drawn first, which is x'(first) and
    # x(others) of the whole step; the two colors in turn are not their own reverse.
    first = np.zeros(grid.shape, bool)
    first[np.indices(grid.shape).sum(axis=0) % 2 == 0] = True
    half = np.where(first, np.asarray(after), values[drawn])
    whole = largest_asymmetry(drawn, numbers_of(after, model), len(values))
    if update is SwendsenWang:
        assert whole < 4.5
    else:
        assert largest_asymmetry(drawn, numbers_of(half, model), len(values)) < 4.5
        assert whole > 6 or name != "Ising"


def numbers_of(values, model):
    """The numbers of states in the order of `states_of`."""
    index = np.asarray(values).reshape(len(values), -1).astype(int) - min(model.values)
    index = index // (2 if isinstance(model, IsingModel) else 1)
    return index @ len(model.values) ** np.arange(index.shape[1])[::-1]


def largest_asymmetry(before, after, states):
    """How far ⟨f(x) g(x')⟩ is from ⟨g(x) f(x')⟩, in standard errors: the largest of 190 pairs of functions.

    Detailed balance, π(x) P(x → x') = π(x') P(x' → x), says that both are the same.
    """
    f = np.random.default_rng(5).normal(size=(20, states))
    i, j = np.triu_indices(20, 1)
    difference = f[i][:, before] * f[j][:, after] - f[j][:, before] * f[i][:, after]
    errors = difference.std(axis=1) / np.sqrt(len(before))
    return np.max(np.abs(difference.mean(axis=1)) / errors)


@pytest.mark.slow
def test_clusters_are_those_of_a_search():
    """Labels by hooking and by exchange over the periodic ends, against a flood fill."""
    rng = np.random.default_rng(0)
    for shape, periodic in (((12, 10), True), ((5, 4, 6), (True, False, True))):
        grid = Grid(Box([float(n) for n in shape], periodic=periodic), shape)
        bonds = [rng.random(shape) < 0.45 for _ in shape]
        for k, wraps in enumerate(grid.periodic):
            if not wraps:
                bonds[k][tuple(slice(None) if j != k else -1 for j in range(len(shape)))] = False
        labels = np.asarray(
            jax.jit(lambda b, l, grid=grid: cluster_labels(grid, b, l))(
                [jnp.asarray(b) for b in bonds], grid.global_index()
            )
        )
        expected = -np.ones(shape, int)
        for site in np.ndindex(shape):
            if expected[site] >= 0:
                continue
            todo, expected[site] = [site], np.ravel_multi_index(site, shape)
            while todo:
                here = todo.pop()
                for k, n in enumerate(shape):
                    for by in (1, -1):
                        there = tuple((c + by) % n if j == k else c for j, c in enumerate(here))
                        if bonds[k][here if by == 1 else there] and expected[there] < 0:
                            expected[there] = expected[site]
                            todo.append(there)
        np.testing.assert_array_equal(labels, expected)


@pytest.mark.slow
def test_magnetization_of_onsager_and_yang():
    """32² at T = 2, far from T_c, where clusters are small; a sweep over temperatures is a vmap of runs."""
    sim, spins = systems.ising_model(2.0, cells=(32, 32))
    result = pk.simulate(sim, spins, 2000, key=5)
    found = spin_averages(
        result.frames["energy"][50:], result.frames["magnetization"][50:], 2.0, num_sites=1024
    )
    exact = systems.onsager_solution(2.0)
    assert np.isclose(exact.magnetization, 0.911319377877, atol=1e-12)
    assert np.isclose(exact.energy, -1.745564575313, atol=1e-12)
    for name in ("energy", "heat_capacity", "magnetization"):
        value, error = getattr(found, name)
        assert abs(value - getattr(exact, name)) < 4 * error, name
        assert error < 0.06 * abs(value)
    assert 0.66 < found.binder_cumulant.value < 2 / 3


def test_members_of_a_batch_are_single_runs_and_precision_changes_no_rule():
    sim, spins = jax.tree.map(
        lambda x: x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x,
        systems.ising_model(2.3, cells=(8, 8), disordered=True),
    )
    run = jax.jit(lambda key: pk.simulate(sim, spins, 5, key=key))
    keys = jax.random.split(jax.random.key(0), 3)
    done = run(keys[1])
    members = jax.jit(jax.vmap(lambda key: run(key).state.data))(keys)
    np.testing.assert_array_equal(members[1], done.state.data)
    frames = done.frames
    assert frames["energy"].dtype == jnp.float32
    assert np.all(frames["energy"] % 4 == 0)


def test_mistakes_are_explained():
    grid = Grid([4.0, 3.0], (4, 3))
    with pytest.raises(ShapeError, match="even number"):
        pk.simulate(
            pk.Simulation(SpinHeatBath(IsingModel(), 2.0), dt=1.0), Spins(1, grid), 1, key=0
        )
    with pytest.raises(ComponentError, match=r"the state has \[0\]"):
        pk.init(pk.Simulation(SwendsenWang(IsingModel(), 2.0), dt=1.0), Spins(0, grid), key=0)
    with pytest.raises(DeclarationError, match="coupling = -1"):
        pk.init(pk.Simulation(SwendsenWang(IsingModel(-1.0), 2.0), dt=1.0), Spins(1, grid), key=0)
    with pytest.raises(ParameterError, match="temperature must be positive"):
        SwendsenWang(IsingModel(), 0.0)
    with pytest.raises(DeclarationError, match="spins have an energy"):
        SwendsenWang(2.0, IsingModel())
    with pytest.raises(ComponentError, match="whole numbers"):
        Spins(1.0, grid)
    with pytest.raises(ComponentError, match="byte"):
        Spins(200, grid)
    with pytest.raises(ParameterError, match="2 to 127"):
        PottsModel(1)
    # A temperature that a trace hides: no spin is left, and a run says so.
    sim = pk.Simulation(SwendsenWang(IsingModel(), lambda t: 1.0 - t), dt=1.0)
    with pytest.raises(SimulationDiverged):
        pk.run(sim, Spins(1, grid), 3, key=0, progress=False)
    # Weights that are no numbers would draw the first value of all, everywhere.
    even = Spins(1, Grid([4.0, 2.0], (4, 2)))
    for model in (IsingModel(float("nan")), IsingModel(1.0, float("nan")), PottsModel(2, jnp.inf)):
        for update in (SpinHeatBath, SpinMetropolis):
            with pytest.raises(SimulationDiverged):
                pk.run(pk.Simulation(update(model, 2.0), dt=1.0), even, 2, key=0, progress=False)


def test_jackknife_of_a_variance():
    """Of independent normal numbers: variance 4 ± √(2/n)·4."""
    x = np.random.default_rng(1).normal(0, 2, 4000)
    value, error = jackknife(lambda a, b: b - a**2, x, x**2)
    assert abs(value - 4) < 4 * error
    assert np.isclose(error, 4 * np.sqrt(2 / 4000), rtol=0.35)
    with pytest.raises(ParameterError, match="one length"):
        jackknife(lambda a, b: a, x, x[1:])


@pytest.mark.parametrize(
    "update",
    [
        pytest.param(SpinHeatBath, marks=pytest.mark.slow),
        SpinMetropolis,
        pytest.param(SwendsenWang, marks=pytest.mark.slow),
    ],
)
def test_devices_change_no_bit(update, monkeypatch):
    """Emulated devices: clusters pass through several blocks and around the ends."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    model, value = (IsingModel(1.0, 0.02), 1) if update is SwendsenWang else (PottsModel(3), 0)
    grid = Grid(Box([8.0, 12.0], periodic=(True, False)), (8, 12))
    watch = pk.Every(2, energy=pk.quantities.SpinEnergy(), order=pk.quantities.Magnetization())
    sim = pk.Simulation(update(model, 2.2 if value else 0.9), dt=1.0, observers=watch)
    alone = pk.simulate(sim, Spins(value, grid), 6, key=2)
    over = pk.simulate(sim, Spins(value, grid), 6, key=2, devices=(2, 3))
    np.testing.assert_array_equal(alone.state.data, over.state.data)
    for name in ("energy", "order"):
        np.testing.assert_array_equal(alone.frames[name], over.frames[name])
    assert len(np.unique(np.asarray(alone.frames["energy"]))) > 2


@pytest.mark.parametrize("gain", ["coupling", "field"])
def test_members_of_a_sweep_without_clusters_fail(gain):
    grid = Grid([8.0, 8.0], (8, 8))
    model = PottsModel(3, 1.0, 0.5)
    sim = pk.Simulation(
        SwendsenWang(model, 2.0), dt=1.0, observers=pk.Every(5, s=lambda s: s.state.data)
    )
    where = lambda m: getattr(pk.find(m, PottsModel), gain)
    over = pk.SweepAxis(where, [0.5, -0.5], name=gain)
    found = pk.sweep((sim, Spins(0, grid)), 10, over=over, key=0, progress=False)
    np.testing.assert_array_equal(found.ok, [True, False])


def test_averages_refuse_what_says_nothing():
    E, m = np.linspace(-9, -8, 64), np.linspace(0.5, 0.7, 64)
    with pytest.raises(ParameterError, match="temperature must be positive; got 0"):
        spin_averages(E, m, 0.0, num_sites=9)
    with pytest.raises(ShapeError, match=r"\[t\] each; got \(64,\) and \(63,\)"):
        spin_averages(E, m[1:], 2.0, num_sites=9)
