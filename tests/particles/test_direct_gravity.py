"""Direct gravity: against plain sums, its derivatives, precision, and a published orbit."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, Fault, ParameterError, StepCount
from physkit.geometry import Box
from physkit.particles import Particles
from physkit.particles.forces import DirectGravity

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_force_and_energy_against_numpy[float32-1-1]",
    "test_force_and_energy_against_numpy[float32-1-130]",
    "test_force_and_energy_against_numpy[float32-2-5]",
    "test_force_and_energy_against_numpy[float32-3-1]",
    "test_force_and_energy_against_numpy[float32-3-130]",
    "test_force_and_energy_against_numpy[float64-1-5]",
    "test_force_and_energy_against_numpy[float64-2-1]",
    "test_force_and_energy_against_numpy[float64-2-130]",
    "test_force_and_energy_against_numpy[float64-3-5]",
    "test_both_formulations_agree[37]",
    "test_inverse_distance_is_accurate_in_single_precision",
    "test_momentum_is_conserved[float32-64]",
    "test_momentum_is_conserved[float64-64]",
    "test_virial",
    "test_derivatives[mass-jacrev]",
    "test_derivatives[constant-jacrev]",
    "test_derivatives[softening-jacrev]",
    "test_derivatives[position-jacrev]",
    "test_memory_of_a_gradient_is_linear",
    "test_periodic_space_is_refused",
    "test_figure_eight_orbit_returns_after_a_period",
)

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


def bodies(n=7, d=3, dtype=float):
    random = np.random.default_rng(n + d)
    position = jnp.asarray(random.normal(size=(n, d)), dtype)
    return Particles(position, random.normal(size=(n, d)), 0.5 + random.random(n))


def gravity(dtype=float, constant=1.3, softening=0.1):
    return DirectGravity(jnp.asarray(constant, dtype), jnp.asarray(softening, dtype))


def direct_force_and_energy(p, constant=1.3, softening=0.1):
    x, m = np.asarray(p.position, float), np.asarray(p.mass, float)
    d = x[None] - x[:, None]
    r2 = np.sum(d * d, axis=-1) + softening**2
    np.fill_diagonal(r2, np.inf)
    mm = constant * m[:, None] * m[None]
    return np.sum((mm / r2**1.5)[..., None] * d, axis=1), -0.5 * np.sum(mm / np.sqrt(r2))


@pytest.mark.parametrize("n", [1, 5, 130])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_force_and_energy_against_numpy(n, d, dtype):
    p = bodies(n, d, dtype)
    force, energy = direct_force_and_energy(p)
    tolerance = 100 * float(jnp.finfo(dtype).eps)
    both = eqx.filter_jit(lambda term, p: (term.force(CLOCK, p), term.energy(CLOCK, p)))
    found, found_energy = both(gravity(dtype), p)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, force, atol=tolerance * np.max(np.abs(force), initial=1))
    np.testing.assert_allclose(found_energy, energy, rtol=tolerance)


@pytest.mark.parametrize("n", [37, 515])
def test_both_formulations_agree(n):
    """That for accelerators and few bodies, and that for many on a CPU."""
    from physkit.particles.forces.pairs import _direct_gravity

    p = bodies(n)
    parts = tuple(p.position.T), p.mass, jnp.asarray(0.01)
    for a, b in zip(
        _direct_gravity._attraction_by_blocks(*parts), _direct_gravity._attraction_by_loop(*parts)
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-11)


def test_inverse_distance_is_accurate_in_single_precision():
    """No approximate reciprocal root: each pair is good to a few units in the last place."""
    random = np.random.default_rng(0)
    r = np.float32(10 ** random.uniform(-3, 3, 200))
    one = lambda x: DirectGravity(jnp.float32(1), jnp.float32(0)).force(
        CLOCK, Particles(jnp.stack([jnp.zeros(1, x.dtype), x[None]]))
    )[0, 0]
    found = jax.vmap(one)(jnp.asarray(r))
    np.testing.assert_allclose(found, 1 / r.astype(float) ** 2, rtol=4e-7)


@pytest.mark.parametrize("n", [5, 64])
def test_momentum_is_conserved(n, dtype):
    force = np.asarray(gravity(dtype).force(CLOCK, bodies(n, 3, dtype)), float)
    eps = float(jnp.finfo(dtype).eps)
    assert np.max(np.abs(force.sum(axis=0))) < 20 * eps * np.abs(force).max()


def test_force_is_the_gradient_of_energy():
    p, g = bodies(), gravity()
    slope = jax.jit(jax.grad(lambda x: g.energy(CLOCK, p.replace(position=x))))(p.position)
    np.testing.assert_allclose(g.force(CLOCK, p), -slope, rtol=1e-12)


def test_virial():
    """Its trace is the energy where nothing is softened, and it is symmetric (no torque)."""
    p, g = bodies(), gravity(softening=0.0)
    virial = g.virial(CLOCK, p)
    np.testing.assert_allclose(jnp.trace(virial), g.energy(CLOCK, p), rtol=1e-12)
    np.testing.assert_allclose(virial, virial.T, rtol=1e-10, atol=1e-12)


def response(mass, constant, softening, position):
    p = bodies().replace(mass=mass, position=position)
    weight = jnp.cos(jnp.arange(21.0)).reshape(7, 3)
    g = DirectGravity(constant, softening)
    return jnp.sum(weight * g.force(CLOCK, p)) + g.energy(CLOCK, p)


POINT = (bodies().mass, jnp.asarray(1.3), jnp.asarray(0.1), bodies().position)


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("which", range(4), ids=["mass", "constant", "softening", "position"])
def test_derivatives(which, mode):
    """By everything, in both modes, against central differences."""
    found = mode(response, which)(*POINT)
    direction = jnp.sin(1 + jnp.arange(found.size, dtype=float)).reshape(found.shape)
    moved = [
        response(*(x + s * 1e-6 * direction if k == which else x for k, x in enumerate(POINT)))
        for s in (1, -1)
    ]
    expected = (moved[0] - moved[1]) / 2e-6
    np.testing.assert_allclose(jnp.sum(found * direction), expected, rtol=1e-7)


def test_derivatives_compose():
    """Batches of gradients, gradients of batches, and both Hessian products."""
    mass = POINT[0]
    of_mass = lambda m: response(m, *POINT[1:])
    batch = jnp.stack([mass, 1.5 * mass])
    each = jnp.stack([jax.jit(jax.grad(of_mass))(m) for m in batch])
    np.testing.assert_allclose(jax.vmap(jax.grad(of_mass))(batch), each, rtol=1e-12)
    total = jax.jit(jax.grad(lambda b: jnp.sum(jax.vmap(of_mass)(b))))(batch)
    np.testing.assert_allclose(total, each, rtol=1e-12)
    forward = jax.jvp(jax.grad(of_mass), (mass,), (mass,))[1]
    reverse = jax.grad(lambda m: jnp.vdot(jax.grad(of_mass)(m), mass))(mass)
    np.testing.assert_allclose(forward, reverse, rtol=1e-10)


def test_memory_of_a_gradient_is_linear():
    def gradient_bytes(n):
        p = bodies(n)
        loss = lambda m: jnp.sum(gravity().force(CLOCK, p.replace(mass=m)) ** 2)
        compiled = jax.jit(jax.grad(loss)).lower(p.mass).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    # Blocks of pairs are larger on a GPU.
    n = 4000 if jax.default_backend() == "cpu" else 20_000
    assert gradient_bytes(n) < 0.5 * n**2 * 8


def test_coincident_bodies_are_a_fault_unless_softened():
    p = bodies().replace(position=bodies().position.at[3].set(bodies().position[1]))
    hard = gravity(softening=0.0)
    _, faults = hard(CLOCK, p, hard.init(p))
    assert Fault.OVERLAP in Fault(int(faults.bits))
    soft = gravity()
    force, faults = soft(CLOCK, p, soft.init(p))
    assert int(faults.bits) == 0
    assert bool(jnp.all(jnp.isfinite(force)))
    lost = p.replace(position=jnp.full_like(p.position, jnp.nan))
    assert int(soft(CLOCK, lost, soft.init(p))[1].bits) == 0  # diverged, not overlapping


def test_periodic_space_is_refused():
    p = Particles(jnp.ones((2, 3)), space=Box([4.0, 4.0, 4.0]))
    with pytest.raises(ParameterError, match="mesh"):
        DirectGravity().init(p)
    walls = Particles(jnp.eye(3), space=Box([4.0, 4.0, 4.0], periodic=False))
    assert DirectGravity().force(CLOCK, walls).shape == (3, 3)


def test_acts_on_the_named_component():
    state = {"stars": bodies(), "gas": bodies(4)}
    force = DirectGravity(1.3, 0.1, component="stars").force(CLOCK, state)
    np.testing.assert_allclose(force, direct_force_and_energy(bodies())[0], rtol=1e-12)


def test_figure_eight_orbit_returns_after_a_period():
    """Three equal bodies on one curve: back after a period, to the digits of the published start.

    Chenciner & Montgomery, Ann. Math. 152, 881 (2000); digits of C. Simó: T = 6.32591398,
    E = −1.2871419917663, return to 3.005e-8.
    """
    x1, v3 = np.array([0.97000436, -0.24308753]), np.array([-0.93240737, -0.86473146])
    start = Particles([x1, -x1, [0, 0]], [-v3 / 2, -v3 / 2, v3])
    g = DirectGravity()

    def rate(t, y, args):
        return y[1], g.force(CLOCK, start.replace(position=y[0])) / start.mass[:, None]

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(rate),
        diffrax.Dopri8(),
        0.0,
        6.32591398,
        0.01,
        (start.position, start.velocity),
        stepsize_controller=diffrax.PIDController(rtol=1e-13, atol=1e-13),
        max_steps=4000,
    )
    assert float(jnp.max(jnp.abs(solution.ys[0][0] - start.position))) <= 5e-8
    kinetic = 0.5 * jnp.sum(start.velocity**2)
    np.testing.assert_allclose(kinetic + g.energy(CLOCK, start), -1.2871419917663, rtol=1e-12)
