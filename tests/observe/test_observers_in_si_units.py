"""What is observed of atoms in SI units and single precision: error bars are squares, of 10⁻²² J and 10⁻²⁰ m².

Each output, in units of its own largest number, is that in units of one.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit import observers, quantities, statistics
from physkit.observe.statistics._block_average import StreamingBlocks
from physkit.observe.statistics._compensated_sums import Moments
from physkit.observe.statistics._curve_mean import weighted_mean
from physkit.testing import Units, check_units

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_error_bars_of_a_stream",
    "test_dielectric_constant",
    "test_a_variance_beyond_the_precision_is_no_number",
    "test_blocks_of_curves",
    "test_wavevectors_are_sorted_by_length",
)


def atoms(u):
    rng = np.random.default_rng(0)
    sites = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), -1).reshape(-1, 3)
    x, v = 1.15 * sites + 0.03 * rng.normal(size=sites.shape), rng.normal(size=sites.shape)
    charge = np.where(np.arange(27) % 2, 1.0, -1.0) * u.charge
    box = pk.Box(np.full(3, 3.45 * u.length))
    return pk.Particles(
        x * u.length, velocity=v * u.speed, mass=np.full(27, u.mass), charge=charge, space=box
    )


def own_unit(x):
    """`x` by its largest number; and which are none: lags that a run does not reach."""
    numbers = np.nan_to_num(x)
    return numbers / (np.max(np.abs(numbers)) or 1), np.isnan(x)


QUANTITIES = {
    "potential": quantities.PotentialEnergy,
    "kinetic": quantities.KineticEnergy,
    "temperature": quantities.Temperature,
    "momentum": quantities.Momentum,
    "center": quantities.CenterOfMass,
    "turning": quantities.AngularMomentum,
    "pressure": quantities.Pressure,
    "stress": quantities.StressTensor,
    "heat": quantities.HeatFlux,
    "dipole": quantities.DipoleMoment,
    "each": quantities.ParticleEnergies,
}
OBSERVERS = {
    "every": lambda u: observers.Every(4, **{name: make() for name, make in QUANTITIES.items()}),
    "displacement": lambda u: observers.MeanSquareDisplacement(2, 5),
    "velocities": lambda u: observers.VelocityAutocorrelation(2, 5),
    "distances": lambda u: observers.RadialDistribution(4, 1.7 * u.length, 6),
    "structure": lambda u: observers.StructureFactor(4, [[1, 0, 0], [1, 1, 0]]),
}


def observe(u, name):
    force = pk.Pairwise(pk.LennardJones(u.energy, u.length), 1.7 * u.length)
    observer = OBSERVERS[name](u)
    sim = pk.Simulation(pk.VelocityVerlet(force), 0.003 * u.time, observers=(observer,))
    done = pk.run(sim, atoms(u), 40, progress=False)
    return jax.tree.map(own_unit, {"frames": {**done.frames}, "summary": {**done.summary}})


@pytest.mark.parametrize("name", OBSERVERS)
def test_observers(name):
    check_units(
        functools.partial(observe, name=name), precisions=(np.float32,), exact=False, relative=5e-3
    )


def energies(u):
    """A correlated series, of a mean that is large beside how it varies."""
    noise = np.random.default_rng(1).normal(size=64)
    return (20 + np.convolve(noise, np.ones(5) / 5, "same")) * u.energy


def test_error_bars_of_a_stream():
    """Squares of energies in joules are beyond single precision."""

    def errors(u):
        series = jnp.asarray(energies(u), jnp.float32)
        blocks = StreamingBlocks.zero((), series.dtype)
        add = lambda so_far, x: (so_far.plus(x), None)
        found = jax.jit(lambda x: jax.lax.scan(add, blocks, x)[0].result())(series)
        assert found.error > 0
        return [x / u.energy for x in (found.mean, found.error, found.errors, found.uncertainties)]

    check_units(errors, precisions=(np.float32,), relative=1e-3)


def test_a_variance_beyond_the_precision_is_no_number():
    def variance(series):
        moments = Moments.zero((), series.dtype)
        for x in series:
            moments = moments.plus(x, jnp.array(True))
        return moments.variance

    series = jnp.asarray(energies(Units(1e-10, 1e-12, 1e-26))[:4], jnp.float32)
    assert np.isnan(variance(series))
    assert variance(jnp.broadcast_to(series[0], 4)) == 0


def test_blocks_of_curves():
    def curve(u):
        values = np.random.default_rng(2).uniform(1, 2, (12, 3)) * np.array([1e-3, 1, 10])
        mean, error = weighted_mean(jnp.asarray(values * u.length**2), jnp.ones((12, 3)))
        return mean / u.length**2, error / u.length**2

    check_units(curve, precisions=(np.float32,), exact=False, relative=1e-5)


def test_dielectric_constant():
    def constant(u):
        dipoles = np.random.default_rng(3).normal(size=(64, 3)) * u.charge * u.length
        coulomb = 2.0 * u.energy * u.length / u.charge**2

        def of(dipoles, volume, temperature, coulomb):
            return statistics.dielectric_constant(dipoles, volume, temperature, coulomb)[:]

        numbers = [jnp.asarray(x) for x in (dipoles, 30.0 * u.volume, u.energy, coulomb)]
        slopes = jax.jacrev(of, (0, 1, 2, 3))(*numbers)
        return of(*numbers), [
            [np.asarray(slope) * np.asarray(x) for slope, x in zip(row, numbers, strict=True)]
            for row in slopes
        ]

    check_units(constant, precisions=(np.float32,), exact=False, relative=1e-4)


def test_wavevectors_are_sorted_by_length():
    def sorted_integers(u):
        particles = pk.Particles([[0.0] * 3], space=pk.Box(np.array([3.0, 4.0, 5.0]) * u.length))
        return np.array(statistics.wavevectors_within(particles, 4.0 / u.length))

    check_units(sorted_integers)
