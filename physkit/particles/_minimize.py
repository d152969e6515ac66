"""Energy minimization: turn a bad initial state into one from which dynamics can start."""

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
    ComponentError,
    ConvergenceError,
    Fault,
    Module,
    OverlapError,
    ParameterError,
    State,
    StepCount,
    as_state,
    cast_floats,
    collect_faults,
    data,
    drop_outdated_programs,
    explain_call,
    float_dtype,
    get_component,
    grow_caches,
    has_overflow,
    put_component,
    replace_fields,
    safe_divide,
)

from ._abstract_bodies import AbstractBodies
from ._particles import Particles
from .forces import AbstractForce, Forces, Pairwise

# Parameters of FIRE (Guénolé et al., table 2): N_delay, f_inc, f_dec, α_start, f_α. The minimum does not
# depend on them.
DELAY, FASTER, SLOWER, MIXING, LESS_MIXING = 20, 1.1, 0.5, 0.25, 0.99
LONGEST, FORGETTING = 0.25, 0.97  # largest dt times √stiffness; decay of the stiffness per step
STEPS_PER_CALL = 500  # per call of the compiled program; between calls an interrupt is noticed
MAX_GROWTHS = 30
PROBE = 1e-3  # displacement by which the stiffness is measured, in mean distances between particles

Vectors = dict[str | None, Array]  # `[n d]` by component


class MinimizationResult(NamedTuple):
    """What `minimize` found.

    - `state`: the minimized state; velocities are as they were.
    - `max_force`: the largest force on a particle, force unit.
    - `steps`: how many steps it took.
    - `converged`: whether `max_force` is within the tolerance.
    - `allowed_force`: the force that the tolerance came to, force unit.
    """

    state: State
    max_force: float
    steps: int
    converged: bool
    allowed_force: float

    def __repr__(self) -> str:
        verdict = "converged" if self.converged else "not converged"
        return (
            f"MinimizationResult: {verdict} after {self.steps} steps, largest force {self.max_force:.3g} "
            f"(allowed {self.allowed_force:.3g}); .state is where the particles are"
        )


class _Descent(Module):
    """The state of a descent. Velocities are FIRE's own, for particles of unit mass."""

    state: State
    caches: tuple[Cache, ...] | None  # None where only the other fields are selected from
    force: Vectors
    velocity: Vectors
    moves: Vectors
    max_force: Float[Array, ""] = data()
    dt: Float[Array, ""] = data()
    mixing: Float[Array, ""] = data()
    stiffness: Float[Array, ""] = data()
    downhill: Int[Array, ""] = data()
    step: Int[Array, ""] = data()
    done: Bool[Array, ""] = data()


