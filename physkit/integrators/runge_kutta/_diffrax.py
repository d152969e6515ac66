"""Any diffrax solver as an integrator: adaptive inside the step, equispaced outside."""

from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Cache,
    Clock,
    DeclarationError,
    Fault,
    Faults,
    PyTree,
    Rate,
    State,
    Tendencies,
    as_parameter,
    combine_rates,
    float_dtype,
    param,
    poison_where,
    power_of_two,
    safe_power,
    shift,
    static,
)
from physkit.geometry import AbstractSpace

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches
from ._tendencies import TendencyLike, as_tendencies, check_rate_shapes, terms_with_caches

DiffraxAux: TypeAlias = tuple[Cache, Faults]
_DEFAULT_ATOL = 1e-8  # of an array whose numbers are of order 1


class Diffrax(AbstractIntegrator):
    """Any solver of diffrax, with its own adaptive steps inside each step of the simulation.

        y(t + dt) = y(t) + ∫ f dt,   local error below atol + rtol·|y|

    For stiff problems (`Diffrax(diffrax.Kvaerno5(), chemistry)`), close encounters, and
    tight tolerances. It works on every floating array that the rates move, whatever the
    components; arrays that nothing drives cost nothing. Frames stay equispaced.

    **Arguments:**

    - `solver`: a diffrax solver of ordinary differential equations.
    - `tendencies`: tendencies, or functions `(t, state) → rate`, which are summed.
    - `rtol`, `atol`: relative and absolute tolerance; `atol` in the units of the state. If left out, 1e-8,
      or 1e-8 of the largest number of an array (or of its change in a step) where that is smaller.
    - `max_steps`: most inner steps that one step may take.
    - `adjoint`: how diffrax differentiates; its own default (reverse mode) if left out.
      `diffrax.ForwardMode()` is for forward mode, `diffrax.DirectAdjoint()` for both.

    **Errors:** a solver that gives up poisons the state with NaN and sets a fault, which `run`
    raises as `StepSizeError`. `DeclarationError` over several devices for an implicit solver, whose
    equations each would solve for its own part, and for adjoints other than `DirectAdjoint` and
    `ForwardMode`.

    **Good values:** `diffrax.Tsit5()` or `Dopri8()` for smooth problems, `Kvaerno5()` for stiff
    ones. In float32, rtol of 1e-4.

    **Notes:** rtol below ten units of rounding is raised to that. Under `vmap` all members take as
    many inner steps as the slowest. A term's cache (a neighbor list) is brought up to date once a
    step. Over several devices the default adjoint is `diffrax.DirectAdjoint()`.

    **Reference:** Kidger, On Neural Differential Equations, PhD thesis, Oxford (2021).
    """

    solver: eqx.Module = static()
    tendency: Tendencies
    rtol: Float[Array, ""] = param()
    atol: Float[Array, ""] | None = param(None)
    max_steps: int = static()
    adjoint: eqx.Module | None = static()

    def __init__(
        self,
        solver: eqx.Module,
        *tendencies: TendencyLike,
        rtol: ArrayLike = 1e-6,
        atol: ArrayLike | None = None,
        max_steps: int = 1000,
        adjoint: eqx.Module | None = None,
    ):
        self.solver = solver
        self.tendency = as_tendencies(*tendencies)
        self.rtol = as_parameter(rtol)
        self.atol = None if atol is None else as_parameter(atol)
        self.max_steps = max_steps
        self.adjoint = adjoint

    def prepare(self, state: State, dt: StepSize) -> None:
        del state, dt

    def init(self, plan: None, clock: Clock, state: State) -> DiffraxAux:
        caches = self.tendency.init(state)
        check_rate_shapes(self.tendency, clock, state, caches)
        return caches, Faults.none()

    def refresh(self, plan: None, clock: Clock, state: State, aux: DiffraxAux) -> DiffraxAux:
        return aux

    def is_stale(self, before: State, after: State) -> bool:
        del before, after
        return False  # rates are computed where they are used

    def step(
        self, plan: None, clock: Clock, state: State, aux: DiffraxAux
    ) -> tuple[State, DiffraxAux]:
        import diffrax  # only when it is used: it is slow to import

        caches, faults = aux
        is_driven, no_change = _driven_leaves(self.tendency, clock, state, caches)
        # A tolerance below rounding would make the controller shrink the step without end.
        smallest_rtol = 10 * jnp.finfo(float_dtype(state)).eps
        # Left out unless needed: diffrax has its own defaults for both.
        norm = {}
        adjoint = self.adjoint
        if (domain := _distributed_space(state)) is not None:
            if isinstance(self.solver, diffrax.AbstractImplicitSolver):
                raise DeclarationError(
                    f"{type(self.solver).__name__} is implicit: over several devices each would solve for "
                    "its own part. Take an explicit solver as diffrax.Tsit5(), or run on one device"
                )

            # All devices must take the same inner steps, since they communicate in each.
            def error_norm(error: PyTree) -> Array:
                return _norm_over_devices(domain, error)

            norm = {"norm": error_norm}
            adjoint = _adjoint_over_devices(adjoint)
        # dt0=None: the solver chooses its first inner step anew in every step. Nothing of its controller
        # is carried, so results do not depend on chunks or restarts.
        leaves = _select_leaves(state, is_driven)
        scales = [jnp.ones((), x.dtype) for x in leaves]
        if self.atol is None:
            unscaled = (self.tendency, is_driven, clock, state, caches, scales)
            rates = _leaf_rates(jnp.zeros_like(clock.dt), leaves, unscaled)
            scales = [_scale(x, rate, domain) for x, rate in zip(leaves, rates, strict=True)]
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(_leaf_rates),
            self.solver,
            t0=jnp.zeros_like(clock.dt),  # time in fractions of the step, for `clock.at_fraction`
            t1=jnp.ones_like(clock.dt),
            dt0=None,
            y0=[x / s for x, s in zip(leaves, scales, strict=True)],
            args=(self.tendency, is_driven, clock, state, caches, scales),
            stepsize_controller=diffrax.PIDController(
                rtol=jnp.maximum(self.rtol, smallest_rtol),
                atol=_DEFAULT_ATOL if self.atol is None else self.atol,
                **norm,
            ),
            max_steps=self.max_steps,
            throw=False,  # a failure travels as a fault: nothing raises inside the trace
            **({} if adjoint is None else {"adjoint": adjoint}),
        )
        succeeded = solution.result == diffrax.RESULTS.successful
        # x[0]: diffrax stacks what it saves, here the end alone.
        leaves = [
            poison_where(x[0] * s, ~succeeded) for x, s in zip(solution.ys, scales, strict=True)
        ]
        # The solver bypassed `shift`; adding nothing lets components restore their invariants:
        # particles fold into the cell.
        state = shift(_replace_leaves(state, is_driven, leaves), no_change)
        # The solver sees the caches as constants; a neighbor list is brought up to date here.
        if jax.tree.leaves(caches):
            _, caches = self.tendency(clock.at_fraction(1.0), state, caches)
        return state, (caches, faults.set_if(Fault.SOLVER, ~succeeded))

    def terms(self, aux: DiffraxAux) -> TermsWithCaches:
        caches, _ = aux
        return terms_with_caches(self.tendency, caches)


