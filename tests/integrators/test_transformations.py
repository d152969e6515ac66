"""Every integrator under JAX's transformations: derivatives, batches, single precision."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import cast_floats, get_component
from physkit.integrators import (
    BAOAB,
    PEFRL,
    RK4,
    BlanesMoan,
    Diffrax,
    DormandPrince5,
    EquationsOfMotion,
    Leapfrog,
    Lie,
    NoseHooverChain,
    RemoveMomentum,
    Strang,
    Subcycle,
    Suzuki,
    ThermostatChain,
    VelocityVerlet,
    Yoshida,
)
from physkit.particles import ParticleIncrement, Particles

from .problems import Spring, evolve

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_derivatives_batches_and_precision[VelocityVerlet]",
    "test_derivatives_batches_and_precision[PEFRL]",
    "test_derivatives_batches_and_precision[Strang]",
    "test_derivatives_by_an_integrators_own_parameters[BAOAB friction]",
    "test_plans_do_not_read_what_evolves[Yoshida6]",
    "test_plans_do_not_read_what_evolves[DormandPrince5]",
    "test_plans_do_not_read_what_evolves[Subcycle]",
)


def brake(t, state):
    return {"atoms": ParticleIncrement(velocity=-0.3 * state["atoms"].velocity)}


METHODS = {
    "VelocityVerlet": VelocityVerlet,
    "Leapfrog": Leapfrog,
    "Yoshida6": lambda f: Yoshida(f, order=6),
    "Suzuki4": Suzuki,
    "BlanesMoan6": lambda f: BlanesMoan(f, order=6),
    "PEFRL": PEFRL,
    "RK4": lambda f: RK4(EquationsOfMotion(f)),
    "DormandPrince5": lambda f: DormandPrince5(EquationsOfMotion(f)),
    "BAOAB": lambda f: BAOAB(f, temperature=0.5, friction=0.4),
    "NoseHooverChain": lambda f: NoseHooverChain(f, temperature=0.5, period=2.0),
    "Strang": lambda f: Strang(VelocityVerlet(f), RK4(brake)),
    "Lie": lambda f: Lie(VelocityVerlet(f), RemoveMomentum()),
    "Subcycle": lambda f: Subcycle(VelocityVerlet(f), 3),
    "Diffrax": lambda f: Diffrax(diffrax.Tsit5(), EquationsOfMotion(f), rtol=1e-11, atol=1e-13),
}
KEY = jax.random.key(1)
DT = 0.1


def state(scale=1.0):
    draw = np.random.default_rng(2)
    atoms = Particles(scale * draw.normal(size=(3, 2)), draw.normal(size=(3, 2)), [1.0, 2.0, 1.5])
    return {"atoms": atoms, "thermostat": ThermostatChain.at_rest(3)}


def run(integrator, state, dt=None):
    dt = jnp.asarray(DT) if dt is None else dt
    return evolve(integrator, state, dt, 4, key=KEY)[0]


def force(stiffness):
    return Spring(stiffness, drive=0.5, component="atoms")


@pytest.mark.parametrize("name", METHODS)
def test_derivatives_batches_and_precision(name):
    """Reverse and forward mode agree with a difference; a batch with its members; float32 with float64."""

    def end(k, scale=1.0):
        atoms = get_component(run(METHODS[name](force(k)), state(scale)), "atoms")
        return jnp.sum(jnp.sin(atoms.position)), atoms.position

    k, h = jnp.asarray(1.3), 1e-5
    batch = k + h * jnp.arange(-1.0, 2.0)
    (values, positions), slopes = jax.jit(jax.vmap(jax.value_and_grad(end, has_aux=True)))(batch)

    difference = float(values[2] - values[0]) / (2 * h)
    assert abs(difference) > 1e-3
    assert float(slopes[1]) == pytest.approx(difference, rel=1e-6)

    if name == "Diffrax":  # whose default adjoint is for reverse mode
        value, position = jax.jit(end)(k)
    else:
        tangent = lambda k: jax.jvp(end, (k,), (jnp.ones_like(k),))
        (value, position), (forward, _) = jax.jit(tangent)(k)
        assert float(forward) == pytest.approx(difference, rel=1e-6)
    assert float(values[1]) == pytest.approx(float(value), rel=1e-9)
    np.testing.assert_allclose(positions[1], position, rtol=1e-9, atol=1e-12)

    integrator = METHODS[name](force(1.3))
    single = cast_floats((integrator, state()), jnp.float32)
    atoms = get_component(jax.jit(run)(*single, jnp.float32(DT)), "atoms")
    assert atoms.position.dtype == atoms.velocity.dtype == jnp.float32
    if name != "BAOAB":  # its noise is drawn in the precision of the state
        np.testing.assert_allclose(atoms.position, position, rtol=2e-5)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda x: BAOAB(force(1.0), temperature=x, friction=0.4), 0.5),
        (lambda x: BAOAB(force(1.0), temperature=0.5, friction=x), 0.4),
        (lambda x: NoseHooverChain(force(1.0), temperature=x, period=2.0), 0.5),
        (lambda x: NoseHooverChain(force(1.0), temperature=0.5, period=x), 2.0),
    ],
    ids=["BAOAB temperature", "BAOAB friction", "chain temperature", "chain period"],
)
def test_derivatives_by_an_integrators_own_parameters(make, value):
    end = lambda x: jnp.sum(jnp.sin(get_component(run(make(x), state()), "atoms").position))
    h = 1e-5
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(end)))(value + h * jnp.arange(-1.0, 2.0))
    difference = float(values[2] - values[0]) / (2 * h)
    assert abs(difference) > 1e-5
    assert float(slopes[1]) == pytest.approx(difference, rel=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_plans_do_not_read_what_evolves(name):
    """`prepare` must not change when positions and velocities do."""
    integrator = METHODS[name](force(1.3))
    plans = [integrator.prepare(state(scale), jnp.asarray(DT)) for scale in (1.0, 3.0)]
    for a, b in zip(*map(jax.tree.leaves, plans), strict=True):
        np.testing.assert_array_equal(a, b)
