"""The gradient audit: good simulations pass, every kind of broken one is found and named."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import physkit as pk
from physkit.core import GradientError, ObjectiveError, ParameterError, SelectionError
from physkit.particles.forces import AbstractForce

from .audited import audit


def slow(case):
    """A case that takes the way of another one."""
    return pytest.param(case, marks=pytest.mark.slow)


class AbstractSpring(AbstractForce):
    """F = −k x³; subclasses break its derivative, each in its own way."""

    conserves_momentum: ClassVar[bool] = False
    k: Float[Array, ""] = pk.param(0.7)
    component: str | None = pk.static(default=None)

    def force(self, clock, state):
        return -self.k * state.position**3


class Spring(AbstractSpring):
    """Correct: what the audit must pass."""


class Consumed(AbstractForce):
    conserves_momentum: ClassVar[bool] = False
    k: Float[Array, ""] = pk.param(0.7)
    twice: Float[Array, ""] = pk.data()
    component: str | None = pk.static(default=None)

    def __init__(self, k: Any = 0.7):
        self.k, self.component = jnp.asarray(float(k)), None
        self.twice = 2 * jnp.asarray(float(k))

    def force(self, clock, state):
        return -self.twice * state.position


class Stopped(AbstractSpring):
    def force(self, clock, state):
        return -jax.lax.stop_gradient(self.k) * state.position


class Rounded(AbstractSpring):
    def force(self, clock, state):
        return -jnp.round(10 * self.k) * state.position


class RoundedFrequency(AbstractForce):
    """As docs/when-gradients-lie.md has it."""

    conserves_momentum: ClassVar[bool] = False
    omega: Float[Array, ""] = pk.param(1.3)
    component: str | None = pk.static(default=None)

    def force(self, clock, state):
        return -jnp.round(10 * self.omega) * state.position


class Softened(AbstractForce):
    """Stationary at ε = 0, of a power to be named."""

    conserves_momentum: ClassVar[bool] = False
    eps: Float[Array, ""] = pk.param(0.0)
    power: int = pk.static(default=2)
    component: str | None = pk.static(default=None)

    def force(self, clock, state):
        r2 = jnp.sum(state.position**2, axis=-1, keepdims=True)
        return -state.position * (r2 + self.eps**self.power) ** -1.5


class ThroughIntegers(AbstractSpring):
    def force(self, clock, state):
        return -(100 * self.k).astype(jnp.int32).astype(self.k.dtype) * state.position


@jax.custom_vjp
def square_with_wrong_vjp(x):
    return x**2


square_with_wrong_vjp.defvjp(
    lambda x: (square_with_wrong_vjp(x), x), lambda x, g: (g * x,)
)  # 2x is right


class WrongRule(AbstractSpring):
    def force(self, clock, state):
        return -self.k * square_with_wrong_vjp(state.position) * state.position


@jax.custom_jvp
def square_with_wrong_transpose(x):
    return x**2


@square_with_wrong_transpose.defjvp
def _(primals, tangents):
    x = primals[0]

    def linear(residual, tangent):
        return 2 * residual * tangent

    def wrong_transpose(residual, cotangent):
        return 3 * residual * cotangent

    tangent = jax.custom_derivatives.linear_call(linear, wrong_transpose, x, tangents[0])
    return square_with_wrong_transpose(x), tangent


class WrongTranspose(AbstractSpring):
    def force(self, clock, state):
        return -self.k * square_with_wrong_transpose(state.position) * state.position


class HalfStopped(AbstractSpring):
    """One of two paths is cut off: a derivative, but a wrong one."""

    def force(self, clock, state):
        return -(self.k + jax.lax.stop_gradient(self.k)) * state.position


class Clipped(AbstractSpring):
    """Two slopes, right where the state is."""

    def force(self, clock, state):
        return -self.k * jnp.maximum(state.position, state.position[0, 0])


class NaNAtZeroDistance(AbstractSpring):
    """Masks the value at r = 0, but not its derivative."""

    def force(self, clock, state):
        d = state.position[:, None] - state.position[None]
        r = jnp.sqrt(jnp.sum(d**2, axis=-1))
        pull = jnp.where(r > 0, jnp.exp(-r) / r, 0)
        return self.k * jnp.sum(pull[..., None] * d, axis=1)


class NaNAtTheOrigin(AbstractSpring):
    """|x| has no derivative at 0."""

    def force(self, clock, state):
        r = jnp.linalg.norm(state.position, axis=-1, keepdims=True)
        return -self.k * r * state.position


class NaNAtOneTime(AbstractForce):
    """√ under a naive mask, whose argument is 0 at t = 0.3 only."""

    conserves_momentum: ClassVar[bool] = False
    c: Float[Array, ""] = pk.param(1.0)
    component: str | None = pk.static(default=None)

    def force(self, clock, state):
        late = (clock.t > 0.25) & (clock.t < 0.35)
        gap = jnp.where(late, 0.0 * (state.position - self.c), 1.0 + state.position**2)
        return jnp.where(late, 0.0, 1.0) * jnp.sqrt(gap)


def verlet(*forces):
    total = forces[0]
    for force in forces[1:]:
        total = total + force
    return pk.Simulation(pk.VelocityVerlet(total), dt=0.1)


def two_particles():
    return pk.Particles([[0.3, 0.8], [1.1, -0.4]], [[0.1, 0.2], [-0.3, 0.5]], [1.0, 2.0])


def in_single_precision(state):
    floating = lambda x: jnp.issubdtype(x.dtype, jnp.floating)
    return jax.tree.map(lambda x: x.astype(jnp.float32) if floating(x) else x, state)


K = "integrator.force.terms[0].k"


def test_right_derivatives_pass():
    found = pk.gradient_audit(verlet(Spring()), two_particles())
    found.check()
    assert found.ok
    assert found[K].verdict == "right"
    assert found[K].order > 1.95
    assert found[K].mismatch < 1e-12
    assert found["t0"].verdict == "unused"
    assert found["state.mass"].verdict == "right"
    text = str(found)
    assert K in text
    assert "all derivatives can be trusted" in text


BROKEN = [
    (Consumed, K, "UNREAD", "consumed in __init__"),
    (Stopped, K, "CUT", "stop_gradient"),
    (Rounded, K, "JUMPS", "rounding"),
    (HalfStopped, K, "WRONG", "finite difference"),
    (WrongTranspose, "state.position", "MODES|WRONG", ""),
    (ThroughIntegers, K, "JUMPS", "integer"),
]


@pytest.mark.parametrize(("kind", "name", "verdict", "note"), BROKEN)
def test_every_kind_of_broken_term_gets_its_verdict(kind, name, verdict, note):
    found = pk.gradient_audit(verlet(kind()), two_particles())
    assert found[name].verdict in verdict.split("|"), str(found)
    assert note in found[name].note
    assert not found.ok
    with pytest.raises(GradientError) as error:
        found.check()
    assert error.match("the derivative by")
    assert "NOT all derivatives" in str(found)


def test_a_wrong_reverse_rule_disagrees_with_forward_mode():
    found = pk.gradient_audit(verlet(WrongRule()), two_particles())
    assert found["state.position"].verdict == "WRONG"
    assert not np.isfinite(found["state.position"].mismatch)  # there is no forward mode


def test_a_kink_is_no_error():
    found = pk.gradient_audit(verlet(Clipped()), two_particles(), 1)
    assert found["state.position"].verdict in ("kink", "right")
    assert found.ok


def test_a_stationary_point_is_no_error():
    """Softening enters as a square: at 0 its derivative is 0, and rightly so."""
    found = pk.gradient_audit(*pk.systems.figure_eight(), where=lambda m: m[0].integrator.force)
    row = found["integrator.force.terms[0].softening"]
    assert (row.verdict, row.note) == ("zero", "stationary here")
    assert row.order > 1.9
    assert found.ok


@pytest.mark.parametrize(
    "start",
    [two_particles, lambda: in_single_precision(two_particles())],
    ids=["float64", "float32"],
)
@pytest.mark.parametrize(
    "omega", [1.3, 1.347, 14.96, *(slow(x) for x in (1.34, 1.3465, 1.3499, 1.3515))]
)
def test_a_plateau_is_not_stationary(omega, start):
    """Small steps stay inside of the plateau, larger ones jump."""
    sim = verlet(RoundedFrequency(omega))
    found = pk.gradient_audit(sim, start(), where=lambda m: m[0].integrator.force)
    assert found["integrator.force.terms[0].omega"].verdict == "JUMPS", str(found)
    assert not found.ok


@pytest.mark.parametrize(
    "start",
    [two_particles, lambda: in_single_precision(two_particles())],
    ids=["float64", "float32"],
)
@pytest.mark.parametrize("power", [2, slow(4), 8])
def test_a_smoothly_falling_change_is_stationary(power, start):
    sim = verlet(Softened(power=power))
    found = pk.gradient_audit(sim, start(), where=lambda m: m[0].integrator.force)
    row = found["integrator.force.terms[0].eps"]
    assert (row.verdict, row.note) == ("zero", "stationary here"), str(found)
    assert row.order > 1.8


class HeldAtOne(pk.AbstractOneStep):
    """y' = y² within 10⁻⁷ of 1, NaN elsewhere, as rigid bonds hold positions; its derivative may be wrong."""

    wrong_by: Float[Array, ""] = pk.data()

    def step(self, plan, clock, state, aux):
        is_held = jnp.abs(state - 1) <= 1e-7
        error = self.wrong_by * (state - jax.lax.stop_gradient(state))
        return jnp.where(is_held, state**2 + error, jnp.nan), aux