def _scale(x: Array, rate: Array, domain: AbstractSpace | None) -> Array:
    """The size of an array's numbers as a power of two, by which they are divided without rounding; at most 1.

    Not above: small numbers beside large ones in an array keep the accuracy of the absolute tolerance.
    """
    size = jnp.maximum(jnp.max(jnp.abs(x), initial=0), jnp.max(jnp.abs(rate), initial=0))
    size = jax.lax.stop_gradient(size if domain is None else domain.max(size))
    _, exponent = jnp.frexp(size)
    is_known = jnp.isfinite(size) & (size > 0)
    power = power_of_two(jnp.minimum(exponent, 0), size.dtype)
    return jnp.where(is_known, power, 1).astype(x.dtype)


def _distributed_space(state: State) -> AbstractSpace | None:
    """The space that is sharded over devices, if one is."""

    def is_space(node: PyTree) -> bool:
        return isinstance(node, AbstractSpace)

    spaces = [x for x in jax.tree.leaves(state, is_leaf=is_space) if is_space(x)]
    return next((x for x in spaces if x.comm.size > 1), None)


def _adjoint_over_devices(adjoint: eqx.Module | None) -> eqx.Module:
    """An adjoint that differentiates through collectives; `DirectAdjoint` where none is given.

    **Errors:** `DeclarationError` for adjoints with custom derivative rules: inside them JAX no longer
    knows the axis of devices.
    """
    import diffrax

    if adjoint is None:
        return diffrax.DirectAdjoint()
    if not isinstance(adjoint, diffrax.DirectAdjoint | diffrax.ForwardMode):
        raise DeclarationError(
            f"{type(adjoint).__name__} has no derivatives over several devices: take "
            "adjoint=diffrax.DirectAdjoint(), the default there, or diffrax.ForwardMode()"
        )
    return adjoint