@explain_call
def minimize(
    force: AbstractForce | Forces,
    state: State,
    *,
    tolerance: float = 1e-5,
    allowed_force: float | None = None,
    steps: int = 20_000,
    max_move: float | None = None,
    t: float = 0.0,
    must_converge: bool = True,
) -> MinimizationResult:
    """Move particles downhill until forces are small: FIRE, which needs forces only.

        v ← (1 − α) v + α |v| F/|F|,   stop whenever F·v < 0

    It has converged when no force exceeds `tolerance` · κ · a, where a is the mean distance between particles
    and κ the stiffness that holds them where they are: |ΔF|/|Δx| for small random displacements of all. Then
    particles are off their places by some `tolerance` of a, in any units.

    Damped dynamics of unit masses with an adaptive time step. No particle moves further than `max_move` in
    a step, so that even strong overlaps come apart gently.

    **Arguments:**

    - `force`: a force or a sum of forces, on one or several particle components.
    - `state`: where to start from.
    - `tolerance`: how small forces must become, without a unit.
    - `allowed_force`: the largest force on any particle at which to stop, force unit, instead of `tolerance`.
    - `steps`: the most steps.
    - `max_move`: length; a tenth of the mean distance between particles if left out.
    - `t`: the time at which forces that depend on time are taken.
    - `must_converge`: raise where the tolerance is not met; otherwise return the state so far.

    **Returns:** a `MinimizationResult`; `minimize(force, atoms).state` is what a simulation starts from.

    **Errors:** `ConvergenceError`, which names the largest force left; `OverlapError` for particles on
    exactly the same spot, whose force has no direction; `ComponentError` for rigid bodies.

    **Good values:** some 200 to 2 000 steps. A Lennard-Jones crystal has κa of some 260 ε/σ. Merely to undo
    overlaps, a tolerance of 1 is enough.

    **Notes:** runs on the host, like `run`: not inside jit. Frozen particles stay. Exact pair sums
    are summed plainly. A local minimum, not the lowest.

    **Reference:** Bitzek, Koskinen, Gähler, Moseler & Gumbsch, Phys. Rev. Lett. 97, 170201 (2006);
    version 2.0: Guénolé et al., Comput. Mater. Sci. 175, 109584 (2020), algorithm 2.
    """
    drop_outdated_programs(force)
    state = as_state(state)
    dtype = float_dtype(state)
    forces = cast_floats(_plain_sums(Forces.of(force)), dtype)
    if not (tolerance > 0 and steps > 0 and (allowed_force is None or allowed_force > 0)):
        raise ParameterError(
            f"tolerance, allowed_force and steps must be positive; got {tolerance}, {allowed_force} and {steps}"
        )
    for name in forces.components:
        part = get_component(state, name)
        if isinstance(part, AbstractBodies) and not isinstance(part, Particles):
            raise ComponentError(
                f"minimize moves point particles; {name or 'the state'} is {type(part).__name__}"
            )
    for term in forces.terms:
        if term.particles(state).num_particles == 0:
            raise ComponentError("there are no particles to move: the state has 0 of them")
    spacings = [_spacing(get_component(state, name)) for name in forces.components]
    spacing = min((s for s in spacings if s > 0), default=0.0)
    max_move = (spacing / 10 or None) if max_move is None else max_move
    if max_move is None or not max_move > 0:
        raise ParameterError(f"give max_move=…, a small positive length; got {max_move}")
    length = spacing or 10 * max_move
    allowed = 0.0 if allowed_force is None else allowed_force
    descent = _begin(forces, state, dtype)
    while True:
        # What is stiff changes on the way: overlaps are, until they are undone.
        if allowed_force is None:
            settings = [jnp.asarray(x, dtype) for x in (0.0, max_move, t)]
            descent, stiffness = _measure_stiffness(forces, descent, settings, PROBE * length)
            allowed = tolerance * stiffness * length
        settings = [jnp.asarray(x, dtype) for x in (allowed, max_move, t)]
        limit = min(steps, int(descent.step) + STEPS_PER_CALL)
        before, descent = int(descent.step), _descend_growing(forces, descent, limit, settings)
        # No step, or all of them: the tolerance is that of the state as it is. Also true of NaN forces.
        is_over = int(descent.step) >= steps or not float(descent.max_force) > allowed
        if is_over and (allowed_force is not None or int(descent.step) in (before, steps)):
            break
    max_force = float(descent.max_force)
    if not np.isfinite(max_force):
        health = collect_faults(descent.caches)
        if Fault.OVERLAP not in health.faults():
            health.check("minimize")
        raise OverlapError(
            "minimize: a force is not a number; two particles may sit on exactly the same spot, "
            "where it has no direction. Move one of them a little."
        )
    converged = max_force <= allowed
    if must_converge and not converged:
        raise ConvergenceError(
            f"minimize: the largest force is {max_force:.3g} after {steps} steps, allowed are "
            f"{allowed:.3g}. Give more steps, a tolerance that {dtype} can reach, or "
            "must_converge=False to continue with this state"
        )
    return MinimizationResult(descent.state, max_force, int(descent.step), converged, allowed)


def descend(
    forces: Forces,
    state: State,
    caches: tuple[Cache, ...],
    allowed_force: Float[Array, ""],
    max_move: Float[Array, ""],
    steps: int,
) -> tuple[State, tuple[Cache, ...], Float[Array, ""]]:
    """As `minimize`, inside of a traced program and until no force exceeds `allowed_force`, at most `steps`.

    Returns the state, the caches of the forces, whose overflow ends it early, and the largest force.
    """
    descent = _begin(forces, state, float_dtype(state), caches)
    settings = [allowed_force, max_move, jnp.zeros_like(max_move)]
    descent = _descend(forces, descent, jnp.int32(steps), settings)
    return descent.state, descent.caches, descent.max_force


def _descend_growing(
    forces: Forces, descent: _Descent, limit: int, settings: list[Array]
) -> _Descent:
    """`_descend`, with caches that grow where they overflow."""
    for _ in range(MAX_GROWTHS + 1):
        descent = _descend(forces, descent, jnp.int32(limit), settings)
        if not bool(has_overflow(descent.caches)):
            return descent
        # The force is NaN, but `_descend` has moved nothing by it: continue with larger caches.
        descent = replace(descent, caches=grow_caches(descent.caches, descent.caches)[0])
    raise CapacityError(f"neighbor lists still overflow after growing {MAX_GROWTHS} times")


