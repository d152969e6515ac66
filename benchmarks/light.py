"""Yee's steps in vacuum, `size`³ cells that repeat. M cells per second.

physkit as `run` does it, with both cores; the same curls by `jnp.roll` in a loop; numba as two fused loops, the
least that two passes over six components can be, on one and two threads; fdtdx; Meep, a Debian package for the
system's own Python (`mpirun -np 2 /usr/bin/python3 -m benchmarks.light --code meep …`), which computes in
float64.
"""

import time

from benchmarks._harness import ALL_CORES, describe_traffic, print_measurement, seconds

STEPS, UNIT = 20, "M cells/s"
COURANT = 0.5


def report(size: int, best: float, bytes_of_number: int, **more) -> dict:
    """`note`: what memory carries, if every number is read and written no more than two halves of a step
    need."""
    rate = size**3 * STEPS / best / 1e6
    # Each half reads six components and writes three: 18 numbers a step at least.
    note = describe_traffic(rate, 18 * bytes_of_number)
    return {"rate": rate, "unit": UNIT, "note": note, **more}


def timed(advance, state, size: int, bytes_of_number: int) -> dict:
    import jax

    began = time.perf_counter()
    compiled = jax.jit(advance, compiler_options=ALL_CORES).lower(state).compile()
    compiling = time.perf_counter() - began
    began = time.perf_counter()
    jax.block_until_ready(compiled(state))
    first = time.perf_counter() - began
    best = seconds(lambda: jax.block_until_ready(compiled(state)))
    return report(size, best, bytes_of_number, compile=compiling, first=first)


def with_physkit(size: int, precision: str) -> dict:
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats

    em = pk.electromagnetism
    kind = jnp.dtype(precision)
    grid = cast_floats(pk.Grid([1.0] * 3, (size,) * 3), kind)
    wave = {"Ez": lambda x, y, z: jnp.sin(2 * jnp.pi * x) + 0 * y + 0 * z}
    field = em.ElectromagneticField.of(grid, wave, dtype=kind)
    sim = pk.Simulation(em.Yee(em.Maxwell()), dt=COURANT / size, adjoint=pk.adjoints.Direct())
    sim = cast_floats(sim, kind)
    return timed(lambda s: pk.simulate(sim, s, STEPS).state, field, size, kind.itemsize)


def with_roll(size: int, precision: str) -> dict:
    import jax
    import jax.numpy as jnp

    ahead = lambda u, axis: jnp.roll(u, -1, axis) - u
    behind = lambda u, axis: u - jnp.roll(u, 1, axis)

    def step(fields, _):
        E, H = fields
        curl = [
            ahead(E[(i + 2) % 3], (i + 1) % 3) - ahead(E[(i + 1) % 3], (i + 2) % 3)
            for i in range(3)
        ]
        H = [h - COURANT * c for h, c in zip(H, curl)]
        curl = [
            behind(H[(i + 2) % 3], (i + 1) % 3) - behind(H[(i + 1) % 3], (i + 2) % 3)
            for i in range(3)
        ]
        return ([e + COURANT * c for e, c in zip(E, curl)], H), None

    zero = jnp.zeros((size,) * 3, precision)
    start = ([zero, zero, zero + 1], [zero] * 3)
    return timed(
        lambda s: jax.lax.scan(step, s, None, length=STEPS)[0], start, size, zero.dtype.itemsize
    )


def with_numba(threads: int):
    def measure(size: int, precision: str) -> dict:
        import numba
        import numpy as np

        numba.set_num_threads(threads)
        c = np.dtype(precision).type(COURANT)

        @numba.njit(parallel=True, fastmath=True)
        def half(A, B, s):
            """A changed by the curl of B, taken ahead for s = 1 and behind for −1."""
            n = A.shape[1]
            for i in numba.prange(n):
                I = (i + s) % n
                for j in range(n):
                    J = (j + s) % n
                    for k in range(n):
                        K = k + s
                        if n == K:
                            K = 0
                        if K < 0:
                            K = n - 1
                        x, y, z = B[0, i, j, k], B[1, i, j, k], B[2, i, j, k]
                        A[0, i, j, k] -= c * (B[2, i, J, k] - z - B[1, i, j, K] + y)
                        A[1, i, j, k] -= c * (B[0, i, j, K] - x - B[2, I, j, k] + z)
                        A[2, i, j, k] -= c * (B[1, I, j, k] - y - B[0, i, J, k] + x)

        E, H = (np.zeros((3, size, size, size), precision) for _ in range(2))

        def advance():
            for _ in range(STEPS):
                half(H, E, 1)
                half(E, H, -1)

        advance()
        return report(size, seconds(advance), np.dtype(precision).itemsize)

    return measure


def with_fdtdx(size: int, precision: str) -> dict:
    import fdtdx
    import jax
    from fdtdx.config import UniformGrid

    spacing = 1e-7
    config = fdtdx.SimulationConfig(
        grid=UniformGrid(spacing=spacing),
        time=STEPS * COURANT * spacing / 299792458.0,
        backend="cpu",
        dtype=jax.numpy.dtype(precision),
        courant_factor=COURANT * 3**0.5,
    )
    volume = fdtdx.SimulationVolume(partial_grid_shape=(size,) * 3)
    sides = fdtdx.BoundaryConfig.from_uniform_bound(thickness=1, boundary_type="periodic")
    sides, constraints = fdtdx.boundary_objects_from_config(sides, volume)
    key = jax.random.key(0)
    objects, arrays, params, config, _ = fdtdx.place_objects(
        [volume, *sides.values()], config, constraints, key
    )
    arrays, objects, _ = fdtdx.apply_params(arrays, objects, params, key)

    def advance(arrays):
        return fdtdx.run_fdtd(arrays, objects, config, key, show_progress=False)[1].fields.E

    return timed(advance, arrays, size, jax.numpy.dtype(precision).itemsize)


def with_meep(size: int, precision: str) -> dict:
    import meep

    del precision  # as the package was built
    meep.verbosity(0)
    # All six components, as the other codes: Meep leaves out those that stay zero.
    sim = meep.Simulation(
        cell_size=meep.Vector3(1, 1, 1),
        resolution=size,
        Courant=COURANT,
        k_point=meep.Vector3(),
        force_all_components=True,
    )
    sim.init_sim()
    sim.initialize_field(meep.Ez, lambda at: at.x)

    def advance():
        for _ in range(STEPS):
            sim.fields.step()

    advance()
    return report(size, seconds(advance), 8, cores=meep.count_processors())


if __name__ == "__main__":
    print_measurement(
        {
            "physkit": with_physkit,
            "jnp.roll": with_roll,
            "numba-1": with_numba(1),
            "numba-2": with_numba(2),
            "fdtdx": with_fdtdx,
            "meep": with_meep,
        }
    )
