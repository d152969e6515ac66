"""Water, polymers and proteins, at reduced size."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount, molecular

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_the_native_structure_has_the_energy_of_its_contacts",
    "test_a_melt_starts_as_chains_without_overlaps",
    "test_wrong_systems_are_named",
    "test_correction_of_a_finite_cube",
)
CLOCK = Clock.at(StepCount.of(0), 0.0, 1.0)


def test_the_native_structure_has_the_energy_of_its_contacts():
    sim, chain = pk.systems.go_model()
    force = sim.integrator.force
    terms = jax.jit(lambda s: [t.energy(CLOCK, s, t.init(s)) for t in force.terms])(chain)
    *bonded, contacts, others = (float(x) for x in terms)
    count = len(pk.find(force, "contacts").tuples.places)
    assert 15 < count < 60
    np.testing.assert_allclose(bonded, 0, atol=1e-4)
    assert contacts == pytest.approx(-count, rel=1e-5)
    assert 0 <= others < 0.1 * count
    steps = np.linalg.norm(np.diff(pk.systems.beta_hairpin(), axis=0), axis=1)
    np.testing.assert_allclose(steps, 3.8, atol=0.5)


def test_the_helices_of_a_trp_cage_are_ideal_and_its_prolines_near_tryptophan():
    x = pk.systems.trp_cage()
    distance = np.linalg.norm(x[:, None] - x[None], axis=-1)
    np.testing.assert_allclose(np.diag(distance, 1), 3.8, atol=0.03)
    along = x[5:9].mean(axis=0) - x[1:5].mean(axis=0)
    assert np.linalg.norm(along) / 4 == pytest.approx(1.5, abs=0.1)  # rise of an α-helix, Å
    np.testing.assert_allclose(np.diag(distance, 3)[15:], 9.1, atol=0.3)  # three of polyproline II
    assert np.all(distance[5, [11, 16, 17, 18]] < 8)
    assert np.min(distance[np.triu_indices(20, 3)]) > 4.6
    # Left-handed ones would be the mirror image, which all distances agree with.
    u, v, w = np.diff(x[2:6], axis=0)
    assert np.dot(np.cross(u, v), w) > 0


@pytest.mark.slow
@pytest.mark.parametrize("native", [pk.systems.beta_hairpin, pk.systems.trp_cage])
def test_a_chain_folds_when_it_is_cold_and_unfolds_when_it_is_hot(native):
    sim, chain = pk.systems.go_model(native(), temperature=2.0)
    hot = pk.run(sim, chain, 20_000, key=0, progress=False)
    assert np.mean(hot["contacts"][-50:]) < 0.5
    cold, _ = pk.systems.go_model(native(), temperature=0.35)
    folded = pk.run(cold, hot.state, 100_000, key=1, progress=False)
    assert np.mean(folded["contacts"][-50:]) > 0.8


def test_a_melt_starts_as_chains_without_overlaps():
    _, melt = pk.systems.kremer_grest_melt(10, cells=(5, 4, 6))
    spacing = 0.85 ** (-1 / 3)
    x = np.asarray(melt.position, float)
    np.testing.assert_allclose(np.linalg.norm(np.diff(x, axis=0), axis=1), spacing, rtol=1e-5)
    assert len(np.unique(np.round(x / spacing * 2), axis=0)) == 120
    assert 120 / float(melt.space.volume) == pytest.approx(0.85)


def test_one_entry_of_a_table_counts_half():
    """Pairs depend on the mean of ε_ab and ε_ba, so that a derivative by one of them is one."""
    sim, mixture = pk.systems.kob_andersen(4)
    noise = 0.05 * jax.random.normal(jax.random.key(1), mixture.position.shape)
    mixture = mixture.replace(position=mixture.position + noise.astype(mixture.position.dtype))
    assert np.bincount(mixture.species).tolist() == [205, 51]
    (force,), clock = sim.integrator.force.terms, Clock.at(StepCount.of(0), 0.0, 1.0)

    @jax.jit
    def pull(epsilon):
        changed = eqx.tree_at(lambda f: f.potential.epsilon, force, epsilon)
        pulls = changed(clock, mixture, changed.init(mixture))[0][:, 0]
        return jnp.sum(jnp.where(mixture.species == 1, pulls, 0))

    epsilon, step = force.potential.epsilon, jnp.array([[0.0, 1e-3], [0.0, 0.0]])
    numerical = (pull(epsilon + step) - pull(epsilon - step)) / 2e-3
    assert numerical == pytest.approx(float(jax.grad(pull)(epsilon)[0, 1]), rel=1e-7)
    assert numerical == pytest.approx(float(jax.grad(pull)(epsilon)[1, 0]), rel=1e-7)


@pytest.mark.slow
def test_bonds_and_pressure_of_a_melt():
    sim, melt = pk.systems.kremer_grest_melt(10)
    done = pk.run(sim, melt, 4000, key=0, progress=False)
    chains = done["chains"]
    half = slice(20, None)
    assert np.mean(chains["bond"][half]) == pytest.approx(0.967, abs=0.006)
    assert np.mean(done["pressure"][half]) == pytest.approx(5.0, abs=0.4)


@pytest.mark.slow
def test_water_melts_and_has_its_structure():
    """64 molecules for 10 ps: too few for the density, enough for the first neighbors."""
    kelvin = molecular.kelvin
    sim, water = pk.systems.water_box(4, cutoff=0.6, dt=0.002)
    liquid = pk.systems.melt_water(sim, water, 4000, key=jax.random.key(0), progress=False)
    momentum = pk.particles.total_momentum(liquid)
    np.testing.assert_allclose(momentum, 0, atol=1e-3)  # a thermal one is 50
    done = pk.run(sim, liquid, 3000, key=1, progress=False)
    g = done["oxygen_oxygen"]
    assert 0.27 < g["r"][np.argmax(g["value"])] < 0.285
    assert 2.5 < np.max(g["value"]) < 3.6
    assert np.mean(done["kelvin"]) == pytest.approx(298, abs=25)
    assert float(sim.integrator.temperature) == pytest.approx(298 * kelvin)


@pytest.mark.slow
def test_the_energy_of_water_models_by_three_sums():
    """U = q² C + 4 ε (σ¹² A − σ⁶ B) and a tail: what reweighting for other charges and σ rests on."""
    cutoff, n = 0.4, 27
    sim, water = pk.systems.water_box(3, cutoff=cutoff)
    force = pk.find(sim, pk.ParticleMeshEwald).for_start(water)
    model = pk.systems.WATER_MODELS["SPC/E"]

    @jax.jit
    def energy(scale, sigma):
        sigmas = jnp.asarray([[1.0, 0.0], [0.0, 0.0]]) * (sigma - 1) + 1
        other = eqx.tree_at(lambda f: pk.find(f, pk.LennardJones).sigma, force, sigmas)
        state = water.replace(charge=scale * water.charge)
        return other.energy(CLOCK, state, other.init(state))

    oxygens = water.position[::3]
    r = np.asarray(water.space.displacement(oxygens[:, None], oxygens[None]))
    r = np.linalg.norm(r, axis=-1)[np.triu_indices(n, 1)]
    r, volume = r[r < cutoff], float(water.space.volume)

    def dispersion(sigma):
        tail = 8 / 9 * np.pi * n**2 / volume * (sigma**12 / cutoff**9 - 3 * sigma**6 / cutoff**3)
        return model.epsilon * (4 * np.sum((sigma / r) ** 12 - (sigma / r) ** 6) + tail)

    charges = float(energy(1.0, model.sigma)) - dispersion(model.sigma)
    for scale, sigma in ((1.03, 0.31), (0.9, 0.33)):
        expected = scale**2 * charges + dispersion(sigma)
        assert float(energy(scale, sigma)) == pytest.approx(expected, rel=1e-9)


def test_correction_of_a_finite_cube():
    """1.866 nm, the cube of 216 molecules, with 0.73 mPa s: 0.45e-5 cm²/s."""
    found = pk.systems.finite_size_correction(1.866, 298 * molecular.kelvin, 0.73 * 602.214)
    assert float(found) * 1e-2 == pytest.approx(0.4547e-5, rel=2e-3)


def test_wrong_systems_are_named():
    with pytest.raises(pk.errors.ParameterError, match="SPC/E"):
        pk.systems.water_box(3, model="TIP9P")
    with pytest.raises(pk.errors.ParameterError, match="chains of 7 beads"):
        pk.systems.kremer_grest_melt(7)
    with pytest.raises(pk.errors.ShapeError, match="at least 5 residues"):
        pk.systems.go_model(jnp.zeros((4, 3)))