@pytest.mark.parametrize(("wrong_by", "verdict"), [(0.0, "right"), (0.01, "WRONG")])
def test_what_is_held_in_place_is_moved_a_tiny_bit(wrong_by, verdict):
    sim = pk.Simulation(HeldAtOne(jnp.asarray(wrong_by)), dt=0.1, guards=())
    found = pk.gradient_audit(sim, jnp.ones(3), where=lambda m: m[1])
    assert found.rows[0].verdict == verdict


def test_a_nan_is_traced_to_step_term_and_leaf():
    found = pk.gradient_audit(verlet(Spring(), NaNAtOneTime()), two_particles(), 5)
    assert found["state.position"].verdict == "NaN"
    assert "step 3" in found.nan_origin
    assert "NaNAtOneTime" in found.nan_origin
    assert found.nan_origin.endswith("state.position[0, 0], c")
    with pytest.raises(GradientError, match=r"(?s)NaN.*NaNAtOneTime"):
        found.check()


def test_a_nan_at_zero_distance_is_traced():
    found = pk.gradient_audit(verlet(NaNAtZeroDistance()), two_particles(), 2)
    assert "NaNAtZeroDistance" in found.nan_origin
    assert "step 2" in found.nan_origin
    assert "position" in found.nan_origin
    assert not found.ok


