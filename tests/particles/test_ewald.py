"""Ewald sums: lattices, errors, exclusions, net charges, slabs, units."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Fault, cast_floats
from physkit.particles.forces import Ewald, SpecialPairs
from tests.evaluate_force import CLOCK, evaluate
from tests.particles.ewald_by_hand import exact_values

energy_of = jax.jit(lambda force, state: force.energy(CLOCK, state))
TILTED = [[5.0, 0.0, 0.0], [1.0, 5.0, 0.0], [-1.0, 0.7, 5.0]]


def charges(space=None, n=40):
    """`n` charges at random places, neutral together."""
    rng = np.random.default_rng(0)
    x, q = rng.uniform(0, 5, (n, 3)), rng.normal(size=n)
    return pk.Particles(x, charge=q - np.mean(q), space=space or pk.Box([5.0] * 3))


@pytest.mark.parametrize(
    "space",
    [pytest.param(pk.Box([5.0] * 3), marks=pytest.mark.slow), pk.Triclinic(TILTED)],
    ids=["box", "tilted"],
)
def test_the_error_is_below_the_tolerance(space):
    state = charges(space)
    exact, energy, virial = exact_values(state)
    unit = float(np.mean(np.asarray(state.charge) ** 2) * (40 / 125) ** (2 / 3))
    # Each is another program: in the tilted box, a part of the fast suite, one is enough.
    cases = [(2.3, 1e-5)]
    if isinstance(space, pk.Box):
        cases.append((1.8, 1e-3))
        force, found, found_virial = evaluate(Ewald(1.6, 1e-12), state)
        # A sum of powers −1 of lengths: Euler's theorem.
        np.testing.assert_allclose(np.trace(found_virial), found, rtol=1e-10)
        np.testing.assert_allclose(found, energy, rtol=1e-10)
        np.testing.assert_allclose(force, exact, atol=1e-10 * unit)
    for cutoff, tolerance in cases:
        force, found, found_virial = evaluate(Ewald(cutoff, tolerance), state)
        np.testing.assert_allclose(np.sum(force, axis=0), 0, atol=1e-12 * np.max(np.abs(exact)))
        size = np.max(np.abs(virial))
        np.testing.assert_allclose(found_virial, virial, atol=10 * tolerance * size)
        error = np.sqrt(np.mean(np.sum((force - exact) ** 2, axis=1))) / unit
        assert tolerance / 30 < error < tolerance
        assert abs(found / energy - 1) < 10 * tolerance


def test_excluded_pairs_keep_their_other_images():
    """Two opposite charges that do not see each other still see all images of both."""
    state = pk.Particles(
        [[0.1, 0.2, 0.3], [1.0, 0.1, -0.2]], charge=[1.0, -1.0], space=pk.Box([5.0] * 3)
    )
    r = float(np.linalg.norm([0.9, -0.1, -0.5]))
    _, bonded, virial = evaluate(Ewald(2.3, 1e-10, exclude=[[0, 1]]), state)
    free = float(energy_of(Ewald(2.3, 1e-10).for_start(state), state))
    assert bonded == pytest.approx(free + 1 / r, abs=1e-9)
    np.testing.assert_allclose(np.trace(virial), bonded, atol=1e-8)


@pytest.mark.slow
def test_a_pair_that_interacts_by_half_is_excluded_and_added_again():
    state = pk.Particles(
        [[0.1, 0.2, 0.3], [1.0, 0.1, -0.2]], charge=[1.0, -1.0], space=pk.Box([5.0] * 3)
    )
    r = float(np.linalg.norm([0.9, -0.1, -0.5]))
    _, free, _ = evaluate(Ewald(2.3, 1e-10), state)
    half = Ewald(2.3, 1e-10, exclude=[[0, 1]]) + SpecialPairs([[0, 1]], pk.Coulomb(), 0.5)
    total = sum(float(evaluate(term, state)[1]) for term in half.terms)
    assert total == pytest.approx(free + 0.5 / r, abs=1e-9)


def test_a_net_charge_is_named_or_neutralized():
    state = charges()
    state = state.replace(charge=jnp.asarray(state.charge) + 0.1)
    with pytest.raises(pk.errors.ParameterError, match="charges add up to 4"):
        Ewald(2.3).init(state)
    # Charges that a trace hides.
    init = jax.jit(lambda state: Ewald(2.3, waves=3).init(state).faults.bits)
    assert Fault(int(init(state))) == Fault.NET_CHARGE
    assert Fault(int(init(charges()))) == Fault(0)
    # One charge in its own background: the energy of a simple cubic Wigner lattice.
    one = pk.Particles([[0.3, 0.1, 0.2]], charge=2.0, space=pk.Box([3.0] * 3))
    _, energy, _ = evaluate(Ewald(1.4, 1e-12, background=True), one)
    assert energy == pytest.approx(-2.837297479480619 * 2**2 / (2 * 3.0), rel=1e-10)


@pytest.mark.slow
def test_a_slab_has_no_images_along_its_open_axis():
    """Slabs three heights apart against slabs twelve heights apart."""
    rng = np.random.default_rng(1)
    x, q = rng.uniform(0.2, 1.8, (6, 3)), np.array([1.0, -1.0, 1.0, -1.0, 0.7, -0.4])
    x[:3, 2] += 1.0
    state = pk.Particles(x, charge=q, space=pk.Box([2.0, 2.0, 3.0], (True, True, False)))
    # With a net charge, and without.
    force, _, _ = evaluate(Ewald(0.99, 1e-8, slab=3.0, background=True), state)
    far, _, _ = evaluate(Ewald(0.99, 1e-8, slab=12.0, background=True), state)
    np.testing.assert_allclose(force, far, atol=2e-6 * np.max(np.abs(far)))
    neutral = state.replace(charge=jnp.asarray(q - np.mean(q)))
    force, energy, virial = evaluate(Ewald(0.99, 1e-8, slab=3.0), neutral)
    far, of_far, virial_far = evaluate(Ewald(0.99, 1e-8, slab=12.0), neutral)
    np.testing.assert_allclose(force, far, atol=2e-6 * np.max(np.abs(far)))
    np.testing.assert_allclose(virial, virial_far, atol=2e-6 * np.max(np.abs(virial_far)))
    assert energy == pytest.approx(of_far, rel=1e-6)


def test_derivatives_by_charges_and_box():
    """The potential of each charge, and the pressure: Σ q φ = 2 U = 2 tr W."""
    state = charges(pk.Triclinic(TILTED), 12)
    force = Ewald(2.2, 1e-9).for_start(state)

    @jax.jit
    def slopes(charge, vectors):
        scaled = jnp.matmul(state.position, jnp.linalg.inv(state.space.vectors))

        def energy(charge, vectors):
            space = pk.Triclinic(vectors)
            space = jax.tree.unflatten(jax.tree.structure(state.space), jax.tree.leaves(space))
            moved = state.replace(position=scaled @ vectors, charge=charge, space=space)
            return force.energy(CLOCK, moved)

        return energy(charge, vectors), jax.grad(energy, (0, 1))(charge, vectors)

    energy, (potential, stress) = slopes(state.charge, state.space.vectors)
    np.testing.assert_allclose(potential @ state.charge, 2 * energy, rtol=1e-8)
    np.testing.assert_allclose(jnp.sum(stress * state.space.vectors), -energy, rtol=1e-7)


@pytest.mark.slow
def test_si_units_in_single_precision():
    state = charges()
    k, e, angstrom = 8.9875517923e9, 1.602176634e-19, 1e-10
    force, energy, _ = evaluate(Ewald(2.3, 1e-5), state)
    small = pk.Particles(
        angstrom * state.position, charge=e * state.charge, space=pk.Box([5.0 * angstrom] * 3)
    )
    in_si = Ewald(2.3 * angstrom, 1e-5, coulomb_constant=k)
    found, in_joule, _ = evaluate(*cast_floats((in_si, small), jnp.float32))
    unit = k * e**2 / angstrom
    assert in_joule / unit == pytest.approx(energy, rel=1e-5)
    np.testing.assert_allclose(found / (unit / angstrom), force, atol=1e-5 * np.max(np.abs(force)))


@pytest.mark.slow
def test_many_charges_go_block_by_block():
    """The blocks of a sum over many charges against one block."""
    from physkit.particles.forces.electrostatics import _wave_sums

    rng = np.random.default_rng(0)
    x, q = jnp.asarray(rng.random((70, 3))), jnp.asarray(rng.normal(size=70))
    w = jnp.asarray(rng.normal(size=(2, 5, 7, 2)))
    counts = (2, 3, 1)
    turns = np.einsum("pqrk,nk->npqr", _modes(counts), np.asarray(x))
    expected = np.einsum("n,npqr->pqr", np.asarray(q), np.exp(2j * np.pi * turns))

    def both(x):
        factors = _wave_sums.structure_factors(x, q, counts)
        return factors, _wave_sums.slopes_by_fraction(w, x, q, counts)

    factors, slopes = map(np.asarray, both(x))
    np.testing.assert_allclose(factors[0] + 1j * factors[1], expected, atol=1e-11)
    gradient = jax.grad(lambda x: jnp.sum(w * _wave_sums.structure_factors(x, q, counts)))
    np.testing.assert_allclose(slopes, gradient(x), atol=1e-10)
    whole, _wave_sums._BLOCK = _wave_sums._BLOCK, 70 * 16
    try:
        parts = both(x)
    finally:
        _wave_sums._BLOCK = whole
    for one, other in zip((factors, slopes), parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)


def _modes(counts):
    a, b, c = counts
    ranges = (range(-a, a + 1), range(-b, b + 1), range(c + 1))
    return np.array(list(itertools.product(*ranges))).reshape(2 * a + 1, 2 * b + 1, c + 1, 3)


@pytest.mark.slow
def test_other_forces_share_the_pass_over_near_pairs():
    """As the sum of both: forces, energy, virial, derivatives by tables and charges; names are kept."""
    state = charges().replace(species=jnp.arange(40) % 2)
    wells = pk.LennardJones([[0.2, 0.1], [0.1, 0.0]], [[0.5, 0.6], [0.6, 1.0]])
    excluded = [[0, 1], [2, 1], [5, 30]]
    near = pk.Pairwise(wells, 1.9, truncation="plain", tail=True)
    switched = pk.Pairwise(pk.potentials.SoftSphere(0.1, 0.4), 1.9, truncation="switch")
    apart = (
        pk.Pairwise(wells, 1.9, truncation="plain", tail=True, exclude=excluded),
        pk.Pairwise(pk.potentials.SoftSphere(0.1, 0.4), 1.9, truncation="switch", exclude=excluded),
        Ewald(1.9, 1e-3, exclude=excluded, coulomb_constant=1.3, waves=4),
    )
    one = Ewald(
        1.9,
        1e-3,
        short_range=near.named("wells") + switched,
        exclude=excluded,
        coulomb_constant=1.3,
        waves=4,
    )
    assert pk.find(one, "wells").tail

    def values(forces, epsilon, charge):
        shifted = state.replace(charge=charge)
        forces = eqx.tree_at(lambda f: pk.find(f, pk.LennardJones).epsilon, forces, epsilon)
        energy = sum(f.energy(CLOCK, shifted) for f in forces)
        # Half of each pair's energy, without what is beyond the cutoff.
        each = sum(f.particle_energies(CLOCK, shifted) for f in forces)
        return energy, (each, sum(f.force(CLOCK, shifted) for f in forces),
                        sum(f.virial(CLOCK, shifted) for f in forces))  # fmt: skip

    of_forces = jax.jit(jax.value_and_grad(values, (1, 2), has_aux=True))
    expected = of_forces(apart, wells.epsilon, state.charge)
    found = of_forces((one,), wells.epsilon, state.charge)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), found, expected
    )
    assert np.abs(found[1][0]).min() > 0.01
    for short_range, text in (
        (pk.Pairwise(wells, 1.8), "cutoff 1.9"),
        (pk.Pairwise(pk.Coulomb(), 1.9, truncation="plain"), "without charges"),
        (pk.Pairwise(wells, 1.9, exclude=[[0, 1]]), "excludes other pairs"),
        (pk.Pairwise(wells, 1.9, exact=True), "no exact sums"),
    ):
        with pytest.raises(pk.errors.ParameterError, match=text):
            Ewald(1.9, short_range=short_range, exclude=excluded)


def test_wrong_input_is_named():
    errors, state = pk.errors, charges()
    with pytest.raises(errors.ParameterError, match="give Particles"):
        Ewald(2.0).init(state.replace(charge=None))
    with pytest.raises(errors.CutoffError, match="image limit"):
        Ewald(2.6).init(state)
    with pytest.raises(errors.ParameterError, match="slab=3"):
        Ewald(2.0).init(state.replace(space=pk.Box([5.0] * 3, (True, True, False))))
    with pytest.raises(errors.ParameterError, match="periodic along"):
        Ewald(2.0, slab=3.0).init(state)
    with pytest.raises(errors.ShapeError, match="three dimensions"):
        Ewald(2.0).init(pk.Particles([[0.0, 0.0]], charge=1.0, space=pk.Box([5.0, 5.0])))
    with pytest.raises(errors.ParameterError, match="for_start"):
        jax.jit(lambda state: Ewald(2.0).init(state))(state)
    with pytest.raises(errors.ParameterError, match="tolerance"):
        Ewald(2.0, 0.0)
    with pytest.raises(errors.ParameterError, match="particle 99"):
        Ewald(2.0, exclude=[[0, 99]]).init(state)
    with pytest.raises(errors.ParameterError, match="waves"):
        Ewald(2.0, waves=0)


def test_cheap_alternatives_end_at_their_cutoff():
    """Reaction field, against its formula; and its own cutoff, which Pairwise must have, too."""
    field = pk.potentials.ReactionField(2.0, 78.3, 1.5)
    kappa = (78.3 - 1) / (2 * 78.3 + 1) / 2.0**3
    r = np.array([0.7, 1.3, 2.0])
    expected = 1.5 * (1 / r + kappa * r**2 - 1 / 2.0 - kappa * 2.0**2)
    np.testing.assert_allclose(field.energy(jnp.asarray(r)), expected, atol=1e-12)
    conductor = pk.potentials.ReactionField(2.0)
    np.testing.assert_allclose(conductor.force_over_distance(jnp.asarray(4.0)), 0, atol=1e-15)
    pk.Pairwise(field, 2.0, truncation="plain")
    for cutoff, truncation in ((1.9, "plain"), (2.0, "shifted-force"), (None, "plain")):
        with pytest.raises(pk.errors.ParameterError, match="ends at its own cutoff"):
            pk.Pairwise(field, cutoff, truncation=truncation)


@pytest.mark.slow
def test_energies_of_charges_add_up():
    """An ion of rock salt has half the energy of a pair; in a liquid they add up to all of the energy."""
    salt = pk.Particles(
        np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), -1).reshape(-1, 3),
        charge=np.where(np.indices((4, 4, 4)).sum(0) % 2, -1.0, 1.0).ravel(),
        space=pk.Box([4.0] * 3),
    )
    each = jax.jit(lambda f, p: (f.particle_energies(CLOCK, p), f.energy(CLOCK, p)))
    force = Ewald(1.9, 1e-8, waves=14)
    np.testing.assert_allclose(each(force, salt)[0], -1.747564594633 / 2, rtol=1e-7)
    shifted = salt.replace(
        position=salt.position + 0.1 * np.random.default_rng(0).normal(size=salt.position.shape),
        charge=salt.charge + 0.02,
    )
    force = Ewald(1.9, 1e-8, waves=14, background=True, exclude=[[0, 1], [2, 3]])
    energies, total = each(force, shifted)
    np.testing.assert_allclose(jnp.sum(energies), total, rtol=1e-12)
    with pytest.raises(pk.errors.NoVirialError, match="Ewald has no heat flux: waves"):
        force.heat_flux(CLOCK, salt)


def test_the_force_in_float32_is_that_of_clouds_at_all_distances():
    r = np.linspace(0.02, 8.0, 400)
    r2 = jnp.asarray(r * r)
    double = pk.potentials.DampedCoulomb(1.0).force_over_distance
    single = cast_floats(pk.potentials.DampedCoulomb(1.0), jnp.float32).force_over_distance
    value_and_slope = lambda f, r2: [
        np.asarray(x, float) for x in jax.jit(jax.vmap(jax.value_and_grad(f)))(r2)
    ]
    found = value_and_slope(single, r2.astype(jnp.float32))
    exact = value_and_slope(double, r2)
    # Beside those of bare charges, 1 and 3/2.
    np.testing.assert_allclose(found[0] * r**3, exact[0] * r**3, atol=6e-7)
    # What is left out beyond x = 4 has a slope of 9e-6.
    np.testing.assert_allclose(found[1] * r**5, exact[1] * r**5, atol=1e-5)
    far = jax.value_and_grad(single)(jnp.float32(1e10))
    np.testing.assert_array_equal(far, (0.0, 0.0))


def test_a_pair_that_is_excluded_twice_is_excluded_once():
    state = charges(n=6)
    # One number for each of them is enough: all of them go by the same table of pairs.
    once, twice = (
        energy_of(Ewald(2.3, 1e-6, exclude=pairs).for_start(state), state)
        for pairs in ([[0, 1], [0, 2]], [[2, 0], [1, 0], [0, 1]])
    )
    np.testing.assert_allclose(once, twice, rtol=1e-12)


@pytest.mark.parametrize(
    ("made", "others", "is_run"),  # a mesh compiles for long: that it is taken is seen by its trace
    [
        (
            lambda: Ewald(2.3, 1e-1),
            {
                "waves for .*0.1, .*1e-06; start from": lambda: Ewald(2.3, 1e-6),
                r"cutoff=2\.3 .*cutoff=1\.9": lambda: Ewald(1.9, 1e-1),
            },
            True,
        ),
        (lambda: Ewald(2.3, waves=3), {r"waves=\(5\.0, ": lambda: Ewald(2.3, waves=5)}, True),
        (
            lambda: pk.ParticleMeshEwald(2.3, 1e-2, order=4),
            {
                "mesh for .*0.01.*, .*1e-05": lambda: pk.ParticleMeshEwald(2.3, 1e-5, order=4),
                "mesh for .*order=4, .*order=6": lambda: pk.ParticleMeshEwald(2.3, 1e-2, order=6),
            },
            False,
        ),
    ],
    ids=["tolerance", "waves", "mesh"],
)
def test_a_carry_of_another_resolution_is_refused(made, others, is_run):
    state = charges(n=8)

    def sim(force):
        return pk.Simulation(pk.VelocityVerlet(force), dt=1e-3)

    carry = pk.init(sim(made()), state)
    for says, goes_on in others.items():
        with pytest.raises(pk.errors.ParameterError, match=says):
            pk.simulate(sim(goes_on()), carry, 1)
    # With the same one it goes on.
    go_on = lambda carry: pk.simulate(sim(made()), carry, 1).state.position
    if not is_run:
        assert jax.eval_shape(go_on, carry).shape == (8, 3)
        return
    assert np.all(np.isfinite(go_on(carry)))
