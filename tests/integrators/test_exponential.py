"""Methods that treat symbols apart: order, what they reduce to, what they carry, bad input."""

import functools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, ParameterError, ShapeError, StepCount, cast_floats, phi_functions
from physkit.fields import AbstractEquation, Field, Spectrum, derivative_symbol
from physkit.fields.equations import Diffusion, KuramotoSivashinsky
from physkit.geometry import Box, Dirichlet, Grid
from physkit.integrators import (
    ARS222,
    ARS343,
    ETDRK2,
    ETDRK4,
    RK4,
    Heun,
    RungeKutta,
    Strang,
    Subcycle,
)
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation, simulate
from physkit.testing import check_integrator, check_simulation

from .problems import evolve, final_state

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_battery_with_stiff_symbol[ETDRK2-2]",
    "test_linear_part_alone[ARS222-2]",
    "test_vector_fields[ARS222-2]",
    "test_derivative_by_viscosity[ARS343-3]",
    "test_phi_functions_and_their_derivatives",
    "test_what_is_steady_is_transformed_once_for_a_run[None-ETDRK2-2]",
)

METHODS = [(ETDRK2, 2), (ETDRK4, 4), (ARS222, 2), (ARS343, 3)]
EACH = pytest.mark.parametrize(
    ("method", "order"), METHODS, ids=lambda x: getattr(x, "__name__", x)
)


class Burgers(AbstractEquation):
    """Viscous Burgers with dispersion: a complex, stiff symbol and a quadratic N by coefficients."""

    viscosity: jax.Array = pk.param(0.1)
    dispersion: jax.Array = pk.param(0.05)
    component: str | None = pk.static(default=None)

    def symbol(self, field):
        (k,) = field.grid.wavenumbers(real=field.is_real)
        wave = jnp.imag(derivative_symbol(field.grid, 0, 3, field.is_real))
        return jax.lax.complex(-self.viscosity * k**2, -self.dispersion * wave)

    def nonlinear(self, clock, field):
        flux = (field**2).spectrum().dealiased()
        return -flux.derivative("x") * 0.5


def line(n=16):
    return Grid([2 * np.pi], (n,))


def wave(grid=None, **options):
    return Field.from_function(grid or line(), lambda x: 0.4 + jnp.sin(x), **options)


def damping(t, u):
    return u * (jnp.cos(t) * -0.3)


@EACH
def test_battery_with_stiff_symbol(method, order):
    # |L| dt reaches 64 · 0.1 and 512 · 0.05 · 0.1: an explicit method would blow up.
    check_integrator(method(Burgers(), damping), wave(), 0.1, order=order)


@pytest.mark.parametrize(("method", "order"), [(ETDRK2, 2), (ARS343, 3)])
def test_battery_with_two_components(method, order):
    state = {"u": wave(), "v": wave() * 0.5}
    state["v"] = state["v"].with_boundary(state["u"])

    def exchange(t, s):
        return {"u": s["v"] * 0.3, "v": (s["u"] * s["v"]) * -0.2}

    integrator = method(Diffusion(0.3, component="u"), Burgers(component="u"), exchange)
    check_integrator(integrator, state, 0.1, order=order)


@pytest.mark.parametrize(
    ("method", "explicit"),
    [
        (ETDRK2, Heun),
        (ETDRK4, RK4),
        (ARS222, lambda *f: RungeKutta(ARS222.pair.explicit, *f)),
        (ARS343, lambda *f: RungeKutta(ARS343.pair.explicit, *f)),
    ],
)
def test_without_a_symbol_it_is_the_explicit_method(method, explicit):
    rate = lambda t, u: u * u * -0.7 + jnp.cos(t)
    got = final_state(method(rate), wave(), 0.1, 7)
    expected = final_state(explicit(rate), wave(), 0.1, 7)
    np.testing.assert_allclose(got.data, expected.data, rtol=1e-14)
    # The same with a symbol that is there, and zero.
    got = final_state(method(Diffusion(0.0), rate), wave(), 0.1, 7)
    np.testing.assert_allclose(got.data, expected.data, atol=1e-13)


