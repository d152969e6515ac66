"""Hard disks and spheres, and hybrid Monte Carlo: detailed balance and exact averages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import CapacityError, CutoffError, DeclarationError, ParameterError
from physkit.integrators import HardSphereMonteCarlo, HybridMonteCarlo
from physkit.integrators._accept_reject import choose, is_accepted


def test_metropolis_rule():
    cost = jnp.asarray([-2.0, 0.0, 0.5, 3.0, jnp.inf, jnp.nan])
    draws = jnp.linspace(0, 1, 4001)[:-1, None]
    share = np.mean(np.asarray(is_accepted(draws, cost[None])), axis=0)
    np.testing.assert_allclose(share, [1, 1, np.exp(-0.5), np.exp(-3), 0, 0], atol=1e-3)
    taken = choose(jnp.asarray([True, False]), jnp.ones((2, 3)), jnp.zeros((2, 3)))
    np.testing.assert_array_equal(np.asarray(taken).sum(axis=1), [3, 0])


# --- hard spheres -----------------------------------------------------------------------------------


def gaps(x, length):
    r = x[:, None] - x[None]
    r = np.linalg.norm(r - length * np.round(r / length), axis=-1)
    return r[np.triu_indices(len(x), 1)]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_spheres_overlap_and_every_one_moves(d):
    cells = {1: 6, 2: 4, 3: 3}[d]
    side = {1: 1.3, 2: 1.25, 3: 1.2}[d]
    x = np.stack(np.meshgrid(*[side * np.arange(cells)] * d), axis=-1).reshape(-1, d)
    frozen = np.arange(len(x)) == 0
    particles = pk.Particles(jnp.asarray(x), space=pk.Box([side * cells] * d), frozen=frozen)
    watch = pk.Every(1, a=pk.quantities.Acceptance(), x=pk.Positions())
    sim = pk.Simulation(HardSphereMonteCarlo(1.0, 0.2), dt=1.0, observers=watch)
    run = pk.run(sim, particles, 40, key=0, progress=False)
    frames = np.asarray(run.frames["x"])
    assert min(gaps(f, side * cells).min() for f in frames) >= 1 - 1e-6
    moved = np.abs(frames[-1] - x).max(axis=1) > 0.01
    np.testing.assert_array_equal(moved, ~frozen)
    acceptance = np.asarray(run.frames["a"])[1:]
    assert 0.2 < acceptance.mean() < 0.9
    assert acceptance.std() > 0


@pytest.mark.slow
def test_two_disks_are_uniform_where_they_do_not_overlap():
    """In a box of 2.5² the distance vector of two disks is uniform outside of the unit circle: detailed balance
    of cells with turns, shifts and rejections, in the smallest checkerboard."""
    L, members, steps = 2.5, 64, 400
    start = pk.Particles(jnp.asarray([[0.3, 0.4], [1.5, 1.6]]), space=pk.Box([L, L]))
    watch = pk.Every(4, x=pk.Positions())
    sim = pk.Simulation(
        HardSphereMonteCarlo(1.0, 0.6, moves=2, cells=(2, 2), slots=5), dt=1.0, observers=watch
    )
    found = pk.sweep((sim, start), steps, replicas=members, key=1, progress=False)
    x = np.asarray(found["x"])[:, 10:]
    r = x[:, :, 0] - x[:, :, 1]
    r -= L * np.round(r / L)
    square = np.sum(r**2, axis=-1)
    area = L**2 - np.pi
    # ⟨r²⟩ over the square without the circle: (L⁴/6 − π/2)/(L² − π).
    expected = (L**4 / 6 - np.pi / 2) / area
    per_member = square.mean(axis=1)
    error = per_member.std(ddof=1) / np.sqrt(members)
    assert error < 0.02
    assert abs(per_member.mean() - expected) < 4 * error
    # The share of distance vectors in the corners, beyond the inscribed circle of the square.
    corners = (square > (L / 2) ** 2).mean(axis=1)
    share = (L**2 - np.pi * (L / 2) ** 2) / area
    assert abs(corners.mean() - share) < 4 * corners.std(ddof=1) / np.sqrt(members)
    # Nothing in the box is special: the first disk is anywhere.
    place = x[:, :, 0].reshape(-1, 2) % L
    assert np.abs(np.exp(2j * np.pi * place / L).mean(axis=0)).max() < 0.04


def test_hard_spheres_say_what_is_wrong():
    box = pk.Box([5.0, 5.0])
    mc = HardSphereMonteCarlo(1.0, 0.1)

    def start(particles, integrator=mc):
        pk.init(pk.Simulation(integrator, dt=1.0), particles, key=0)

    with pytest.raises(ParameterError, match="particles 0 and 1 overlap"):
        start(pk.Particles(jnp.asarray([[0.1, 0.1], [4.2, 0.1]]), space=box))
    with pytest.raises(CutoffError, match="at least two diameters"):
        start(pk.Particles(jnp.ones((1, 2)), space=pk.Box([1.5, 5.0])))
    with pytest.raises(pk.errors.ComponentError, match="periodic"):
        start(pk.Particles(jnp.ones((1, 2))))
    with pytest.raises(ParameterError, match="max_move must be positive"):
        HardSphereMonteCarlo(1.0, 0.0)
    with pytest.raises(pk.errors.ShapeError, match="even numbers of cells"):
        HardSphereMonteCarlo(cells=(3, 4))
    with pytest.raises(CapacityError, match="give cells"):
        jax.eval_shape(lambda p: pk.init(pk.Simulation(mc, dt=1.0), p, key=0), pk.Particles(
            jnp.ones((1, 2)), space=box))  # fmt: skip


# --- hybrid Monte Carlo -----------------------------------------------------------------------------


def quartic(t, particles):
    x = particles.position[:, 0]
    return jnp.sum(x**4 - x**2)


def test_hybrid_monte_carlo_is_exact_at_any_step():
    """Bare velocity Verlet at this dt is off by many errors; the choice makes the average exact. Two masses,
    among them a heavy one that feels the same distribution."""
    T, members = 0.5, 256
    walkers = pk.Particles(jnp.zeros((2, 1)), mass=jnp.asarray([1.0, 4.0]))
    hybrid = HybridMonteCarlo(pk.VelocityVerlet(pk.ExternalEnergy(quartic)), T, steps=3)
    watch = pk.Every(
        1,
        x=pk.Positions(),
        a=pk.quantities.Acceptance(),
        K=pk.KineticEnergy(),
        H=pk.TotalEnergy(),
        E=pk.quantities.ConservedEnergy(),
    )
    sim = pk.Simulation(hybrid, dt=1.2, observers=watch)
    found = pk.sweep((sim, walkers), 300, replicas=members, key=0, progress=False)
    x = np.asarray(found["x"])[:, 20:, :, 0]
    grid = np.linspace(-3, 3, 20001)
    weight = np.exp(-(grid**4 - grid**2) / T)
    for power in (2, 4):
        exact = np.sum(grid**power * weight) / np.sum(weight)
        means = (x**power).mean(axis=1)
        error = means.std(axis=0, ddof=1) / np.sqrt(members)
        assert (np.abs(means.mean(axis=0) - exact) < 4 * error).all()
        assert (error < 0.02 * exact).all()
    # Detailed balance: a trial and its reverse are as frequent.
    for f, g in ((lambda x: x, lambda x: x**3), (lambda x: x**2, lambda x: x**4)):
        one_way = f(x[:, :-1]) * g(x[:, 1:]) - g(x[:, :-1]) * f(x[:, 1:])
        means = one_way.mean(axis=1)
        assert (np.abs(means.mean(axis=0)) < 4 * means.std(axis=0, ddof=1) / np.sqrt(members)).all()
    acceptance = np.asarray(found["a"])[:, 1:]
    assert set(np.unique(acceptance)) == {0.0, 1.0}
    assert 0.5 < acceptance.mean() < 0.95  # a rule that accepts everything is not tested
    K = np.asarray(found["K"])[:, 20:].mean(axis=1)
    assert abs(K.mean() - T) < 4 * K.std(ddof=1) / np.sqrt(members)
    # The bath counts the heat of new velocities: what is left changes where a trial was accepted, only.
    change = np.abs(np.diff(np.asarray(found["E"]), axis=1))
    assert change[acceptance == 0].max() < 1e-5 < change[acceptance == 1].mean()


@pytest.mark.slow
def test_hybrid_monte_carlo_of_a_liquid_keeps_its_lists():
    """Refused trials leave positions and forces as they were, however far the lists went."""
    sites, box = pk.lattice.face_centered_cubic(2, density=0.8)
    force = pk.Pairwise(pk.LennardJones(), cutoff=1.5)
    atoms = pk.Particles(sites, space=box)
    watch = pk.Every(1, x=pk.Positions(), a=pk.quantities.Acceptance(), U=pk.PotentialEnergy())
    sim = pk.Simulation(
        HybridMonteCarlo(pk.VelocityVerlet(force), 1.0, steps=4), dt=0.1, observers=watch
    )
    run = pk.run(sim, atoms, 30, key=0, progress=False)
    x, a = np.asarray(run.frames["x"]), np.asarray(run.frames["a"])[1:]
    stayed = np.abs(np.diff(x, axis=0)).max(axis=(1, 2)) == 0
    np.testing.assert_array_equal(stayed, a == 0)
    assert 0 < a.mean() < 1
    last = pk.Particles(x[-1], space=box)
    fresh = pk.init(pk.Simulation(pk.VelocityVerlet(force), dt=0.1), last)
    np.testing.assert_allclose(run.carry.aux.inner[0][None], fresh.aux[0][None], atol=2e-4)


def test_hybrid_monte_carlo_says_what_is_wrong():
    force = pk.ExternalEnergy(quartic)
    with pytest.raises(DeclarationError, match="reversible trajectory"):
        HybridMonteCarlo(pk.BAOAB(force, 1.0, 1.0), 1.0)
    with pytest.raises(DeclarationError, match="write VelocityVerlet"):
        HybridMonteCarlo(force, 1.0)
    with pytest.raises(ParameterError, match="temperature must be positive"):
        HybridMonteCarlo(pk.VelocityVerlet(force), 0.0)


# --- pressure ---------------------------------------------------------------------------------------


def test_pressure_from_contacts_is_exact_for_a_smooth_curve():
    r = (np.arange(160) + 0.5) * 0.01
    curve = np.where(r > 1, 2.5 - 3.0 * (r - 1) + 2.0 * (r - 1) ** 2, 0.0)
    blocks = curve[None] * np.array([0.98, 1.0, 1.02, 1.0])[:, None]
    weights = np.full((4, 160), 5.0)
    summary = {"r": r, "value": curve, "blocks": blocks, "weights": weights}
    for d, volume in ((1, 2.0), (2, np.pi), (3, 4 * np.pi / 3)):
        found = pk.statistics.hard_sphere_pressure(summary, 0.4, dimension=d)
        assert found.contact == pytest.approx(2.5, rel=1e-9)
        assert found.value == pytest.approx(1 + 0.5 * volume * 0.4 * 2.5)
        assert found.error == pytest.approx((found.value - 1) * np.sqrt(2e-4 / 3), rel=1e-6)
    with pytest.raises(ParameterError, match="more bins"):
        pk.statistics.hard_sphere_pressure(summary, 0.4, reach=0.05)
