"""Going on from a carry with other parameters than those that made it: forces, derivatives, lists."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk

BEAD = pk.Particles([[1.0, 0.3]], [[0.0, 0.5]])


def trapped(stiffness, dt=0.1, **options):
    return pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(stiffness)), dt=dt, **options)


def quiet(sim, start, steps, **options):
    return pk.run(sim, start, steps, progress=False, **options)


def test_forces_and_derivatives_of_a_carry_are_by_the_parameters_of_now():
    carry = quiet(trapped(1.0), BEAD, 10).carry

    def after(stiffness, start):
        return pk.simulate(trapped(stiffness), start, 3).state.velocity[0]

    # By hand from the state alone, whose forces are computed anew.
    for stiffness in (1.0, 1.7):
        value, slope = jax.jvp(lambda k: after(k, carry), (stiffness,), (1.0,))
        by_hand = jax.jvp(lambda k: after(k, carry.state), (stiffness,), (1.0,))
        np.testing.assert_allclose(value, by_hand[0], rtol=1e-12)
        np.testing.assert_allclose(slope, by_hand[1], rtol=1e-12)
    np.testing.assert_allclose(
        quiet(trapped(1.7), carry, 3).state.velocity[0], after(1.7, carry.state), rtol=1e-12
    )


def test_a_state_that_was_changed_in_a_carry_has_its_own_forces():
    carry = quiet(trapped(1.0), BEAD, 10).carry
    moved = carry.replace(state=carry.state.replace(position=carry.state.position + 0.5))
    for verb in (quiet, pk.simulate):
        found = verb(trapped(1.0), moved, 3).state.position
        np.testing.assert_allclose(found, quiet(trapped(1.0), moved.state, 3).state.position)


def test_a_position_that_was_changed_a_little_has_its_own_force_at_once():
    carry = quiet(trapped(1.0), BEAD, 10).carry
    tiny = 1e-11
    moved = carry.replace(state=carry.state.replace(position=carry.state.position + tiny))

    def change(start, other):
        kicked = (pk.simulate(trapped(1.0), x, 1).state.velocity[0, 0] for x in (start, other))
        return (next(kicked) - next(kicked)) / tiny

    # Half a kick at the start, half at the end.
    expected = -0.05 * (1 + (1 - 0.1**2 / 2))
    np.testing.assert_allclose(change(moved, carry), expected, rtol=1e-3)


def test_going_on_with_the_same_parameters_has_the_same_bits():
    whole, half = quiet(trapped(1.3), BEAD, 20), quiet(trapped(1.3), BEAD, 10)
    for verb in (quiet, pk.simulate):
        assert np.array_equal(
            verb(trapped(1.3), half.carry, 10).state.position, whole.state.position
        )


def flame(compose=lambda method: method, dtype=float):
    """The Kuramoto–Sivashinsky equation by a method that carries Fourier coefficients; after twenty steps."""
    grid = pk.Grid(pk.Box((22.0,)), (32,))
    x = 2 * np.pi * np.arange(32) / 32
    start = pk.Field((np.cos(x) * (1 + np.sin(x))).astype(dtype), grid)
    method = compose(pk.ETDRK4(pk.equations.KuramotoSivashinsky()))
    sim = pk.Simulation(method, dt=0.05)
    return sim, quiet(sim, start, 20).carry


def decayed(method):
    return pk.Strang(pk.SSPRK3(pk.equations.Diffusion(0.1)), method)


@pytest.mark.parametrize("compose", [lambda method: method, decayed], ids=["alone", "composed"])
def test_a_small_change_of_a_field_is_not_lost_in_its_coefficients(compose):
    sim, carry = flame(compose)

    def after(change, start):
        data = carry.state.data.at[5].add(change)
        state = carry.state.replace(data=data)
        start = state if start is None else start.replace(state=state)
        return pk.simulate(sim, start, 10).state.data

    def value_and_slope(start):
        return jax.jit(lambda h: jax.jvp(lambda h: after(h, start), (h,), (jnp.ones(()),)))

    # By a carry and by its state alone: derivatives where nothing has changed, and a change in one cell.
    by_carry, tiny = value_and_slope(carry), 1e-12
    value, slope = by_carry(0.0)
    expected = value_and_slope(None)(0.0)[1]
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-11)
    moved = np.asarray(by_carry(tiny)[0]) - np.asarray(value)
    np.testing.assert_allclose(moved / tiny, slope, atol=0.05)


def test_a_small_change_in_single_precision_is_not_lost():
    sim, carry = flame(dtype=np.float32)
    data = carry.state.data.at[5].add(1e-4)
    found = quiet(sim, carry.replace(state=carry.state.replace(data=data)), 10).state.data
    alone = quiet(sim, carry.state.replace(data=data), 10).state.data
    np.testing.assert_allclose(found, alone, rtol=2e-6, atol=2e-6)
    assert np.max(np.abs(found - quiet(sim, carry, 10).state.data)) > 3e-5


def liquid(cutoff, **options):
    force = pk.Pairwise(pk.LennardJones(), cutoff=cutoff, use_neighbor_list=True, **options)
    observers = pk.Every(10, energy=pk.PotentialEnergy())
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.002, observers=observers)


@pytest.fixture(scope="module")
def atoms():
    position, box = pk.lattice.face_centered_cubic(cells=(4, 4, 4), density=0.8)
    return pk.maxwell_boltzmann(jax.random.key(0), pk.Particles(position, space=box), 0.5)


def test_a_list_of_a_shorter_cutoff_is_refused(atoms):
    carry = quiet(liquid(1.5), atoms, 10).carry
    for verb in (quiet, pk.simulate):
        with pytest.raises(pk.errors.ParameterError, match=r"within 1\.5, .*=2\.5; start from"):
            verb(liquid(2.5), carry, 10)
    with pytest.raises(pk.errors.ParameterError, match="do not leave out the same pairs"):
        quiet(liquid(1.5, exclude=[[0, 1]]), carry, 10)


def test_resuming_with_other_parameters_takes_forces_by_these(tmp_path):
    before = quiet(trapped(1.0), BEAD, 10, to=tmp_path)
    with pytest.warns(UserWarning, match="has changed since"):
        found = quiet(trapped(1.7), BEAD, 12, to=tmp_path, resume="changed")
    expected = quiet(trapped(1.7), before.state, 2).state
    np.testing.assert_allclose(found.state.velocity, expected.velocity, rtol=1e-12)


def test_resuming_with_another_key_draws_from_it(tmp_path):
    walk = pk.Simulation(pk.BAOAB(pk.HarmonicTrap(1.0), temperature=1.0, friction=1.0), dt=0.1)
    two = quiet(walk, BEAD, 2, key=1, to=tmp_path)
    with pytest.warns(UserWarning, match="the random key"):
        found = quiet(walk, BEAD, 4, key=2, to=tmp_path, resume="changed")
    expected = quiet(walk, two.carry.replace(key=jax.random.key(2)), 2)
    assert np.array_equal(found.state.position, expected.state.position)


def recording(*observers):
    return pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.0)), dt=0.1, observers=list(observers))


@pytest.mark.parametrize("verb", [quiet, pk.simulate])
@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            [pk.Average(10, e=pk.KineticEnergy())],
            [pk.Average(10, e=pk.PotentialEnergy())],
            "KineticEnergy",
        ),
        (
            [pk.MeanSquareDisplacement(1, 10)],
            [pk.MeanSquareDisplacement(5, 10)],
            r"interval 1 in the carry, 5 here",
        ),
    ],
)
def test_what_other_observers_have_accumulated_is_refused(verb, before, after, message):
    carry = verb(recording(*before), BEAD, 50).carry
    verb(recording(*before), carry, 50)
    with pytest.raises(pk.errors.ParameterError, match=rf"other observers(.|\n)*{message}"):
        verb(recording(*after), carry, 50)


@pytest.mark.parametrize("verb", [quiet, pk.simulate])
def test_another_dt_lets_time_jump_and_says_so(verb):
    carry = verb(trapped(1.0), BEAD, 10).carry
    with pytest.warns(pk.errors.PhyskitWarning, match=r"come to t = 1, .* at t = 2, .*t0=1\)"):
        verb(trapped(1.0, dt=0.2), carry, 1)
    verb(trapped(1.0, dt=0.2, t0=-1.0), carry, 1)  # the same time
    verb(trapped(1.0, dt=0.2, t0=1.0), carry.state, 1)


@pytest.mark.parametrize("verb", [quiet, pk.simulate])
def test_correlations_do_not_go_on_with_another_dt(verb):
    correlate = [pk.MeanSquareDisplacement(1, 10)]
    carry = verb(trapped(1.0, observers=correlate), BEAD, 10).carry
    with pytest.raises(pk.errors.ParameterError, match=r"other observers(.|\n)*: dt .* 0\.1 in"):
        verb(trapped(1.0, dt=0.2, t0=-1.0, observers=correlate), carry, 10)


def test_a_list_leaves_out_the_pairs_of_now():
    state = pk.Particles(
        [[1.0, 1, 1], [2.0, 1, 1], [1, 2.1, 1], [4, 4, 4]], space=pk.Box([8.0] * 3)
    )
    carry = quiet(liquid(2.5, exclude=[[0, 1]]), state, 10).carry
    other = liquid(2.5, exclude=[[0, 2]])
    expected = quiet(other, carry.state, 10)
    for verb in (quiet, pk.simulate):
        found = verb(other, carry, 10)
        np.testing.assert_allclose(found.state.velocity, expected.state.velocity, rtol=1e-12)
        np.testing.assert_allclose(found.frames["energy"][-1], expected.frames["energy"][-1])
        # A table of other rows cannot take the place of the one that is carried.
        with pytest.raises(pk.errors.ParameterError, match="do not leave out the same pairs"):
            verb(liquid(2.5, exclude=[[0, 1], [0, 2]]), carry, 10)


@pytest.fixture
def emulated_devices(monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")


def row(charged=False):
    """Eight particles in a row, each pair by itself."""
    x = np.stack([0.5 + np.arange(8.0), np.ones(8)], axis=1)
    v = np.stack([0.3 * (-1.0) ** np.arange(8), np.full(8, 0.1)], axis=1)
    more = {"charge": np.ones(8)} if charged else {}
    return pk.Particles(x, v, space=pk.Box((8.0, 8.0)), **more)


@pytest.mark.parametrize(
    ("before", "after"), [pytest.param(None, 2, marks=pytest.mark.slow), (2, None)]
)
def test_on_other_devices_forces_are_those_of_the_time(before, after, emulated_devices):
    force = pk.forces.Modulated(pk.UniformField([0.0, 1.0]), 2.0)
    sim = pk.Simulation(pk.VelocityVerlet(force), dt=0.1)
    expected = quiet(sim, row(charged=True), 15).state.velocity
    carry = quiet(sim, row(charged=True), 14, devices=before).carry
    found = quiet(sim, carry, 1, devices=after).state.velocity
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("devices", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_on_other_devices_a_bath_remembers_its_heat(devices, emulated_devices):
    bath = pk.VelocityRescaling(
        pk.VelocityVerlet(pk.HarmonicTrap(0.1)), temperature=2.0, relaxation_time=0.2
    )
    energy = pk.quantities.ConservedEnergy()
    sim = pk.Simulation(bath, dt=0.1, observers=[pk.Every(1, energy=energy)])
    before = quiet(sim, row(), 6, key=1)
    after = quiet(sim, before.carry, 2, devices=devices)
    np.testing.assert_allclose(after["energy"], before["energy"][-1], rtol=1e-3)


@pytest.mark.parametrize("verb", [pytest.param(quiet, marks=pytest.mark.slow), pk.simulate])
def test_over_devices_changed_bonds_act_at_once(verb, emulated_devices):
    def bonded(pairs):
        return pk.Simulation(pk.VelocityVerlet(pk.HarmonicBonds(pairs, 1.0, 0.5)), dt=0.01)

    still = row().replace(velocity=jnp.zeros((8, 2)))
    # As many steps as later: one program for all.
    carry = quiet(bonded([[0, 1], [2, 3]]), still, 20, devices=2).carry
    other = bonded([[4, 5], [6, 7]])
    found = verb(other, carry, 20, devices=2).state.velocity
    np.testing.assert_allclose(found, verb(other, carry.state, 20).state.velocity, atol=1e-12)


def test_a_cell_of_many_in_single_precision_keeps_its_change():
    grid = pk.Grid([1.0, 1.0], (128, 128))
    field = pk.Field(jnp.full(grid.shape, 300.0, jnp.float32), grid)
    sim = pk.Simulation(pk.ETDRK2(pk.equations.Diffusion(1e-9)), dt=1e-3)
    carry = pk.simulate(sim, field, 1).carry
    data = carry.state.data.at[5, 7].add(0.01)
    after = pk.simulate(sim, carry.replace(state=carry.state.replace(data=data)), 1).state.data
    np.testing.assert_allclose(after[5, 7] - after[5, 8], 0.01, rtol=0.02)


def test_a_weak_force_beside_a_strong_one_is_that_of_now():
    sim = pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.0)), dt=0.01)
    start = pk.Particles(jnp.asarray([[1000.0, 0.0], [0.0, 0.0]], jnp.float32))
    carry = pk.simulate(sim, start, 1).carry
    moved = carry.state.replace(position=carry.state.position.at[1, 0].add(0.1))
    found, expected = (
        pk.simulate(sim, x, 1).state.velocity[1, 0] for x in (carry.replace(state=moved), moved)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4)