@EACH
def test_linear_part_alone(method, order):
    """Exponential methods are exact for it; implicit ones damp what is infinitely stiff."""
    u = wave()
    if method in (ETDRK2, ETDRK4):
        got = final_state(method(Diffusion(0.7)), u, 0.9, 3).data
        expected = 0.4 + np.exp(-0.7 * 2.7) * (np.asarray(u.data) - 0.4)
    else:
        got = final_state(method(Diffusion(1e12)), u, 0.9, 3).data
        expected = 0.4 + 0 * np.asarray(u.data)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_phi_functions_and_their_derivatives(dtype):
    # To a few roundings: near 0, where the definitions lose all digits, and where the series ends.
    around = 1.5 + 1e-8 * np.arange(-4, 5)
    size = np.concatenate(
        [np.logspace(-16, 4, 80), 1e-8 * np.arange(1, 9), around, [1.4999, 1.5001]]
    )
    z = np.concatenate([-size, size[size < 50], [0.0]]).astype(dtype)
    with localcontext() as context:
        context.prec = 80

        def exact(k, x):
            if abs(x) < 1:
                terms = [1 / Decimal(math.factorial(j + k)) for j in range(25)]
                return functools.reduce(lambda total, term: total * x + term, reversed(terms))
            return (x.exp() - sum(x**j / math.factorial(j) for j in range(k))) / x**k

        def slope(k, x):  # φₖ′ = φₖ − k φₖ₊₁
            return exact(k, x) - k * exact(k + 1, x)

        numbers = [Decimal(float(x)) for x in z]
        values = np.array([[float(exact(k, x)) for x in numbers] for k in (1, 2, 3)])
        slopes = np.array([[float(slope(k, x)) for x in numbers] for k in (1, 2, 3)])
    tangent = jnp.asarray(np.ones_like(z))
    got, got_slopes = jax.jit(lambda z: jax.jvp(phi_functions, (z,), (tangent,)))(jnp.asarray(z))
    rounding = float(jnp.finfo(dtype).eps)
    for k in range(3):
        assert got[k].dtype == got_slopes[k].dtype == dtype
        np.testing.assert_allclose(got[k], values[k], rtol=4 * rounding)
        np.testing.assert_allclose(got_slopes[k], slopes[k], rtol=30 * rounding)


def test_phi_functions_of_imaginary_numbers():
    y = np.linspace(-8, 8, 33)
    got = phi_functions(jnp.asarray(1j * y))
    # ∫₀¹ e^{(1−s)z} sᵏ⁻¹/(k−1)! ds by Gauss quadrature
    x, w = np.polynomial.legendre.leggauss(40)
    s, w = (x + 1) / 2, w / 2
    for k, function in enumerate(got):
        weight = w * s**k / (1, 1, 2)[k]
        expected = np.exp(1j * y[:, None] * (1 - s)) @ weight
        np.testing.assert_allclose(function, expected, atol=1e-14)


@EACH
def test_complex_fields(method, order):
    grid = line()
    (x,) = grid.coordinates()
    u = Field(jax.lax.complex(jnp.cos(3 * x) + 0.5, jnp.sin(3 * x)), grid)
    mixed = lambda t, f: f.map(lambda a: 1j * 0.2 * a)
    got = final_state(method(Diffusion(0.3), mixed), u, 0.001, 100).data
    expected = np.exp(0.02j) * (np.exp(-0.27) * np.exp(3j * np.asarray(x)) + 0.5)
    np.testing.assert_allclose(got, expected, atol=1e-6)


@EACH
def test_vector_fields(method, order):
    grid = Grid([2 * np.pi, 2 * np.pi], (8, 8))
    v = Field.from_function(grid, lambda x, y: (jnp.sin(x), jnp.cos(y)))
    got = final_state(method(Diffusion(0.3), lambda t, u: u * 0.1), v, 0.01, 10)
    np.testing.assert_allclose(got.data, np.exp(-0.02) * np.asarray(v.data), atol=1e-7)
    assert got.vector
    assert got.coefficients is None


def transforms(integrator, lazy=False):
    """How often a step transforms a field."""
    state, dt = wave(), jnp.asarray(0.1)
    plan = integrator.prepare(state, dt)
    clock = Clock.at(StepCount.of(0), jnp.asarray(0.0), dt)
    aux = integrator.init(plan, clock, state)
    method = integrator.step_lazy if lazy else integrator.step
    step = jax.jit(lambda p, s, a: method(p, clock, s, a))
    return step.lower(plan, state, aux).compile().as_text().count(" fft(")


class Forcing(AbstractEquation):
    """A forcing that nothing changes, by values; with a symbol of its own, if there is a decay."""

    strength: jax.Array = pk.param(0.3)
    decay: float | None = pk.static(default=None)
    component: str | None = pk.static(default=None)

    def symbol(self, field):
        if self.decay is None:
            return None
        return jnp.full(field.spectrum().coefficients.shape, -self.decay)

    def steady(self, field):
        (x,) = field.coordinates
        return field.with_values(self.strength * jnp.exp(jnp.sin(x)))


