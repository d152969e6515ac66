"""Reactions: exact distributions of the master equation, and the three faces of one network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import chi2, poisson

import physkit as pk
from physkit.core import (
    ComponentError,
    DeclarationError,
    ParameterError,
    RangeError,
    ShapeError,
    StepSizeError,
)
from physkit.integrators import RK4, Gillespie, TauLeaping
from physkit.reactions import (
    Populations,
    RateEquations,
    ReactionNetwork,
    one_step_distribution,
)

BIRTH_AND_DEATH = ReactionNetwork(["0 -> X", "X -> 0"], rates=[10.0, 1.0])
BRUSSELATOR = ReactionNetwork(
    ["0 -> X", "X -> Y", "2 X + Y -> 3 X", "X -> 0"], rates=[1.0, 2.5, 1.0, 1.0]
)


def final_counts(integrator, start, steps, dt, members, seed=0):
    """Copy numbers of independent trajectories."""
    sim = pk.Simulation(integrator, dt=dt)
    run = lambda key: pk.simulate(sim, start, steps, key=key).state.counts
    return np.asarray(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(seed), members)))


def check_distribution(found, probabilities):
    expected = probabilities * len(found)
    often = expected > 5
    observed = np.bincount(found, minlength=len(expected)).astype(float)
    assert len(observed) == len(expected)
    observed = np.append(observed[often], observed[~often].sum())
    expected = np.append(expected[often], max(expected[~often].sum(), 1e-9))
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, often.sum()) > 1e-4, statistic


def test_birth_and_death_is_a_poisson_process_at_every_time():
    """From nothing, at t = 1, cut into four steps: mean and variance 2 · 10 (1 − 1/e) in a volume of 2."""
    found = final_counts(Gillespie(BIRTH_AND_DEATH), Populations([0], 2.0), 4, 0.25, 6000)[:, 0]
    mean = 20 * -np.expm1(-1.0)
    check_distribution(found, poisson.pmf(np.arange(60), mean))
    assert abs(found.var() / mean - 1) < 0.08


def test_pairs_follow_the_master_equation():
    """2A ⇌ B from ten A: the matrix exponential of the six states."""
    network = ReactionNetwork(["2 A -> B", "B -> 2A"], rates=[0.3, 0.5])
    rates = np.zeros((6, 6))
    for b in range(6):
        a = 10 - 2 * b
        for to, speed in ((b + 1, 0.3 / 3.0 * a * (a - 1)), (b - 1, 0.5 * b)):
            if 0 <= to < 6:
                rates[to, b] += speed
                rates[b, b] -= speed
    found = final_counts(Gillespie(network), Populations([10, 0], 3.0), 2, 0.2, 6000, seed=3)
    assert (found.sum(1) + found[:, 1] == 10).all()
    check_distribution(found[:, 1], expm(0.4 * rates)[:, 0])


def test_leaps_keep_mean_and_variance():
    """Birth and death at 400 molecules, and a decay to the last molecule, where leaps turn into events."""
    leaps = TauLeaping(ReactionNetwork(["0 -> X", "X -> 0"], rates=[400.0, 1.0]))
    found = final_counts(leaps, Populations([0]), 10, 0.1, 200)[:, 0]
    mean = 400 * -np.expm1(-1.0)
    assert abs(found.mean() - mean) < 4 * np.sqrt(mean / 200) + 0.01 * mean
    assert abs(found.var() / mean - 1) < 4 * np.sqrt(2 / 200)
    decay = TauLeaping(ReactionNetwork(["X -> 0"], rates=[1.0]))
    found = final_counts(decay, Populations([1000]), 2, 2.0, 100)[:, 0]
    p = np.exp(-4.0)
    assert found.min() >= 0
    assert abs(found.mean() - 1000 * p) < 4 * np.sqrt(1000 * p * (1 - p) / 100) + 0.02 * 1000 * p


def test_one_network_well_stirred_and_in_space():
    """The equations of a network are those written by hand, and have their derivative."""
    grid = pk.Grid([4.0], (8,))
    values = 1 + 0.3 * jax.random.uniform(jax.random.key(0), (2, 8))
    clock = pk.components.Clock.at(pk.core.StepCount.of(0), 0.0, 0.1)
    field = pk.Field(values, grid)
    expected = pk.equations.Brusselator(1.0, 2.5).nonlinear(clock, field)
    found = BRUSSELATOR.nonlinear(clock, field)
    linear = found.data - expected.data
    # What the other leaves to its linear part, if anything, is linear: by hand.
    u, v = values
    hand = jnp.stack([1 - 3.5 * u + u**2 * v, 2.5 * u - u**2 * v])
    np.testing.assert_allclose(found.data, hand, rtol=1e-13)
    assert linear.shape == hand.shape
    np.testing.assert_allclose(
        RateEquations(BRUSSELATOR).rate(clock, values[:, 3]), hand[:, 3], rtol=1e-13
    )

    def end(k):
        network = ReactionNetwork(["2 A -> B"], rates=[k])
        sim = pk.Simulation(RK4(RateEquations(network)), dt=0.01)
        return pk.simulate(sim, jnp.array([2.0, 0.0]), 100).state[0]

    value, slope = jax.value_and_grad(end)(jnp.asarray(0.7))
    exact = lambda k: 2.0 / (1 + 4.0 * k)  # dA/dt = −2 k A²
    np.testing.assert_allclose(value, exact(0.7), rtol=1e-8)
    np.testing.assert_allclose(slope, jax.grad(exact)(0.7), rtol=1e-7)


def test_a_batch_is_its_members_and_a_stop_is_no_change(tmp_path):
    start, sim = Populations([30, 0]), pk.Simulation(Gillespie(BRUSSELATOR), dt=0.2)
    run = lambda key: pk.simulate(sim, start, 3, key=key).state.counts
    keys = jax.random.split(jax.random.key(4), 3)
    np.testing.assert_array_equal(jax.vmap(run)(keys)[2], run(keys[2]))
    whole = pk.run(sim, start, 4, key=1, progress=False).state
    part = pk.run(sim, start, 2, key=1, progress=False).carry
    np.testing.assert_array_equal(pk.run(sim, part, 2, progress=False).state.counts, whole.counts)


def test_mistakes_are_explained():
    with pytest.raises(DeclarationError, match="no number of molecules"):
        ReactionNetwork(["A + -> B"], rates=[1.0])
    with pytest.raises(DeclarationError, match="2 A"):
        ReactionNetwork(["A = B"], rates=[1.0])
    with pytest.raises(ShapeError, match="a rate for each of 1"):
        ReactionNetwork(["A -> B"], rates=[1.0, 2.0])
    with pytest.raises(DeclarationError, match=r"unknown: \['B'\]"):
        ReactionNetwork(["A -> B"], rates=[1.0], species=["A"])
    with pytest.raises(ParameterError, match="rates"):
        ReactionNetwork(["A -> B"], rates=[-1.0])
    with pytest.raises(ComponentError, match="whole numbers"):
        Populations([1.5])
    with pytest.raises(ComponentError, match="counts are from 0"):
        Populations([-1])
    with pytest.raises(DeclarationError, match="reverse are two"):
        ReactionNetwork(["A <-> B"], rates=[1.0])
    with pytest.raises(ParameterError, match="rates must not be negative; got nan"):
        ReactionNetwork(["A -> B"], rates=[float("nan")])
    with pytest.raises(ParameterError, match="volume must be positive"):
        Populations([1], volume=0.0)
    with pytest.raises(ParameterError, match="largest=10 cuts"):
        one_step_distribution(BIRTH_AND_DEATH, 10.0, largest=10)
    smooth = pk.Simulation(RK4(RateEquations(BIRTH_AND_DEATH)), dt=0.1)
    with pytest.raises(ComponentError, match="move concentrations"):
        pk.simulate(smooth, Populations([1]), 1)
    sim = pk.Simulation(Gillespie(BIRTH_AND_DEATH), dt=1.0)
    with pytest.raises(ShapeError, match="the state has 2 counts"):
        pk.simulate(sim, Populations([1, 2]), 1, key=0)
    with pytest.raises(ComponentError, match="Populations"):
        pk.simulate(sim, jnp.array([1]), 1, key=0)
    few = pk.Simulation(Gillespie(BIRTH_AND_DEATH, max_events=3), dt=5.0)
    with pytest.raises(StepSizeError, match="max_events of reactions"):
        pk.run(few, Populations([0]), 2, key=0, progress=False)
    bare = pk.Simulation(RK4(BIRTH_AND_DEATH), dt=0.1)
    with pytest.raises(ComponentError, match=r"an array float.*RateEquations\(network\)"):
        pk.simulate(bare, jnp.array([1.0]), 1)


def test_a_count_that_leaves_the_range_ends_a_run():
    """2³¹ − 1 and one more is −2³¹, where nothing happens any longer."""
    growth = ReactionNetwork(["X -> 2 X"], rates=[1.0])
    for integrator, start, dt in ((TauLeaping, 2_000_000_000, 0.1), (Gillespie, 2**31 - 3, 1e-8)):
        sim = pk.Simulation(integrator(growth), dt=dt)
        with pytest.raises(RangeError, match="copy number"):
            pk.run(sim, Populations([start]), 5, key=0, progress=False)


def test_leaps_of_more_events_than_whole_numbers_hold_are_shortened():
    """10⁹ molecules in balance for five lifetimes: numbers cut off at 2³¹ − 1 would cancel to nothing."""
    start = Populations([10**9], volume=1e9)
    network = ReactionNetwork(["0 -> X", "X -> 0"], rates=[1.0, 1.0])
    counts = final_counts(TauLeaping(network), start, 1, 5.0, 4)[:, 0]
    assert np.all(counts != 10**9)
    assert np.all(abs(counts - 10**9) < 10 * 10**4.5)


# --- exact distributions and ready-made systems --------------------------------------------------------


def test_the_recursion_is_poissons_and_the_null_vector_of_the_master_equation():
    birth = ReactionNetwork(["0 -> X", "X -> 0"], rates=[3.0, 0.5])
    p = one_step_distribution(birth, 2.0, largest=60)
    n = np.arange(61)
    np.testing.assert_allclose(p, poisson.pmf(n, 12.0), atol=1e-13)
    sim, state = pk.systems.schloegl(6.0)
    network = sim.integrator.network
    p = one_step_distribution(network, 6.0, largest=80)
    a = np.asarray(
        jax.vmap(lambda k: network.propensities(k, state.volume))(jnp.arange(81)[:, None])
    )
    flow = np.zeros(81)
    for r, (nu,) in enumerate(network.stoichiometry):
        rate = a[:, r] * p
        rate[-1] = 0 if nu > 0 else rate[-1]
        flow -= rate
        flow += np.roll(rate, nu)
    np.testing.assert_allclose(flow, 0, atol=1e-12)
    with pytest.raises(DeclarationError, match="changes by one"):
        one_step_distribution(ReactionNetwork(["2 X -> 0", "0 -> X"], rates=[1.0, 1.0]), largest=5)
    with pytest.raises(ParameterError, match="nothing is stationary"):
        one_step_distribution(ReactionNetwork(["0 -> X"], rates=[1.0]), largest=5)


def test_the_oregonator_rests_where_gillespie_says():
    sim, state = pk.systems.oregonator(2.0)
    np.testing.assert_array_equal(state.counts, [1000, 2000, 4000])
    rest = jnp.array([500.0, 1000.0, 2000.0])
    rate = sim.integrator.network.concentration_rates(rest)
    np.testing.assert_allclose(rate, 0, atol=1e-9)
