"""Generations of a search over ρ of many Lorenz systems, against the plain sweep of as many members.

Both advance all members by classical RK4 with constant steps. A generation also draws members, ranks them and
learns from them; the sweep judges them and brings their frames to the host. Million member-steps per second.
"""

import warnings

from benchmarks._harness import print_measurement
from benchmarks.ensemble_lorenz import DT, STEPS, lorenz, timed, with_physkit

GENERATIONS = 5


def with_search(size: int, precision: str) -> dict:
    import jax.numpy as jnp

    import physkit as pk

    del precision
    flow = pk.RK4(pk.Function(lorenz, jnp.asarray(28.0, float)))
    model = pk.Simulation(flow, dt=DT), jnp.array([1.0, 1.0, 25.0])
    method = pk.fitting.CMAES(population=size, max_generations=GENERATIONS, tolerance=0.0)

    def loss(model):
        return jnp.sum(pk.simulate(*model, STEPS).carry.state ** 2)

    def work():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it ends after its generations
            where = lambda m: pk.find(m, pk.Function).args
            pk.fit(loss, model, where=where, method=method, key=0, progress=False)

    return timed(work, GENERATIONS * size)


if __name__ == "__main__":
    print_measurement({"search": with_search, "sweep": with_physkit})
