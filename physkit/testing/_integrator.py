"""`check_integrator`: an integrator's order, reversal, plan, caches and derivatives."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from physkit.core import (
    AbstractComponent,
    Aux,
    Clock,
    NotReversible,
    PyTree,
    State,
    StepCount,
    cast_floats,
    explain_call,
    grow_caches,
    has_overflow,
)
from physkit.geometry import AbstractSpace
from physkit.integrators import AbstractIntegrator
from physkit.particles import Particles, RigidBodies

from ._compare import check_equal, check_finite, check_structure, double_precision, leaves_by_name
from ._gradient import check_gradient
from ._perturbed_states import has_cell, has_constraints, perturb_positions
from ._reversible import check_reversible
from ._trees import check_batch, parameter_paths, perturb, require_traceable

_REFINEMENTS = (1, 2, 4, 8)  # four steps: fewer leave the fitted slope to chance
_SLOPE_TOLERANCE = 0.2  # of the fitted order; a lost order changes it by 1


@explain_call
@double_precision()
def check_integrator(
    integrator: AbstractIntegrator,
    state: State,
    dt: float | int,
    *,
    order: float | int | None = None,
    exact: Callable[[Any, Any], Any] | None = None,
    reference: PyTree = None,
    symmetric: bool = False,
    steps: int = 8,
    key: jax.Array | None = None,
    ignore: Sequence[str] = (),
    modes: Sequence[str] = ("forward", "reverse"),
    compare: str = "solve",
) -> None:
    """An integrator keeps every promise that the loop, compositions and fits build on.

        check_integrator(VelocityVerlet(force), state, dt=0.01, order=2, symmetric=True)

    In double precision: state and what is carried keep their structure; `prepare` reads no evolving
    array; `refresh` changes nothing for a state that nobody moved, and renews what is carried when
    somebody did; nothing carried out of a step is stale; compiled steps equal uncompiled ones;
    float32 is near float64; `vmap` equals a loop; the error falls with the claimed order; running
    backwards returns to the start, if claimed; and derivatives of the final state by every
    parameter equal finite differences.

    **Arguments:**

    - `dt`, `steps`: the coarsest step, and how many of it. Errors of dt, dt/2, dt/4 and dt/8 must
      lie in the asymptotic range and above round-off.
    - `order`: claimed order; the fitted slope may differ by 0.2. None: not checked (noise).
    - `exact`: the solution, `(state, t) → state`, or a tree of the arrays that are compared: of particles
      unwrapped positions and velocities, and the cell in a box;
      or `reference`: a trusted integrator, run with dt/64. Without either, solutions of successive
      steps are compared with one another, which shows the order but not what is converged to.
    - `symmetric`: a step with −dt undoes a step with dt.
    - `key`: for dynamics with noise.
    - `ignore`: names of parameters that may have no effect.
    - `modes`: of differentiation; `("reverse",)` where there is no forward mode.
    - `compare`: row of the tolerance table for the same state reached in two ways.

    **Errors:** `AssertionError` that names what is wrong, by how much, and where.
    """
    exam = _IntegratorExamination(integrator, state, dt, steps, key, compare)
    exam.check_structure()
    exam.check_prepare()
    exam.check_refresh()
    exam.check_compiled()
    exam.check_single_precision()
    exam.check_vmap()
    if order is not None:
        exam.check_order(order, exact, reference)
    if symmetric:
        exam.check_symmetry()
    exam.check_gradients(ignore, modes)
    if exam.is_reversible():
        # Few steps: with a dt so large that an order shows, a driven state soon leaves the range of
        # the fixed-point numbers.
        check_reversible(exam.integrator, exam.state, exam.dt, steps=16)


class _IntegratorExamination:
    def __init__(self, integrator, state, dt, steps, key, compare):
        self.what = type(integrator).__name__
        self.integrator, self.state = cast_floats((integrator, state), jnp.float64)
        self.dt, self.steps, self.key, self.compare = float(dt), steps, key, compare
        # An array, so that refinements with more steps share one compiled loop.
        self._count = jnp.int32(steps)
        self.advance = require_traceable(_compiled_advance, self.what)
        self.step = require_traceable(_compiled_step, self.what)
        self.aux = prepare_and_init(self.integrator, self.state, self.clock(0))

    def clock(self, n: int, dt: float | None = None, dtype: DTypeLike = jnp.float64) -> Clock:
        dt = self.dt if dt is None else dt
        return Clock.at(StepCount.of(n), jnp.zeros((), dtype), jnp.asarray(dt, dtype), self.key)

    def is_reversible(self) -> bool:
        """Whether it claims to be exactly reversible, with the terms that it has."""
        if has_constraints(self.state):
            return False  # solved to rounding
        try:
            self.integrator.require_reversible(self.state)
        except NotReversible:
            return False
        return True

    def check_structure(self) -> None:
        """State and aux keep structure, shape and precision through a step."""
        # A float64 constant shows with a float32 state, a cast to float32 with a float64 one.
        for dtype in (jnp.float64, jnp.float32):
            integrator, state = cast_floats((self.integrator, self.state), dtype)
            clock = self.clock(0, dtype=dtype)
            aux = prepare_and_init(integrator, state, clock)
            name = f"{self.what} in {jnp.dtype(dtype).name}"
            after = self.step(integrator, clock, state, aux)
            check_structure(after[0], state, f"{name}: the state after a step")
            check_structure(after[1], aux, f"{name}: what is carried, after a step")
            check_finite(after[0], f"{name}: the state after a step")

    def check_prepare(self) -> None:
        """The plan is the same for a state whose evolving arrays have changed."""
        later = self.advance(self.integrator, self.state, self.aux, self.clock(0), self._count)[0]
        # A barostat changes the box, which plans may read: keep the old one.
        later = _with_spaces_of(perturb_positions(later, 11), self.state)
        prepare = eqx.filter_jit(lambda i, s, dt: i.prepare(s, dt))
        dt = jnp.asarray(self.dt)
        plan = prepare(self.integrator, self.state, dt)
        other = prepare(self.integrator, later, dt)
        name = f"{self.what}.prepare for a state that has evolved (it may not read evolving arrays)"
        check_equal(other, plan, name, "same")

    def check_refresh(self) -> None:
        """Nothing carried is stale: after a step, after a refresh, and after somebody's move."""
        clock = self.clock(self.steps)
        state, aux = self.advance(self.integrator, self.state, self.aux, self.clock(0), self._count)
        refresh = eqx.filter_jit(lambda i, c, s, a: i.refresh(i.prepare(s, c.dt), c, s, a))
        fresh = refresh(self.integrator, clock, state, aux)
        check_structure(fresh, aux, f"{self.what}: what is carried, after refresh")

        def step(state, aux):
            return self.step(self.integrator, clock, state, aux)[0]

        expected = step(state, aux)
        name = f"{self.what}: a step after refreshing a state that nobody moved"
        check_equal(step(state, fresh), expected, name, self.compare)

        other = perturb_positions(state, 13, 0.5)
        new = prepare_and_init(self.integrator, other, clock)
        refreshed = refresh(self.integrator, clock, other, aux)
        name = (
            f"{self.what}: a step after refresh of a state that somebody moved, against a new start"
        )
        check_equal(step(other, refreshed), step(other, new), name, self.compare)

    def check_compiled(self) -> None:
        """A compiled step equals one taken line by line."""
        # Eagerly each operation is a program of its own: nothing is fused, nothing constant-folded.
        plan = self.integrator.prepare(self.state, jnp.asarray(self.dt))
        eager = self.integrator.step(plan, self.clock(0), self.state, self.aux)[0]
        compiled = self.step(self.integrator, self.clock(0), self.state, self.aux)[0]
        check_equal(
            compiled, eager, f"{self.what}: a compiled step against an uncompiled one", "solve"
        )

    def check_single_precision(self) -> None:
        """A few steps in float32 end near those in float64."""
        exact = self._final(self.integrator, self.state, self.aux)
        integrator, state = cast_floats((self.integrator, self.state), jnp.float32)
        clock = self.clock(0, dtype=jnp.float32)
        aux = prepare_and_init(integrator, state, clock)  # that of the state has float64 arrays
        low = physical_leaves(self.advance(integrator, state, aux, clock, self._count)[0])
        if self.key is None:  # noise is drawn anew in another precision
            name = f"{self.what}: {self.steps} steps in float32 against float64"
            check_equal(low, exact, name, "precision")
        check_finite(low, f"{self.what}: {self.steps} steps in float32")

    def check_vmap(self) -> None:
        """A batch of states and parameters steps as each member alone does."""
        members = [
            (self.integrator, self.state),
            (perturb(self.integrator, 3, 1e-4), perturb_positions(self.state, 4, 0.2)),
        ]

        def final(member):
            # From one aux by refresh: `init` cannot choose capacities from traced numbers.
            integrator, state = member
            return self._final(integrator, state, self.aux)

        check_batch(final, members, self.what, self.compare)

    def check_symmetry(self) -> None:
        """Steps with dt and as many with −dt lead back to the start."""
        state = self.advance(self.integrator, self.state, self.aux, self.clock(0), self._count)[0]
        returned = _step_backwards(self.integrator, state, self.dt, self.steps, self.key)
        name = f"{self.what}: {self.steps} steps forwards and as many with −dt"
        check_equal(physical_leaves(returned), physical_leaves(self.state), name, "solve")

    def check_order(self, order: float | int, exact: Any, reference: PyTree) -> None:
        """The slope of log error over log dt."""
        finals = [self._vector(self.integrator, k) for k in _REFINEMENTS]
        if exact is not None:
            end = exact(self.state, jnp.asarray(self.dt * self.steps))
            truth = _flatten(physical_leaves(end))
        elif reference is not None:
            truth = self._vector(cast_floats(reference, jnp.float64), 64)
        else:
            truth = None
        if truth is None:
            # Differences of successive refinements fall with the same order as errors do.
            errors = [np.linalg.norm(a - b) for a, b in pairwise(finals)]
            sizes = [self.dt / k for k in _REFINEMENTS[:-1]]
        else:
            errors = [np.linalg.norm(a - truth) for a in finals]
            sizes = [self.dt / k for k in _REFINEMENTS]
        # Below some thousand roundings an error is of arithmetic, and falls no further.
        floor = 1e3 * np.finfo(float).eps * np.linalg.norm(finals[-1])
        points = [(np.log(h), np.log(e)) for h, e in zip(sizes, errors, strict=True) if e > floor]
        listed = ", ".join(f"{h:.3g}: {e:.3g}" for h, e in zip(sizes, errors, strict=True))
        if len(points) < 2:
            raise AssertionError(
                f"{self.what}: errors are at round-off, so no order can be seen ({listed}); give a "
                "larger dt"
            )
        slope = float(np.polyfit(*zip(*points, strict=True), 1)[0])
        if not abs(slope - order) <= _SLOPE_TOLERANCE:
            raise AssertionError(
                f"{self.what}: the error falls with order {slope:.2f}, expected {order} ± {_SLOPE_TOLERANCE} "
                f"(errors by dt: {listed})"
            )

    def check_gradients(self, ignore: Sequence[str], modes: Sequence[str]) -> None:
        """By every leaf of the integrator (which must all matter) and of the state."""
        required = {f"['integrator']{p}" for p in parameter_paths(self.integrator)}
        aux = self.aux

        def final(at):
            # Refreshed, not initialized: `init` chooses capacities by numbers that a trace does not have.
            clock = self.clock(0)
            plan = at["integrator"].prepare(at["state"], clock.dt)
            carried = at["integrator"].refresh(plan, clock, at["state"], aux)
            return physical_leaves(
                # Four steps at most: chaos makes higher derivatives grow, and differences lose digits to them.
                _loop(at["integrator"], plan, at["state"], carried, clock, min(self.steps, 4))[0]
            )

        everything = {"integrator": self.integrator, "state": self.state}
        check_gradient(
            final,
            everything,
            ignore=ignore,
            require_gradient=required,
            modes=modes,
            directions=1,
            what=self.what,
        )

    def _final(self, integrator: AbstractIntegrator, state: State, aux: Aux) -> Any:
        """Observables after `steps` steps, from a refreshed aux of another state."""
        clock = self.clock(0)
        plan = integrator.prepare(state, clock.dt)
        aux = integrator.refresh(plan, clock, state, aux)
        return physical_leaves(_loop(integrator, plan, state, aux, clock, self.steps)[0])

    def _vector(self, integrator: AbstractIntegrator, refinement: int) -> Any:
        clock = self.clock(0, self.dt / refinement)
        aux = prepare_and_init(integrator, self.state, clock)
        final = self.advance(
            integrator, self.state, aux, clock, jnp.int32(self.steps * refinement)
        )[0]
        return _flatten(physical_leaves(final))