def _measure_stiffness(
    forces: Forces, descent: _Descent, settings: list[Array], size: float
) -> tuple[_Descent, float]:
    """|ΔF|/|Δx| for random displacements of all particles by `size`; 0 where it is not finite.

    By the compiled program of the descent, without a step. Also returns `descent` with its forces.
    """
    # At its limit from the start, so that it only evaluates.
    descent = _descend_growing(forces, descent, 0, settings)
    rng, probe = np.random.default_rng(0), descent
    for name, force in descent.force.items():
        particles = get_component(probe.state, name)
        signs = rng.choice([-1.0, 1.0], force.shape)
        moved = particles.displace(jnp.asarray(size * signs, force.dtype))
        probe = replace(probe, state=put_component(probe.state, name, moved))
    probe = _descend_growing(forces, probe, 0, settings)
    change, moved = 0.0, 0
    for name, force in descent.force.items():
        mobile = ~np.asarray(_frozen_rows(get_component(descent.state, name)))
        difference = np.where(mobile, np.asarray(probe.force[name], float) - np.asarray(force), 0)
        change += float(np.sum(np.square(difference, dtype=float)))
        moved += int(mobile.sum()) * force.shape[1]
    stiffness = np.sqrt(change / max(moved, 1)) / size
    return descent, float(stiffness) if np.isfinite(stiffness) else 0.0


def _begin(
    forces: Forces, state: State, dtype: np.dtype, caches: tuple[Cache, ...] | None = None
) -> _Descent:
    zeros = {
        name: jnp.zeros_like(get_component(state, name).position) for name in forces.components
    }
    zero, zero_count = jnp.zeros((), dtype), jnp.int32(0)
    return _Descent(
        state,
        forces.init(state) if caches is None else caches,
        force=zeros,
        velocity=zeros,
        moves=zeros,
        max_force=zero,
        dt=zero,
        mixing=jnp.asarray(MIXING, dtype),
        stiffness=zero,
        downhill=zero_count,
        step=zero_count,
        done=jnp.array(False),
    )


@eqx.filter_jit
def _descend(
    forces: Forces, descent: _Descent, limit: Int[Array, ""], settings: list[Array]
) -> _Descent:
    """Descend until `limit` steps in all; stop earlier where it converges or a cache overflows."""
    tolerance, max_move, _ = settings

    def body(descent: _Descent) -> _Descent:
        # The only call of the forces, which take most of the time to compile. So the body evaluates first and
        # then decides whether to step; the last evaluation moves nothing.
        evaluated = _evaluate_forces(forces, descent, settings)
        overflowed = has_overflow(evaluated.caches)
        done = ~(evaluated.max_force > tolerance) | overflowed | (descent.step >= limit)
        moved = _fire_step(evaluated, max_move)

        def choose(before: Array, at_rest: Array, moved: Array) -> Array:
            # Forces from an overflowed cache are NaN: keep everything as it was before them.
            return jnp.where(overflowed, before, jnp.where(done, at_rest, moved))

        # Caches have no alternatives: those of the evaluation say by how much they overflowed.
        choices = (replace(choice, caches=None) for choice in (descent, evaluated, moved))
        return replace(jax.tree.map(choose, *choices), caches=evaluated.caches, done=done)

    descent = replace(descent, done=jnp.array(False))
    return jax.lax.while_loop(lambda descent: ~descent.done, body, descent)