def _norm_over_devices(domain: AbstractSpace, error: PyTree) -> Array:
    """The root mean square over all devices."""
    # As diffrax's own `rms_norm`, of all entries of all leaves together; `safe_power` has derivative 0
    # where the error is 0.
    leaves = jax.tree.leaves(error)
    squares = domain.sum(sum(jnp.sum(jnp.abs(x) ** 2) for x in leaves))
    number = domain.sum(jnp.asarray(sum(x.size for x in leaves), squares.dtype))
    return safe_power(squares / number, 0.5)


def _leaf_rates(
    fraction: Float[Array, ""],
    leaves: list[Array],
    args: tuple[Tendencies, tuple[bool, ...], Clock, State, Cache, list[Array]],
) -> list[Array]:
    """d leaves / d fraction, as the derivative of `shift` by the length of a step; leaves in units of scales.

    A rate need not have the structure of the state (a dict of increments, coefficients of a field), the
    arrays of the state that diffrax integrates have.
    """
    tendency, is_driven, clock, state, caches, scales = args
    leaves = [x * s for x, s in zip(leaves, scales, strict=True)]
    inner_state = _replace_leaves(state, is_driven, leaves)
    rate, _ = tendency(clock.at_fraction(fraction), inner_state, caches)

    def shifted_leaves(dt: Float[Array, ""]) -> list[Array]:
        return _select_leaves(shift(inner_state, combine_rates([dt], [rate])), is_driven)

    # At dt = 0 nothing crosses an edge of the box, and `shift` is linear: the derivative is the rate.
    rates = jax.jvp(shifted_leaves, (jnp.zeros_like(clock.dt),), (clock.dt,))[1]
    return [r / s for r, s in zip(rates, scales, strict=True)]


def _driven_leaves(
    tendency: Tendencies, clock: Clock, state: State, caches: Cache
) -> tuple[tuple[bool, ...], Rate]:
    """Which leaves of the state the rates move, and a rate of zeros."""
    # Shapes are the only result of an abstract evaluation: what Python saw while tracing leaves by a list.
    is_driven: list[tuple[bool, ...]] = []

    def trace_rate(clock, state, caches):
        rate, _ = tendency(clock, state, caches)
        after = jax.tree.leaves(shift(state, combine_rates([clock.dt], [rate])))
        pairs = zip(jax.tree.leaves(state), after, strict=True)
        # An array that no rate moves is still the same object.
        is_driven.append(tuple(x is not y and eqx.is_inexact_array(x) for x, y in pairs))
        return rate

    shapes = eqx.filter_eval_shape(trace_rate, clock, state, caches)
    return is_driven[0], jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)


def _select_leaves(state: State, is_driven: tuple[bool, ...]) -> list[Array]:
    return [x for x, driven in zip(jax.tree.leaves(state), is_driven, strict=True) if driven]


def _replace_leaves(state: State, is_driven: tuple[bool, ...], values: list[Array]) -> State:
    leaves, tree = jax.tree.flatten(state)
    # One value per driven leaf, in the order of `_select_leaves`.
    remaining = iter(values)
    pairs = zip(leaves, is_driven, strict=True)
    return tree.unflatten([next(remaining) if driven else x for x, driven in pairs])
