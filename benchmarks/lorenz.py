"""An ensemble of Lorenz systems, classical RK4 with constant steps. M trajectory-steps per second."""

import time

from benchmarks._harness import print_measurement, seconds

DT, STEPS = 1e-3, 1000
UNIT = "M trajectory-steps/s"


def lorenz(t, y, args=None):
    """σ = 10, ρ = 28, β = 8/3."""
    import jax.numpy as jnp

    del t, args
    x, v, z = y
    return jnp.stack([10 * (v - x), x * (28 - z) - v, x * v - 8 / 3 * z])


def ensemble(size: int):
    import jax

    return jax.random.normal(jax.random.key(0), (size, 3)) + jax.numpy.array([0.0, 0.0, 25.0])


def timed(advance, members, size: int) -> dict:
    import jax

    began = time.perf_counter()
    compiled = jax.jit(advance).lower(members).compile()
    compiling = time.perf_counter() - began
    began = time.perf_counter()
    jax.block_until_ready(compiled(members))
    first = time.perf_counter() - began
    best = seconds(lambda: jax.block_until_ready(compiled(members)))
    return {"rate": size * STEPS / best / 1e6, "unit": UNIT, "compile": compiling, "first": first}


def with_physkit(size: int, precision: str) -> dict:
    import jax

    import physkit as pk

    del precision
    sim = pk.Simulation(pk.RK4(lorenz), dt=DT, adjoint=pk.adjoints.Direct())
    return timed(jax.vmap(lambda y: pk.simulate(sim, y, STEPS).state), ensemble(size), size)


def with_diffrax(size: int, precision: str) -> dict:
    import diffrax
    import jax
    import numpy as np

    del precision

    class RK4(diffrax.AbstractERK):
        """The same method, so that both codes evaluate the right-hand side four times a step."""

        tableau = diffrax.ButcherTableau(
            a_lower=(np.array([0.5]), np.array([0.0, 0.5]), np.array([0.0, 0.0, 1.0])),
            b_sol=np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6]),
            b_error=np.array([0.0, 0.0, 0.0, 0.0]),
            c=np.array([0.5, 0.5, 1.0]),
        )
        interpolation_cls = diffrax.ThirdOrderHermitePolynomialInterpolation.from_k

        def order(self, terms):
            return 4

    def advance(y):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lorenz), RK4(), 0.0, DT * STEPS, DT, y,
            stepsize_controller=diffrax.ConstantStepSize(), max_steps=STEPS + 1,
        )  # fmt: skip
        return solution.ys[-1]

    return timed(jax.vmap(advance), ensemble(size), size)


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "diffrax": with_diffrax})