def prepare_and_init(integrator: AbstractIntegrator, state: State, clock: Clock) -> Any:
    """What an integrator carries at the start, with capacities large enough for a few steps."""
    plan = integrator.prepare(state, clock.dt)
    aux = integrator.init(plan, clock, state)
    # A cache may need to grow more than once: what one overflow hides, the next step shows.
    for _ in range(5):
        after = _compiled_step(integrator, clock, state, aux)[1]
        if not has_overflow(after):
            return aux
        aux = integrator.refresh(plan, clock, state, grow_caches(aux, after)[0])
    raise AssertionError(f"{type(integrator).__name__}: caches overflow, and growing does not help")


def physical_leaves(state: State) -> Any:
    """What errors are measured in: unwrapped positions, velocities and cells, or all floating leaves."""

    def select(node):
        if not isinstance(node, Particles | RigidBodies):
            return eqx.filter(node, eqx.is_inexact_array)
        leaves = {"velocity": node.velocity}
        if isinstance(node, RigidBodies):
            # A quaternion and its opposite are one orientation: sites have no sign to choose.
            leaves |= {"position": node.site_particles().unwrapped, "spin": node.spin}
        else:
            leaves |= {"position": node.unwrapped}
        if has_cell(node):
            leaves |= {"cell": node.space.cell(node.dimension)}
        return leaves

    is_component = lambda x: isinstance(x, AbstractComponent)
    return jax.tree.map(select, state, is_leaf=is_component)


