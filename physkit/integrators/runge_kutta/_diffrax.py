"""Any diffrax solver as an integrator: adaptive inside the step, equispaced outside."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTerm,
    Clock,
    DeclarationError,
    Fault,
    Faults,
    Tendencies,
    as_parameter,
    combine_rates,
    float_dtype,
    param,
    safe_power,
    shift,
    static,
)
from physkit.geometry import AbstractSpace

from .._integrator import AbstractIntegrator
from ._explicit import as_tendencies, check_rate_shapes, terms_with_caches


class Diffrax(AbstractIntegrator):
    """Any solver of diffrax, with its own adaptive steps inside each step of the simulation.

        y(t + dt) = y(t) + ∫ f dt,   local error below atol + rtol·|y|

    For stiff problems (`Diffrax(diffrax.Kvaerno5(), chemistry)`), close encounters, and
    tight tolerances. It works on every floating array that the rates move, whatever the
    components; arrays that nothing drives cost nothing. Frames stay equispaced.

    **Arguments:**

    - `solver`: a diffrax solver of ordinary differential equations.
    - `tendencies`: tendencies, or functions `(t, state) → rate`, which are summed.
    - `rtol`, `atol`: relative and absolute tolerance; `atol` in the units of the state.
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

    solver: Any = static()
    tendency: Tendencies
    rtol: Float[Array, ""] = param()
    atol: Float[Array, ""] = param()
    max_steps: int = static()
    adjoint: Any = static()

    def __init__(
        self,
        solver: Any,
        *tendencies: Any,
        rtol: Any = 1e-6,
        atol: Any = 1e-8,
        max_steps: int = 1000,
        adjoint: Any = None,
    ):
        self.solver = solver
        self.tendency = as_tendencies(*tendencies)
        self.rtol = as_parameter(rtol)
        self.atol = as_parameter(atol)
        self.max_steps = max_steps
        self.adjoint = adjoint

    def prepare(self, state: Any, dt: Any) -> None:
        del state, dt

    def init(self, plan: None, clock: Clock, state: Any) -> Any:
        caches = self.tendency.init(state)
        check_rate_shapes(self.tendency, clock, state, caches)
        return caches, Faults.none()

    def refresh(self, plan: None, clock: Clock, state: Any, aux: Any) -> Any:
        return aux

    def is_stale(self, before: Any, after: Any) -> bool:
        del before, after
        return False  # rates are computed where they are used

    def step(self, plan: None, clock: Clock, state: Any, aux: Any) -> tuple[Any, Any]:
        import diffrax  # only when it is used: it is slow to import

        caches, faults = aux
        driven, no_change = _driven(self.tendency, clock, state, caches)
        smallest = 10 * jnp.finfo(float_dtype(state)).eps
        norm = {}
        if (domain := _cut_space(state)) is not None:
            if isinstance(self.solver, diffrax.AbstractImplicitSolver):
                raise DeclarationError(
                    f"{type(self.solver).__name__} is implicit: over several devices each would solve for "
                    "its own part. Take an explicit solver as diffrax.Tsit5(), or run on one device"
                )
            # All devices must take the same inner steps, since they talk in each.
            norm = {"norm": lambda error: _size_over(domain, error)}
        adjoint = self.adjoint if domain is None else _adjoint_over_devices(self.adjoint)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(_slopes),
            self.solver,
            t0=jnp.zeros_like(clock.dt),  # time in fractions of the step, for `clock.at_fraction`
            t1=jnp.ones_like(clock.dt),
            dt0=None,
            y0=_pick(state, driven),
            args=(self.tendency, driven, clock, state, caches),
            stepsize_controller=diffrax.PIDController(
                rtol=jnp.maximum(self.rtol, smallest), atol=self.atol, **norm
            ),
            max_steps=self.max_steps,
            throw=False,
            **({} if adjoint is None else {"adjoint": adjoint}),
        )
        solved = solution.result == diffrax.RESULTS.successful
        leaves = [jnp.where(solved, x[0], jnp.nan) for x in solution.ys]
        # Adding nothing lets a component put itself in order: particles fold into the cell.
        state = shift(_place(state, driven, leaves), no_change)
        if jax.tree.leaves(caches):
            _, caches = self.tendency(clock.at_fraction(1.0), state, caches)
        return state, (caches, faults.set_if(Fault.SOLVER, ~solved))

    def terms(self, aux: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
        return terms_with_caches(self.tendency, aux[0])


def _cut_space(state: Any) -> AbstractSpace | None:
    """The space that is cut over devices, if one is."""
    is_space = lambda x: isinstance(x, AbstractSpace)
    spaces = [x for x in jax.tree.leaves(state, is_leaf=is_space) if is_space(x)]
    return next((x for x in spaces if x.comm.size > 1), None)


def _adjoint_over_devices(adjoint: Any) -> Any:
    """An adjoint without rules of its own, in which JAX would no longer know of other devices."""
    import diffrax

    if adjoint is None:
        return diffrax.DirectAdjoint()
    if not isinstance(adjoint, diffrax.DirectAdjoint | diffrax.ForwardMode):
        raise DeclarationError(
            f"{type(adjoint).__name__} has no derivatives over several devices: take "
            "adjoint=diffrax.DirectAdjoint(), which is what they get where none is given, or ForwardMode()"
        )
    return adjoint


def _size_over(domain: AbstractSpace, error: Any) -> Array:
    """The root mean square over all devices."""
    leaves = jax.tree.leaves(error)
    squares = domain.sum(sum(jnp.sum(jnp.abs(x) ** 2) for x in leaves))
    number = domain.sum(jnp.asarray(sum(x.size for x in leaves), squares.dtype))
    return safe_power(squares / number, 0.5)


def _slopes(fraction: Any, leaves: list[Array], args: Any) -> list[Array]:
    """d leaves / d fraction: what adding the rate does to each of them, to first order."""
    tendency, driven, clock, state, caches = args
    here = _place(state, driven, leaves)
    rate, _ = tendency(clock.at_fraction(fraction), here, caches)
    moved = lambda h: _pick(shift(here, combine_rates([h], [rate])), driven)
    return jax.jvp(moved, (jnp.zeros_like(clock.dt),), (clock.dt,))[1]


def _driven(tendency, clock, state, caches) -> tuple[tuple[bool, ...], Any]:
    """Which leaves of the state the rates move, and the rate that moves nothing."""
    found: list[tuple[bool, ...]] = []

    def look(clock, state, caches):
        rate, _ = tendency(clock, state, caches)
        after = jax.tree.leaves(shift(state, combine_rates([clock.dt], [rate])))
        pairs = zip(jax.tree.leaves(state), after, strict=True)
        found.append(tuple(x is not y and eqx.is_inexact_array(x) for x, y in pairs))
        return rate

    shapes = eqx.filter_eval_shape(look, clock, state, caches)
    return found[0], jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)


def _pick(state: Any, driven: tuple[bool, ...]) -> list[Array]:
    leaves = jax.tree.leaves(state)
    return [x for x, moves in zip(leaves, driven, strict=True) if moves]


def _place(state: Any, driven: tuple[bool, ...], values: list[Array]) -> Any:
    leaves, tree = jax.tree.flatten(state)
    fresh = iter(values)
    pairs = zip(leaves, driven, strict=True)
    return tree.unflatten([next(fresh) if moves else x for x, moves in pairs])