@EACH
@pytest.mark.parametrize("decay", [None, 0.5])
def test_what_is_steady_is_transformed_once_for_a_run(method, order, decay):
    forced = method(Burgers(), Forcing(decay=decay))
    assert transforms(forced, lazy=True) == transforms(method(Burgers()), lazy=True)
    by_values = lambda t, u: u.with_values(0.3 * jnp.exp(jnp.sin(u.coordinates[0])))
    drag = () if decay is None else (lambda t, u: u * -decay,)
    expected = final_state(RK4(Burgers(), by_values, *drag), wave(), 2e-4, 500)
    found = final_state(forced, wave(), 1e-3, 100)
    np.testing.assert_allclose(found.data, expected.data, atol=1e-5)
    explicit = final_state(RK4(Burgers(), Forcing(decay=decay)), wave(), 2e-4, 500)
    np.testing.assert_allclose(explicit.data, expected.data, atol=1e-13)


def test_one_transform_for_the_new_state():
    """Coefficients are carried: N by coefficients costs what it costs itself, plus one inverse."""
    assert transforms(ETDRK2(Diffusion(0.1))) == 1
    # Burgers: u back (the state has its values already at the first stage), u² there.
    assert transforms(ETDRK2(Burgers())) == 1 + 1 + 2
    assert transforms(ARS222(Burgers())) == 1 + 1 + 2
    assert transforms(ETDRK4(Burgers())) == 1 + 3 + 4
    # In a loop, states that no observer reads are not transformed back.
    assert transforms(ETDRK2(Diffusion(0.1)), lazy=True) == 0
    assert transforms(ETDRK2(Burgers()), lazy=True) == 2 + 2


@EACH
def test_step_lazy_and_materialize_equal_step(method, order):
    state = {"u": wave(), "v": wave()}
    exchange = lambda t, s: {"u": s["v"] * 0.3, "v": s["u"] * s["v"] * -0.2}
    integrator = method(Burgers(component="u"), exchange)
    expected = final_state(integrator, state, 0.1, 6)
    sim = Simulation(integrator, dt=0.1, observers=Every(3, u=FieldValues("u")))
    result = simulate(sim, state, 6)
    for name in state:
        np.testing.assert_allclose(result.state[name].data, expected[name].data, atol=1e-14)
    np.testing.assert_array_equal(result.frames["u"][-1], result.state["u"].data)
    # A carry goes on where it was.
    continued = simulate(sim, result.carry, 6).state
    uninterrupted = simulate(sim, state, 12).state
    for name in state:
        np.testing.assert_array_equal(continued[name].data, uninterrupted[name].data)


def test_splitting_refreshes_the_coefficients():
    """Strang keeps order 2 although another part moves the field whose coefficients are carried."""
    half = lambda t, u: u * u * -0.5
    parts = Strang(ETDRK2(Burgers(), half), RK4(damping))
    whole = ETDRK4(Burgers(), half, damping)
    exact = final_state(whole, wave(), 0.00125, 160)
    errors = [
        np.max(np.abs(final_state(parts, wave(), 0.2 / n, n).data - exact.data)) for n in (4, 8, 16)
    ]
    assert abs(np.log2(errors[0] / errors[2]) / 2 - 2) < 0.15


def test_is_stale_only_for_fields_that_are_transformed():
    integrator = ETDRK2(Diffusion(0.1, component="u"))
    state = {"u": wave(), "v": wave()}
    assert not integrator.is_stale(state, {**state, "v": wave()})
    assert integrator.is_stale(state, {**state, "u": wave()})


@EACH
def test_derivative_by_viscosity(method, order):
    def loss(nu):
        return jnp.sum(final_state(method(Burgers(nu)), wave(), 0.05, 10).data ** 2)

    nu, step = jnp.asarray(0.1), 1e-5
    finite = (loss(nu + step) - loss(nu - step)) / (2 * step)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(nu), finite, rtol=1e-7)
    forward = jax.jvp(loss, (nu,), (jnp.ones(()),))[1]
    np.testing.assert_allclose(forward, finite, rtol=1e-7)


