"""A sweep over ρ of many Lorenz systems, classical RK4 with constant steps, against other ways to do it.

`loop` runs members one after the other from Python, each compiled once (a few hundred, rate per member);
`vmap` is `simulate` under `vmap`, its frames fetched, without files, retries and judgment; `physkit` the whole
sweep. Million member-steps per second.
"""

import time

from benchmarks._harness import print_measurement, seconds, wait_for_turn

DT, STEPS = 1e-3, 1000
UNIT = "M member-steps/s"


def values(size: int):
    import numpy as np

    return np.linspace(20.0, 40.0, size)


def lorenz(t, y, args):
    import jax.numpy as jnp

    del t
    x, v, z = y
    return jnp.stack([10 * (v - x), x * (args - z) - v, x * v - 8 / 3 * z])


def model():
    import jax.numpy as jnp

    return simulation(jnp.asarray(28.0, float)), jnp.array([1.0, 1.0, 25.0])


def simulation(rho):
    """Ten frames are kept: a sweep judges its members that often."""
    import physkit as pk

    record = pk.Every(100, position=lambda now: now.state)
    flow = pk.RK4(pk.Function(lorenz, rho))
    return pk.Simulation(flow, dt=DT, observers=record, adjoint=pk.adjoints.Direct())


def with_physkit(size: int, precision: str) -> dict:
    import physkit as pk

    del precision
    rho = lambda m: pk.find(m, pk.Function).args
    over = pk.SweepAxis(rho, values(size), name="rho")
    whole = pk.Sweep(model(), STEPS, over=over)
    work = lambda: pk.sweep(whole, chunk_size=size, progress=False)
    return timed(work, size)


def with_vmap(size: int, precision: str) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk

    del precision
    _, start = model()

    @jax.jit
    @jax.vmap
    def run(rho):
        return pk.simulate(simulation(rho), start, STEPS).frames

    rho = jnp.asarray(values(size), float)
    return timed(lambda: jax.device_get(run(rho)), size)


def with_loop(size: int, precision: str) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk

    del precision
    _, start = model()
    some = min(size, 200)

    @jax.jit
    def run(rho):
        return pk.simulate(simulation(rho), start, STEPS).frames

    rho = [jnp.asarray(r, float) for r in values(some)]
    return timed(lambda: [jax.block_until_ready(run(r)) for r in rho], some)


def with_diffrax(size: int, precision: str) -> dict:
    import diffrax
    import jax
    import jax.numpy as jnp
    import numpy as np

    del precision

    class RK4(diffrax.AbstractERK):
        """The same method, so that both evaluate the right-hand side four times a step."""

        tableau = diffrax.ButcherTableau(
            a_lower=(np.array([0.5]), np.array([0.0, 0.5]), np.array([0.0, 0.0, 1.0])),
            b_sol=np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6]),
            b_error=np.array([0.0, 0.0, 0.0, 0.0]),
            c=np.array([0.5, 0.5, 1.0]),
        )
        interpolation_cls = diffrax.ThirdOrderHermitePolynomialInterpolation.from_k

        def order(self, terms):
            return 4

    start = jnp.array([1.0, 1.0, 25.0])

    @jax.jit
    @jax.vmap
    def run(rho):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lorenz), RK4(), 0.0, DT * STEPS, DT, start, args=rho,
            stepsize_controller=diffrax.ConstantStepSize(), max_steps=STEPS + 1,
        )  # fmt: skip
        return solution.ys[-1]

    rho = jnp.asarray(values(size), float)
    return timed(lambda: jax.block_until_ready(run(rho)), size)


def _with_numba(size: int, precision: str, threads: int) -> dict:
    import numba
    import numpy as np

    numba.set_num_threads(threads)
    kind = np.dtype(precision).type
    dt, beta = kind(DT), kind(8 / 3)
    half, sixth, two, ten = kind(0.5), kind(1 / 6), kind(2), kind(10)

    @numba.njit(inline="always")
    def rate(x, v, z, rho):
        return ten * (v - x), x * (rho - z) - v, x * v - beta * z

    @numba.njit(parallel=True)
    def run(rho, out):
        for m in numba.prange(len(rho)):
            r = rho[m]
            x, v, z = kind(1), kind(1), kind(25)
            for _ in range(STEPS):
                a1, b1, c1 = rate(x, v, z, r)
                h = half * dt
                a2, b2, c2 = rate(x + h * a1, v + h * b1, z + h * c1, r)
                a3, b3, c3 = rate(x + h * a2, v + h * b2, z + h * c2, r)
                a4, b4, c4 = rate(x + dt * a3, v + dt * b3, z + dt * c3, r)
                w = sixth * dt
                x += w * (a1 + two * (a2 + a3) + a4)
                v += w * (b1 + two * (b2 + b3) + b4)
                z += w * (c1 + two * (c2 + c3) + c4)
            out[m, 0], out[m, 1], out[m, 2] = x, v, z

    rho, out = values(size).astype(precision), np.zeros((size, 3), precision)
    return timed(lambda: run(rho, out), size)


def with_numba_1(size: int, precision: str) -> dict:
    return _with_numba(size, precision, 1)


def with_numba_2(size: int, precision: str) -> dict:
    return _with_numba(size, precision, 2)


def timed(work, size: int) -> dict:
    began = time.perf_counter()
    work()
    first = time.perf_counter() - began
    wait_for_turn()
    cpu = time.process_time()
    best = seconds(work)
    # On a machine that others use, seconds of the processor mean more than those of the clock.
    cpu = (time.process_time() - cpu) / 3
    count = size * STEPS / 1e6
    return {
        "rate": count / best,
        "unit": UNIT,
        "first": first,
        "note": f"{count / cpu:.3g} a CPU second",
    }


if __name__ == "__main__":
    print_measurement({
        "physkit": with_physkit,
        "vmap": with_vmap,
        "loop": with_loop,
        "diffrax": with_diffrax,
        "numba-1": with_numba_1,
        "numba-2": with_numba_2,
    })  # fmt: skip
