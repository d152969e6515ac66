"""Energy minimization: from a bad start to one that dynamics can begin with."""

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    Cache,
    CapacityError,
    Clock,
    ConvergenceError,
    Fault,
    Module,
    OverlapError,
    ParameterError,
    State,
    StepCount,
    cast_floats,
    collect_faults,
    data,
    float_dtype,
    get_component,
    grow_caches,
    has_overflow,
    put_component,
    replace_fields,
    safe_divide,
)

from ._particles import ParticleIncrement, Particles
from .forces import AbstractForce, Forces, Pairwise

# FIRE's own numbers (Guénolé et al., table 2); physics does not depend on them.
DELAY, FASTER, SLOWER, MIXING, LESS_MIXING = 20, 1.1, 0.5, 0.25, 0.99
LONGEST, FORGETTING = 0.25, 0.97  # time step by stiffness, and how long a stiffness is remembered
STEPS_PER_CALL = 500  # of a compiled program, between which an interrupt is noticed
MAX_GROWTHS = 30

Motions = dict[str | None, Array]  # `[n d]` by component


class MinimizationResult(NamedTuple):
    """What `minimize` found.

    - `state`: the minimized state; velocities are as they were.
    - `max_force`: the largest force on a particle, force unit.
    - `steps`: how many steps it took.
    - `converged`: whether `max_force` is within the tolerance.
    """

    state: State
    max_force: float
    steps: int
    converged: bool


class _Descent(Module):
    """Where a descent stands. Velocities are FIRE's own, of particles of unit mass."""

    state: State
    caches: tuple[Cache, ...] | None  # None where only the rest is compared
    force: Motions
    velocity: Motions
    moves: Motions
    max_force: Float[Array, ""] = data()
    dt: Float[Array, ""] = data()
    mixing: Float[Array, ""] = data()
    stiffness: Float[Array, ""] = data()
    downhill: Int[Array, ""] = data()
    step: Int[Array, ""] = data()
    done: Bool[Array, ""] = data()


def minimize(
    force: AbstractForce | Forces,
    state: State,
    *,
    tolerance: float = 1e-3,
    steps: int = 20_000,
    max_move: float | None = None,
    t: float = 0.0,
    must_converge: bool = True,
) -> MinimizationResult:
    """Move particles downhill until no force exceeds `tolerance`: FIRE, which needs forces only.

        v ← (1 − α) v + α |v| F/|F|,   stop whenever F·v < 0

    Damped dynamics of unit masses whose time step finds itself. No particle moves further than
    `max_move` in a step, so that the worst overlaps come apart gently.

    **Arguments:**

    - `force`: a force or a sum of forces, on one or several particle components.
    - `state`: where to start from.
    - `tolerance`: largest force on a particle that counts as none, force unit.
    - `steps`: at most so many.
    - `max_move`: length; a tenth of the mean distance between particles if left out.
    - `t`: the time at which forces that depend on time are taken.
    - `must_converge`: raise where the tolerance is not met; otherwise return what there is.

    **Returns:** a `MinimizationResult`; `minimize(force, atoms).state` is what a simulation starts from.

    **Errors:** `ConvergenceError` saying how far it came; `OverlapError` for particles on exactly
    the same spot, whose force has no direction.

    **Good values:** the tolerance for reduced units or eV/Å: 1e-3; some 200 to 2 000 steps. Merely
    to undo overlaps, a tolerance of some hundred times the typical force of the liquid is enough.

    **Notes:** runs on the host, like `run`: not inside jit. Frozen particles stay. Exact pair sums
    are summed plainly. A local minimum, not the lowest.

    **Reference:** Bitzek, Koskinen, Gähler, Moseler & Gumbsch, Phys. Rev. Lett. 97, 170201 (2006);
    version 2.0: Guénolé et al., Comput. Mater. Sci. 175, 109584 (2020), algorithm 2.
    """
    dtype = float_dtype(state)
    forces = cast_floats(_plain_sums(Forces.of(force)), dtype)
    if not (tolerance > 0 and steps > 0):
        raise ParameterError(f"tolerance and steps must be positive; got {tolerance} and {steps}")
    components = [get_component(state, name) for name in forces.components]
    if max_move is None:
        spacings = [_spacing(particles) for particles in components]
        max_move = min((s for s in spacings if s > 0), default=0.0) / 10
    if not max_move > 0:
        raise ParameterError(f"give max_move=…, a small positive length; got {max_move}")
    numbers = [jnp.asarray(x, dtype) for x in (tolerance, max_move, t)]
    now = _begin(forces, state, dtype)
    growths = 0
    while True:
        limit = jnp.int32(min(steps, int(now.step) + STEPS_PER_CALL))
        now = _descend(forces, now, limit, numbers)
        if bool(has_overflow(now.caches)):
            growths += 1
            if growths > MAX_GROWTHS:
                raise CapacityError(f"neighbor lists still overflow after growing {growths} times")
            # The force is poisoned, but nothing has moved by it: go on from here.
            now = replace(now, caches=grow_caches(now.caches, now.caches)[0])
        elif int(now.step) >= steps or not float(now.max_force) > tolerance:
            break
    largest = float(now.max_force)
    if not np.isfinite(largest):
        health = collect_faults(now.caches)
        if Fault.OVERLAP not in health.faults():
            health.check("minimize")
        raise OverlapError(
            "minimize: a force is not a number; two particles may sit on exactly the same spot, "
            "where it has no direction. Move one of them a little."
        )
    converged = largest <= tolerance
    if must_converge and not converged:
        raise ConvergenceError(
            f"minimize: the largest force is {largest:.3g} after {steps} steps, the tolerance "
            f"{tolerance:g}. Give more steps, a tolerance that {dtype} can reach, or "
            "must_converge=False to go on with what there is"
        )
    return MinimizationResult(now.state, largest, int(now.step), converged)