def test_derivative_by_step_and_box():
    @jax.jit
    def loss(dt, length):
        u = Field.from_function(
            Grid(length[None], (16,)), lambda x: jnp.sin(2 * jnp.pi / length * x)
        )
        return jnp.sum(evolve(ETDRK4(Diffusion(0.1), damping), u, dt, 5)[0].data ** 2)

    at, step = (jnp.asarray(0.1), jnp.asarray(3.0)), 1e-5
    slopes = jax.grad(loss, (0, 1))(*at)
    for k in range(2):
        delta = [step if j == k else 0.0 for j in range(2)]
        plus, minus = (loss(*(a + s * d for a, d in zip(at, delta, strict=True))) for s in (1, -1))
        np.testing.assert_allclose(slopes[k], (plus - minus) / (2 * step), rtol=1e-7)


def test_battery_of_a_simulation():
    sim = Simulation(ETDRK2(Burgers(), damping), dt=0.05)
    check_simulation(sim, wave(), 12)


def test_subcycle_equals_small_steps():
    got = final_state(Subcycle(ETDRK4(Burgers()), 4), wave(), 0.4, 3)
    expected = final_state(ETDRK4(Burgers()), wave(), 0.1, 12)
    np.testing.assert_allclose(got.data, expected.data, atol=1e-13)


def test_single_precision():
    run = lambda u: final_state(
        ETDRK4(cast_floats(Burgers(), u.real_dtype)), u, jnp.asarray(0.05, u.real_dtype), 20
    )
    low, high = run(wave(dtype=jnp.float32)), run(wave())
    assert low.data.dtype == jnp.float32
    np.testing.assert_allclose(low.data, high.data, atol=2e-6)


@EACH
def test_a_symbol_between_walls_is_an_error(method, order):
    grid = Grid(Box([1.0], periodic=False), (8,))
    u = Field(0.0, grid, boundary=Dirichlet(0.0))
    with pytest.raises(ParameterError, match=rf"{method.__name__} advances Diffusion.*walls"):
        method(Diffusion(0.1)).prepare(u, 0.1)


def test_a_rate_at_another_location_is_an_error():
    def wrong(t, u):
        return u.replace(location=u.grid.face("x"))

    integrator = ETDRK2(Diffusion(0.1), wrong)
    with pytest.raises(ShapeError, match="rate"):
        final_state(integrator, wave(), 0.1, 1)


def test_rates_by_values_and_by_coefficients_add_up():
    """Values and coefficients of one and the same rate add up."""

    class Half(AbstractEquation):
        component: str | None = pk.static(default=None)

        def symbol(self, field):
            return -0.1 * field.grid.wavenumbers()[0] ** 2

        def nonlinear(self, clock, field) -> Spectrum:
            return field.spectrum() * 0.25

    got = final_state(ETDRK4(Half(), lambda t, u: u * 0.25), wave(), 0.05, 10)
    expected = final_state(ETDRK4(Diffusion(0.1), lambda t, u: u * 0.5), wave(), 0.05, 10)
    np.testing.assert_allclose(got.data, expected.data, atol=1e-13)


def test_an_array_is_a_rate():
    class Growing(AbstractEquation):
        component: str | None = pk.static(default=None)
        make: Callable = pk.static(default=None)

        def symbol(self, field):
            return -0.1 * field.grid.wavenumbers()[0] ** 2

        def nonlinear(self, clock, field):
            return self.make(field)

    of_field, of_array = (
        final_state(ETDRK4(Growing(make=make)), wave(), 0.05, 3)
        for make in (lambda u: u - u**3, lambda u: u.data - u.data**3)
    )
    np.testing.assert_allclose(of_array.data, of_field.data, atol=1e-14)
    with pytest.raises(ShapeError, match="none is spread over others"):
        final_state(ETDRK4(Growing(make=lambda u: jnp.sum(u.data))), wave(), 0.05, 1)


def test_conjugate_pairs_stay_together_where_waves_grow():
    """Rounding parts the two modes of a pair; where L > 0 the difference would grow as exp(Lt)."""
    grid = Grid([22.0, 22.0], (24, 24))
    noise = 0.1 * jax.random.normal(jax.random.key(0), grid.shape, jnp.float32)
    sim = Simulation(ETDRK2(KuramotoSivashinsky(form="height")), dt=0.05)
    end = jax.jit(lambda u: simulate(sim, u, 3000))(Field(noise, grid))
    assert 0.5 < float(jnp.std(end.state.data)) < 20.0
    modes = end.carry.aux.modes[None]
    for j in (0, 12):
        mirror = jnp.conj(jnp.roll(jnp.flip(modes[:, j]), 1))
        np.testing.assert_allclose(
            modes[:, j], mirror, rtol=0, atol=1e-4 * float(jnp.abs(modes).max())
        )
