"""A throw over hills that must bounce several times and then pass through a ring.

Where the ball meets the ground, its velocity jumps, and the moment of the jump depends on the throw.
Derivatives include that of the moment, so that some steps of Levenberg–Marquardt find the throw.
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit.integrators import Event, Events

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
GRAVITY, RESTITUTION, DT, STEPS = 9.81, 0.85, 0.004, 300 if QUICK else 600
RING = jnp.array([4.75, 0.5])  # where the ball is to be at the end


def ground(x):
    return 0.12 * jnp.sin(1.6 * x)


def bounce(t, ball):
    """The velocity behind a bounce: its part along the normal turns round, and shrinks."""
    x, _, vx, vy = ball
    normal = jnp.stack([-0.192 * jnp.cos(1.6 * x), jnp.ones_like(x)])
    normal = normal / jnp.sqrt(jnp.sum(normal**2))
    velocity = jnp.stack([vx, vy])
    velocity = velocity - (1 + RESTITUTION) * jnp.sum(velocity * normal) * normal
    return jnp.concatenate([jnp.stack([x, ground(x)]), velocity])


hits_ground = Event(lambda t, ball: ball[1] - ground(ball[0]), bounce)
fall = pk.Function(lambda t, b: jnp.stack([b[2], b[3], 0 * b[2], 0 * b[3] - GRAVITY]))
watch = pk.Every(1, ball=lambda now: now.state)
# Of second order: between bounces the ball moves on a parabola, for which that is exact.
flight = pk.Simulation(Events(pk.SSPRK2(fall), hits_ground), dt=DT, observers=watch)


def path(throw):
    """Places and velocities of the ball, thrown from a height of 1 with this velocity, `[t, 4]`."""
    start = jnp.concatenate([jnp.array([0.0, 1.0]), throw])
    return pk.simulate(flight, start, STEPS).frames["ball"]


def miss(throw):
    return path(throw)[-1, :2] - RING


first = jnp.array([1.5, 1.0])
found = pk.fit(miss, first, where=lambda v: {"velocity": v}, progress=False)
best = found.model

# --- the derivative of the height at each moment by the speed of the throw ------------------------------
along = jnp.array([1.0, 0.0])
# One compiled program: the path, and its derivative by the first velocity.
path_and_slope = jax.jit(lambda v: jax.jvp(path, (v,), (along,)))
ball, slope = path_and_slope(best)
print(f"throw {np.asarray(best)}, misses by {float(jnp.linalg.norm(ball[-1, :2] - RING)):.1e}")
exact, h = slope[:, 1], 1e-6
differences = (path_and_slope(best + h * along)[0] - path_and_slope(best - h * along)[0])[:, 1] / (
    2 * h
)
t = np.arange(STEPS + 1) * DT
error = np.abs(np.asarray(exact - differences))
print(f"derivative against differences: median {np.median(error):.1e}")

with pk.plot.style():
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 3.0), layout="constrained", width_ratios=(2, 1)
    )
    x = np.linspace(-0.3, 5.3, 400)
    left.fill_between(x, np.asarray(ground(x)), -0.4, color="#8c6d46", alpha=0.5, lw=0)
    for throw, color, label in ((first, "#999999", "first guess"), (best, "#0072B2", "found")):
        ball = np.asarray(path_and_slope(throw)[0])
        left.plot(ball[:, 0], ball[:, 1], color=color, lw=1.5, label=label)
        left.plot(*ball[-1, :2], "o", color=color, ms=5)
    left.plot(*RING, "o", ms=15, mfc="none", mec="#D55E00", mew=2, label="ring")
    left.set(
        xlabel="$x$ / m", ylabel="height / m", xlim=(-0.2, 5.3), ylim=(-0.3, 1.4), aspect="equal"
    )
    left.legend(loc="upper right", ncols=3, frameon=False)
    right.plot(t, differences, color="#D55E00", lw=3, alpha=0.5, label="differences of two throws")
    right.plot(t, exact, color="#0072B2", lw=1.2, label="derivative through the bounces")
    right.set(xlabel="time / s", ylabel="∂ height / ∂ $v_x$ / s", xlim=(0, t[-1]))
    right.set_ylim(-0.8, 2.2)
    right.legend(loc="upper left")
    figure.savefig("bounces.png", dpi=130)