def _fire_step(descent: _Descent, max_move: Float[Array, ""]) -> _Descent:
    """One step: semi-implicit Euler with FIRE's mixing."""
    names = tuple(descent.force)
    power = _dot(descent, descent.force, descent.velocity)
    is_downhill, is_uphill = power > 0, power < 0  # neither in the first step, at rest
    downhill = jnp.where(is_downhill, descent.downhill + 1, 0)
    may_accelerate = downhill > DELAY
    mixing = jnp.where(may_accelerate, descent.mixing * LESS_MIXING, descent.mixing)
    mixing = jnp.where(is_uphill, MIXING, mixing)
    # The first step moves the particle with the largest force by a tenth of `max_move`.
    first_dt = jnp.sqrt(0.1 * safe_divide(max_move, descent.max_force))
    dt = jnp.where(descent.dt > 0, descent.dt, first_dt)
    dt = dt * jnp.where(is_uphill, SLOWER, jnp.where(may_accelerate, FASTER, 1.0)).astype(dt.dtype)
    # Keep the stiffest vibration of recent steps, ω² = |ΔF|/|Δx|, stable: dt well below 2/ω.
    is_known_stiffness = descent.stiffness > 0
    longest_dt = LONGEST / jnp.sqrt(jnp.where(is_known_stiffness, descent.stiffness, 1))
    dt = jnp.where(is_known_stiffness, jnp.minimum(dt, longest_dt), dt)

    velocity = {
        k: jnp.where(is_uphill, 0, descent.velocity[k]) + dt * descent.force[k] for k in names
    }
    speed = jnp.sqrt(_dot(descent, velocity, velocity))
    # v ← (1 − α) v + α |v| F/|F|
    along_force = mixing * safe_divide(speed, jnp.sqrt(_dot(descent, descent.force, descent.force)))
    state, moves = descent.state, {}
    for k in names:
        mixed = (1 - mixing) * velocity[k] + along_force * descent.force[k]
        length = dt * _row_norms(mixed)
        velocity[k] = mixed * jnp.minimum(1, safe_divide(max_move, length))
        # Uphill the last step went past the minimum along v: go half of it back.
        moves[k] = jnp.where(is_uphill, -0.5 * dt, 0) * descent.velocity[k] + dt * velocity[k]
        state = put_component(state, k, get_component(state, k).displace(moves[k]))
    descent = replace(descent, state=state, velocity=velocity, moves=moves, dt=dt, mixing=mixing)
    return replace(descent, downhill=downhill, step=descent.step + 1)


def _dot(descent: _Descent, a: Vectors, b: Vectors) -> Float[Array, ""]:
    return sum(get_component(descent.state, k).space.sum(jnp.sum(a[k] * b[k])) for k in a)


def _evaluate_forces(forces: Forces, descent: _Descent, settings: list[Array]) -> _Descent:
    """`descent` with the forces at its positions, and the stiffness that the last move measured."""
    clock = Clock.at(StepCount.of(0), settings[2], jnp.zeros_like(settings[2]))
    total, caches = forces(clock, descent.state, descent.caches)
    # Clip infinite forces, which still have a direction, so that squares stay finite. NaN passes and stops.
    max_finite = float(jnp.finfo(settings[2].dtype).max) ** 0.4
    force = {}
    for k, f in total.items():
        particles = get_component(descent.state, k)
        clipped = jnp.where(_frozen_rows(particles), 0, jnp.clip(f, -max_finite, max_finite))
        force[k] = particles.constrain_force(clipped)
    sizes = [
        get_component(descent.state, k).space.max(jnp.max(_row_norms(f))) for k, f in force.items()
    ]
    max_force = jnp.max(jnp.stack(sizes))
    force_change = {k: force[k] - descent.force[k] for k in force}
    # |ΔF|/|Δx| of the last move
    squares = (_dot(descent, x, x) for x in (force_change, descent.moves))
    stiffness = jnp.sqrt(safe_divide(*squares))
    stiffness = jnp.maximum(stiffness, FORGETTING * descent.stiffness)
    return replace(descent, caches=caches, force=force, max_force=max_force, stiffness=stiffness)


def _row_norms(x: Float[Array, "n d"]) -> Float[Array, "n 1"]:
    return jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True))


def _plain_sums(forces: Forces) -> Forces:
    """`forces` without exact sums, whose range the forces of overlaps exceed."""

    def without_exact_sums(term: AbstractForce) -> AbstractForce:
        if not (isinstance(term, Pairwise) and term.exact):
            return term
        return replace_fields(term, {"exact": False, "quantum": None})

    return Forces(tuple(without_exact_sums(term) for term in forces.terms), forces.term_names)


def _frozen_rows(particles: Particles) -> Bool[Array, "n 1"]:
    if particles.frozen is None:
        return jnp.zeros((particles.num_slots, 1), bool)
    return particles.frozen[:, None]


def _spacing(particles: Particles) -> float:
    """Mean distance between neighbors, roughly."""
    # In open space, of the cube that the particles fill.
    volume = float(particles.space.volume)
    if not np.isfinite(volume):
        extent = np.ptp(np.asarray(particles.position), axis=0).max(initial=0)
        volume = float(extent) ** particles.dimension
    return (volume / max(particles.num_particles, 1)) ** (1 / particles.dimension)
