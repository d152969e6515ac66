"""Masses and orbits of the giant planets from the Sun's wobble, 34 numbers. Fits per minute.

The same residuals and start: `fit` with Jacobians through the simulation, and scipy's `least_squares` with
Jacobians by finite differences of the same compiled simulation, whose 35 evaluations a Jacobian are as
fast as one can make them there: compiled once, arrays in, arrays out.
"""

import time

from benchmarks._harness import print_measurement

UNIT = "fits/min"


def problem():
    """Residuals as a function of the 34 numbers, in the coordinates of `fit`, and where they start."""
    import jax.numpy as jnp
    import numpy as np

    import physkit as pk
    from physkit.systems.gravity._giant_planets import (
        as_measured,
        giant_planets,
        inertial,
        solar_tracks,
    )
    from physkit.systems.gravity._weigh_planets import FIRST_GUESS

    tracks = solar_tracks()
    sim, state = giant_planets(
        mass=jnp.asarray(FIRST_GUESS),
        position=inertial(tracks.measured[0]),
        velocity=inertial(tracks.velocity),
    )
    steps = sim.observation_period * (len(tracks.date) - 1)

    def residuals(model):
        simulated = as_measured(pk.simulate(*model, steps).frames["position"])
        return (simulated - tracks.measured) / tracks.accuracy[None, :, None]

    where = lambda m: {
        "mass": m[1].mass[1:],
        "position": m[1].position,
        "velocity": m[1].velocity,
    }
    return residuals, (sim, state), where, np.asarray(FIRST_GUESS)


def with_physkit(size: int, precision: str) -> dict:
    import numpy as np

    import physkit as pk

    del size, precision
    residuals, model, where, _ = problem()
    seconds, found = [], None
    for _ in range(2):  # both compile: that is part of what a user waits for
        began = time.perf_counter()
        found = pk.fit(
            residuals,
            model,
            where=where,
            bounds={"mass": pk.bounds.PositiveBound()},
            progress=False,
        )
        seconds.append(time.perf_counter() - began)
    ratio = 1 / np.asarray(found.values["mass"])
    note = f"{found.steps} steps, Sun/Jupiter {ratio[0]:.4f}, 2·loss {2 * found.loss:.4f}"
    return {"rate": 60 / min(seconds), "unit": UNIT, "first": seconds[0], "note": note}


def with_scipy(size: int, precision: str) -> dict:
    """Scaled as `fit` scales, by MINPACK."""
    del size, precision
    return _by_scipy("lm", scaled=True)


def with_scipy_defaults(size: int, precision: str) -> dict:
    """As `least_squares(function, start)` does it."""
    del size, precision
    return _by_scipy("trf", scaled=False)


def _by_scipy(method: str, *, scaled: bool) -> dict:
    import jax
    import numpy as np
    from scipy.optimize import least_squares

    from physkit.fit import select

    residuals, model, where, guess = problem()
    chosen = select(where, model)
    parts = {name: np.asarray(x) for name, x in chosen.get(model).items()}
    parts["mass"] = np.log(guess)
    shapes = {name: x.shape for name, x in parts.items()}
    start = np.concatenate([x.ravel() for x in parts.values()])
    scale = np.where(start == 0, 1.0, np.abs(start))
    scale[: len(guess)] = 1.0

    @jax.jit
    def compiled(flat):
        values, begin = {}, 0
        for name, shape in shapes.items():
            end = begin + int(np.prod(shape))
            values[name] = flat[begin:end].reshape(shape)
            begin = end
        values["mass"] = jax.numpy.exp(values["mass"])
        return residuals(chosen.put(model, values)).reshape(-1)

    began = time.perf_counter()
    compiled(start).block_until_ready()
    compiling = time.perf_counter() - began
    evaluations = [0]

    def function(x):
        evaluations[0] += 1
        return np.asarray(compiled(x))

    began = time.perf_counter()
    scale = scale if scaled else 1.0
    found = least_squares(function, start, method=method, x_scale=scale, xtol=1e-10, ftol=1e-10)
    took = time.perf_counter() - began
    note = (
        f"{evaluations[0]} evaluations, Sun/Jupiter {1 / np.exp(found.x[0]):.4f}, 2·loss "
        f"{2 * found.cost:.4f}"
    )
    whole = compiling + took
    return {"rate": 60 / whole, "unit": UNIT, "compile": compiling, "first": whole, "note": note}


if __name__ == "__main__":
    print_measurement(
        {"physkit": with_physkit, "scipy": with_scipy, "scipy-defaults": with_scipy_defaults}
    )