def _flatten(tree: PyTree) -> Any:
    return np.concatenate([np.ravel(np.asarray(x)) for x in leaves_by_name(tree).values()])


def _step(integrator, clock, state, aux):
    return integrator.step(integrator.prepare(state, clock.dt), clock, state, aux)


def _advance(integrator, state, aux, clock, steps):
    """`steps` steps, a number that is known at run time only: one program for all refinements."""
    body = _body(integrator, integrator.prepare(state, clock.dt), clock)
    steps = jnp.asarray(steps, jnp.int32)
    # Not a scan: its length would be part of the program.
    return jax.lax.fori_loop(0, steps, lambda n, carry: body(carry, n)[0], (state, aux))


# Compiled once for all that is examined: a refinement differs in numbers only.
_compiled_step, _compiled_advance = eqx.filter_jit(_step), eqx.filter_jit(_advance)


def _loop(integrator, plan, state, aux, clock, steps):
    """`steps` steps that can be differentiated in both modes."""
    numbers = jnp.arange(steps, dtype=jnp.int32)
    return jax.lax.scan(_body(integrator, plan, clock), (state, aux), numbers)[0]


def _body(integrator, plan, clock):
    """One step as the simulation's loop takes it, n steps after `clock`."""

    def body(carry, n):
        key = clock.noise_key
        key = None if key is None else jax.random.fold_in(key, n)
        step = clock.step.plus(n)
        step_clock = Clock(step, clock.origin, clock.macro_dt, clock.offset, clock.dt, key)
        return integrator.step(plan, step_clock, *carry), None

    return body


def _step_backwards(integrator, state, dt, steps, key):
    """`steps` steps of −dt, with the clocks that the steps of dt had."""
    # Starts at t = steps·dt, so that forces which depend on time see the times of the way there.
    clock = Clock.at(StepCount.of(0), jnp.asarray(dt * steps), jnp.asarray(-dt), key)
    aux = prepare_and_init(integrator, state, clock)
    return _compiled_advance(integrator, state, aux, clock, jnp.int32(steps))[0]


def _with_spaces_of(state: State, other: PyTree) -> Any:
    """`state` with the geometry of `other`, which plans may read."""
    is_space = lambda x: isinstance(x, AbstractSpace)
    return jax.tree.map(
        lambda own, theirs: theirs if is_space(own) else own, state, other, is_leaf=is_space
    )