def _begin(forces: Forces, state: State, dtype: np.dtype) -> _Descent:
    still = {
        name: jnp.zeros_like(get_component(state, name).position) for name in forces.components
    }
    zero, none = jnp.zeros((), dtype), jnp.int32(0)
    return _Descent(
        state,
        forces.init(state),
        force=still,
        velocity=still,
        moves=still,
        max_force=zero,
        dt=zero,
        mixing=jnp.asarray(MIXING, dtype),
        stiffness=zero,
        downhill=none,
        step=none,
        done=jnp.array(False),
    )


@eqx.filter_jit
def _descend(
    forces: Forces, now: _Descent, limit: Int[Array, ""], numbers: list[Array]
) -> _Descent:
    """Up to `limit` steps in all, less where it converges or a cache is too small."""
    tolerance, max_move, _ = numbers

    def body(now: _Descent) -> _Descent:
        # The only place where forces are called: they are by far the most to compile.
        evaluated = _with_forces(forces, now, numbers)
        overflowed = has_overflow(evaluated.caches)
        done = ~(evaluated.max_force > tolerance) | overflowed | (now.step >= limit)
        moved = _fire_step(evaluated, max_move)

        def choose(before: Array, at_rest: Array, moved: Array) -> Array:
            # A force that a full cache has poisoned must leave no trace.
            return jnp.where(overflowed, before, jnp.where(done, at_rest, moved))

        choices = (replace(descent, caches=None) for descent in (now, evaluated, moved))
        return replace(jax.tree.map(choose, *choices), caches=evaluated.caches, done=done)

    now = replace(now, done=jnp.array(False))
    return jax.lax.while_loop(lambda now: ~now.done, body, now)


