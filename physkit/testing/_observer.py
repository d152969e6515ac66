"""`check_observer`: an observer inside runs, pieces of runs, batches and derivatives."""

import dataclasses
import functools
import inspect
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    AbstractTerm,
    Module,
    PyTree,
    State,
    cast_floats,
    closure_values,
    default_values,
    explain_call,
    is_users_class,
    users_functions,
    values_outside,
)
from physkit.integrators import AbstractIntegrator
from physkit.observe import AbstractObserver
from physkit.simulate import Simulation, init, run, simulate

from ._compare import check_equal, check_finite, check_structure, double_precision
from ._gradient import check_gradient
from ._perturbed_states import perturb_positions
from ._simulation import reinitialize_carry
from ._trees import check_batch, modules

_PHYSICS = (AbstractTerm, AbstractIntegrator, Simulation)


@explain_call
@double_precision()
def check_observer(
    observer: AbstractObserver,
    sim: Simulation,
    state: State,
    *,
    observations: int = 6,
    key: jax.Array | None = None,
    ignore: Sequence[str] = (),
    differentiable: bool = True,
    compare: str = "solve",
) -> None:
    """An observer keeps every promise that the loop, restarts and fits build on.

        check_observer(Every(2, energy=TotalEnergy()), sim, state)

    It closes over no term, integrator or simulation (it would keep old parameters: wrong energies,
    and gradients that look right); its state keeps its structure; what it records and sums
    up does not depend on where a run is cut into pieces, bit for bit; numbers are finite; `vmap`
    equals a loop; and derivatives of frames and summary by the state and all parameters of the simulation
    equal finite differences.

    **Arguments:**

    - `sim`, `state`: what is observed; the simulation's own observers are left out.
    - `observations`: how many after step 0, at least 3.
    - `differentiable`: leave out derivatives, for histograms and counts.
    - `ignore`, `compare`: as for `check_simulation`.

    **Errors:** `AssertionError` that names what is wrong, by how much, and where.
    """
    what = type(observer).__name__
    check_no_physics_inside(observer, what)
    sim, state, observer = cast_floats((sim, state, observer), jnp.float64)
    sim = dataclasses.replace(sim, observers=(observer,), guards=())
    steps = observations * sim.observation_period

    start = init(sim, state, key=key)
    result = jax.jit(lambda c: simulate(sim, c, sim.observation_period))(start)
    check_structure(
        result.carry.observer_state,
        start.observer_state,
        f"{what}: its state after an observation",
    )

    # By `run`: its chunks and carries are what a user restarts from.
    uninterrupted = run(sim, state, steps, key=key, progress=False)
    check_finite(uninterrupted.frames, f"{what}: the frames")
    # One observation, then all others: pieces as uneven as they can be.
    first = run(sim, state, sim.observation_period, key=key, progress=False)
    rest = run(sim, first.carry, steps - sim.observation_period, progress=False)
    frames = jax.tree.map(lambda *x: np.concatenate(x), first.frames, rest.frames)
    check_equal(frames, uninterrupted.frames, f"{what}: frames of a run in pieces", "same")
    check_equal(
        rest.summary, uninterrupted.summary, f"{what}: the summary of a run in pieces", "same"
    )

    def observe_twice(carry):
        result = simulate(sim, carry, 2 * sim.observation_period)
        return {"frames": result.frames, "summary": result.summary}

    members = [start, reinitialize_carry(sim, perturb_positions(state, 1, 0.1), start)]
    check_batch(observe_twice, members, what, compare)
    # Three observations: enough for what accumulates, few enough for finite differences.
    if differentiable:

        def observe_thrice(at):
            carry = reinitialize_carry(at["sim"], at["state"], start)
            result = simulate(at["sim"], carry, 3 * sim.observation_period)
            return {"frames": result.frames, "summary": result.summary}

        everything = {"sim": sim, "state": state}
        check_gradient(
            observe_thrice, everything, ignore=ignore, require_gradient=(), directions=1, what=what
        )


def check_no_physics_inside(observer: AbstractObserver, what: str) -> None:
    """Neither a field nor a function of the observer holds a term, an integrator or a simulation."""
    # From the inside out, so that the innermost is named.
    for module in reversed(modules(observer)):
        for field in dataclasses.fields(module):
            value = getattr(module, field.name, None)
            physics = _physics_in(value)
            if physics is not None:
                raise AssertionError(
                    f"{what}: {type(module).__name__}.{field.name} holds a {type(physics).__name__}. An "
                    "observer that closes over physics keeps old parameters; read the running terms "
                    "from the snapshot instead: now.terms(), now.integrator"
                )


def _physics_in(value: PyTree, seen: dict[int, Any] | None = None) -> Any:
    """The first term, integrator or simulation that `value` holds or reads; None without any.

    - `seen`: what was looked at before, by identity: functions may call one another.
    """
    seen = {} if seen is None else seen
    for node in jax.tree.leaves(value, is_leaf=lambda x: _is_physics(x) or callable(x)):
        if _is_physics(node):
            return node
        if id(node) not in seen:
            seen[id(node)] = node
            physics = _physics_in(_parts(node), seen)
            if physics is not None:
                return physics
    return None


def _parts(node: Any) -> list[Any]:
    """What a function, or an object of a user's class, has at hand when it is called."""
    # A partial and a bound method carry their physics along as arguments and as `self`.
    if isinstance(node, functools.partial):
        return [node.func, *node.args, *node.keywords.values()]
    if inspect.ismethod(node):
        return [node.__func__, node.__self__]
    if isinstance(node, Module):
        return [getattr(node, field.name, None) for field in dataclasses.fields(node)]
    # Those below decorators, such as `jax.jit`, too.
    functions = [node] if inspect.isfunction(node) else users_functions(node)
    parts: list[Any] = []
    for function in functions:
        parts += [*closure_values(function).values(), *default_values(function).values()]
        if users_functions(function):
            # Globals count, too: a function that reads the script's `force` keeps that of the start.
            parts += values_outside(function).values()
    return parts + (list(vars(node).values()) if is_users_class(type(node)) else [])


def _is_physics(value: PyTree) -> bool:
    return isinstance(value, _PHYSICS) or (
        hasattr(value, "force_over_distance") and not isinstance(value, type)
    )
