"""Direct gravity: n softened bodies, leapfrog, every pair every step. Rates are G pairs (n²) per second."""

import time

from benchmarks._harness import has_gpu, print_measurement, wait_for_turn

DT, SOFTENING = 1e-3, 0.01
UNIT = "G pairs/s"


def bodies(size: int):
    """A ball of unit radius and mass."""
    import numpy as np

    random = np.random.default_rng(0)
    direction = random.normal(size=(size, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * random.uniform(size=(size, 1)) ** (1 / 3), 0.1 * random.normal(
        size=(size, 3)
    )


def steps_for(size: int) -> int:
    """About a second of work; a GPU does a hundred times as much."""
    return max(10, int((6e10 if has_gpu() else 6e8) / size**2))


def with_physkit(size: int, precision: str) -> dict:
    import physkit as pk

    del precision
    position, velocity = bodies(size)
    stars = pk.Particles(position, velocity, mass=1 / size)
    sim = pk.Simulation(pk.Leapfrog(pk.DirectGravity(softening=SOFTENING)), dt=DT)
    steps = steps_for(size)
    began = time.perf_counter()
    result = pk.run(sim, stars, steps, progress=False)
    first = time.perf_counter() - began
    wait_for_turn()
    best = float("inf")
    for _ in range(3):
        result = pk.run(sim, result.carry, steps, progress=False)
        best = min(best, result.seconds)
    return {"rate": size**2 * steps / best / 1e9, "unit": UNIT, "first": first}


def with_rebound(size: int, precision: str) -> dict:
    import rebound

    del precision
    position, velocity = bodies(size)
    sim = rebound.Simulation()
    sim.integrator = "leapfrog"
    sim.gravity = "basic"
    sim.softening = SOFTENING
    sim.dt = DT
    for (x, y, z), (u, v, w) in zip(position, velocity, strict=True):
        sim.add(m=1 / size, x=x, y=y, z=z, vx=u, vy=v, vz=w)
    steps = max(5, steps_for(size) // 3)
    sim.steps(2)
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        sim.steps(steps)
        best = min(best, time.perf_counter() - began)
    return {"rate": size**2 * steps / best / 1e9, "unit": UNIT, "note": "one thread"}


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "rebound": with_rebound})