def _fire_step(now: _Descent, max_move: Float[Array, ""]) -> _Descent:
    """One step: semi-implicit Euler with FIRE's mixing."""
    names = tuple(now.force)
    power = _dot(now, now.force, now.velocity)
    down, up = power > 0, power < 0  # neither in the first step, at rest
    downhill = jnp.where(down, now.downhill + 1, 0)
    may_accelerate = downhill > DELAY
    mixing = jnp.where(may_accelerate, now.mixing * LESS_MIXING, now.mixing)
    mixing = jnp.where(up, MIXING, mixing)
    # At first, the strongest force moves its particle by a tenth of what is allowed.
    first = jnp.sqrt(0.1 * safe_divide(max_move, now.max_force))
    dt = jnp.where(now.dt > 0, now.dt, first)
    dt = dt * jnp.where(up, SLOWER, jnp.where(may_accelerate, FASTER, 1.0)).astype(dt.dtype)
    # The stiffest vibration met lately, ω² = |ΔF|/|Δx|, must stay stable: dt well below 2/ω.
    stiff = now.stiffness > 0
    longest = LONGEST / jnp.sqrt(jnp.where(stiff, now.stiffness, 1))
    dt = jnp.where(stiff, jnp.minimum(dt, longest), dt)

    velocity = {k: jnp.where(up, 0, now.velocity[k]) + dt * now.force[k] for k in names}
    speed = jnp.sqrt(_dot(now, velocity, velocity))
    along = mixing * safe_divide(speed, jnp.sqrt(_dot(now, now.force, now.force)))
    state, moves = now.state, {}
    for k in names:
        mixed = (1 - mixing) * velocity[k] + along * now.force[k]
        length = dt * _size(mixed)
        velocity[k] = mixed * jnp.minimum(1, safe_divide(max_move, length))
        # Past the minimum along v: half a step back.
        moves[k] = jnp.where(up, -0.5 * dt, 0) * now.velocity[k] + dt * velocity[k]
        state = put_component(
            state, k, get_component(state, k).shift(ParticleIncrement(position=moves[k]))
        )
    now = replace(now, state=state, velocity=velocity, moves=moves, dt=dt, mixing=mixing)
    return replace(now, downhill=downhill, step=now.step + 1)


def _dot(now: _Descent, a: Motions, b: Motions) -> Float[Array, ""]:
    return sum(get_component(now.state, k).space.sum(jnp.sum(a[k] * b[k])) for k in a)


def _with_forces(forces: Forces, now: _Descent, numbers: list[Array]) -> _Descent:
    """`now` with the forces at its positions, and how stiff the last move found them."""
    clock = Clock.at(StepCount.of(0), numbers[2], jnp.zeros_like(numbers[2]))
    total, caches = forces(clock, now.state, now.caches)
    # An overflow to infinity still points somewhere; what is no number stays so, and stops all.
    most = float(jnp.finfo(numbers[2].dtype).max) ** 0.4
    force = {
        k: jnp.where(_frozen(get_component(now.state, k)), 0, jnp.clip(total[k], -most, most))
        for k in total
    }
    sizes = [get_component(now.state, k).space.max(jnp.max(_size(f))) for k, f in force.items()]
    largest = jnp.max(jnp.stack(sizes))
    change = {k: force[k] - now.force[k] for k in force}
    stiffness = jnp.sqrt(safe_divide(_dot(now, change, change), _dot(now, now.moves, now.moves)))
    stiffness = jnp.maximum(stiffness, FORGETTING * now.stiffness)
    return replace(now, caches=caches, force=force, max_force=largest, stiffness=stiffness)


def _size(x: Float[Array, "n d"]) -> Float[Array, "n 1"]:
    return jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True))


def _plain_sums(forces: Forces) -> Forces:
    """`forces` without exact sums, whose integers cannot hold the forces of overlaps."""

    def plain(term: AbstractForce) -> AbstractForce:
        if not (isinstance(term, Pairwise) and term.exact):
            return term
        return replace_fields(term, {"exact": False, "quantum": None})

    return Forces(tuple(plain(term) for term in forces.terms), forces.term_names)


def _frozen(particles: Particles) -> Bool[Array, "n 1"]:
    if particles.frozen is None:
        return jnp.zeros((particles.num_slots, 1), bool)
    return particles.frozen[:, None]


def _spacing(particles: Particles) -> float:
    """Mean distance between neighbors, roughly."""
    volume = float(particles.space.volume)
    if not np.isfinite(volume):
        extent = np.ptp(np.asarray(particles.position), axis=0).max(initial=0)
        volume = float(extent) ** particles.dimension
    return (volume / max(particles.num_particles, 1)) ** (1 / particles.dimension)