@pytest.mark.parametrize("steps", [1, 3])
def test_a_nan_of_the_force_at_the_start_is_traced(steps):
    """The particle is at the origin before the first step only."""
    state = pk.Particles([[0.0, 0.0], [1.1, -0.4]], [[0.1, 0.2], [-0.3, 0.5]], [1.0, 2.0])
    found = pk.gradient_audit(verlet(Spring(), NaNAtTheOrigin()), state, steps)
    assert found["state.position"].verdict == "NaN"
    assert "in the force at the start" in found.nan_origin
    assert found.nan_origin.endswith("in NaNAtTheOrigin, by state.position[0, 0]")


@pytest.mark.parametrize(
    "scheme", [pk.VelocityVerlet, slow(lambda f: pk.RK4(pk.integrators.EquationsOfMotion(f)))]
)
def test_a_nan_of_the_objective_is_not_blamed_on_the_steps(scheme):
    far = lambda result: jnp.sqrt(jnp.sum((0.0 * result.state.position) ** 2))
    found = pk.gradient_audit(
        pk.Simulation(scheme(Spring()), dt=0.1), two_particles(), objective=far
    )
    assert found["state.position"].verdict == "NaN"
    assert "Neither the steps nor the force at the start" in found.nan_origin


@pytest.mark.parametrize("part", [None, lambda m: m[1].position])
def test_a_constant_objective_is_an_error(part):
    for constant in (lambda r: jnp.asarray(2.0), lambda r: 0 * jnp.sum(r.state.position)):
        with pytest.raises(ObjectiveError, match="constant"):
            pk.gradient_audit(verlet(Spring()), two_particles(), where=part, objective=constant)


def test_a_leaf_without_effect_does_not_make_the_objective_constant():
    momentum = lambda result: jnp.sum(result.state.velocity)
    found = pk.gradient_audit(
        verlet(Spring()), two_particles(), where=lambda m: m[0].t0, objective=momentum
    )
    assert [row.verdict for row in found.rows] == ["unused"]
    assert found.ok


def test_where_objective_and_ignore():
    sim, state = verlet(Consumed()), two_particles()
    one = pk.gradient_audit(sim, state, where=lambda m: m[1].position)
    assert [row.name for row in one.rows] == ["state.position"]
    assert one.ok
    assert pk.gradient_audit(sim, state, ignore=("terms[0].k",)).ok
    mine = pk.gradient_audit(sim, state, objective=lambda result: result.state.position[0, 0])
    assert mine["state.position"].verdict == "right"
    assert mine["state.mass"].size == pytest.approx(0.0, abs=1e-12) or mine.rows


def test_single_precision_says_so():
    found = pk.gradient_audit(verlet(Spring()), in_single_precision(two_particles()))
    assert found.ok, str(found)
    assert found.dtype == "float32"
    assert "single precision" in str(found)
    assert not pk.gradient_audit(verlet(Stopped()), in_single_precision(two_particles())).ok


def test_too_many_steps_are_chaotic():
    sim, state = pk.systems.lorenz()
    long = pk.gradient_audit(sim, state, 3_000, where=lambda m: m[1])
    assert long["state"].verdict == "chaotic", str(long)
    assert "fewer steps" in str(long)


def test_bad_input_is_refused():
    sim, state = verlet(Spring()), two_particles()
    with pytest.raises(ParameterError, match="whole number"):
        pk.gradient_audit(sim, state, 0)
    with pytest.raises(ObjectiveError, match="one floating number"):
        pk.gradient_audit(sim, state, objective=lambda r: r.state.position)
    with pytest.raises(SelectionError, match="image"):
        pk.gradient_audit(sim, state, where=lambda m: m[1].image)
    broken = state.replace(velocity=state.velocity * 1e300)
    with pytest.raises(ObjectiveError, match="not finite"):
        pk.gradient_audit(verlet(Spring()), broken)


@pytest.mark.parametrize("name", ["hare_and_lynx", slow("kepler")])
def test_shipped_systems_have_right_derivatives(name):
    """Two of them here; all in test_audit_systems.py."""
    found = audit(name)
    assert found.ok, str(found)
