"""Particles deposit charge on a line of cells by cloud in cell. M particles per second."""

from benchmarks._harness import print_measurement, seconds

CELLS = 256
UNIT = "M particles/s"


def cloud(size: int, precision: str):
    """Places between 0 and 1 and charges, both in no order."""
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.random(size).astype(precision), rng.random(size).astype(precision)


def ordered(size: int, precision: str):
    """The same, sorted by place: how a plasma starts."""
    import numpy as np

    x, q = cloud(size, precision)
    return np.sort(x), q


def compiled(function, x, q) -> float:
    import jax

    x, q = jax.device_put((x, q))
    run = jax.jit(function)
    jax.block_until_ready(run(x, q))
    return seconds(lambda: jax.block_until_ready(run(x, q)), 15)


def ours(x, q):
    import jax.numpy as jnp

    import physkit as pk

    grid = pk.Grid(pk.Box(jnp.ones(1, x.dtype)), (CELLS,))
    return pk.deposit(q, x[:, None], grid).data


def plain(x, q):
    """What one would write: an `.at[].add` for each of the two points."""
    import jax.numpy as jnp

    u = x * CELLS - 0.5
    cell = jnp.floor(u)
    fraction, cell = u - cell, cell.astype(jnp.int32)
    rho = jnp.zeros(CELLS, x.dtype).at[cell % CELLS].add(q * (1 - fraction))
    return rho.at[(cell + 1) % CELLS].add(q * fraction) * CELLS


def segments(x, q):
    """One `segment_sum` for each of the two points."""
    import jax
    import jax.numpy as jnp

    u = x * CELLS - 0.5
    cell = jnp.floor(u)
    fraction, cell = u - cell, cell.astype(jnp.int32)
    low = jax.ops.segment_sum(q * (1 - fraction), cell % CELLS, CELLS)
    return (low + jax.ops.segment_sum(q * fraction, (cell + 1) % CELLS, CELLS)) * CELLS


def kernel(parallel: bool):
    """The same loop compiled by numba; on two cores each with its own copy of the line."""
    import numba
    import numpy as np

    @numba.njit(fastmath=True, parallel=parallel)
    def add(x, q, rho):
        copies = rho.shape[0]
        part = x.size // copies
        for c in numba.prange(copies):
            for p in range(c * part, x.size if c == copies - 1 else (c + 1) * part):
                u = x[p] * x.dtype.type(CELLS) + x.dtype.type(0.5)
                i = np.int32(u)
                w = q[p] * (u - i)
                rho[c, i] += q[p] - w
                rho[c, i + 1] += w

    def run(x, q):
        rho = np.zeros((2 if parallel else 1, CELLS + 128), x.dtype)
        add(x, q, rho)
        total = rho.sum(axis=0)
        total[1] += total[CELLS + 1]
        total[CELLS] += total[0]
        return total[1 : CELLS + 1] * CELLS

    return run


def measured(function, make):
    def measure(size: int, precision: str) -> dict:
        return {"rate": size / compiled(function, *make(size, precision)) / 1e6, "unit": UNIT}

    return measure


def with_numba(parallel: bool):
    def measure(size: int, precision: str) -> dict:
        x, q = cloud(size, precision)
        run = kernel(parallel)
        run(x, q)
        return {"rate": size / seconds(lambda: run(x, q), 15) / 1e6, "unit": UNIT}

    return measure


CODES = {
    "physkit": measured(ours, cloud),
    "at-add": measured(plain, cloud),
    "segment-sum": measured(segments, cloud),
    "physkit-sorted": measured(ours, ordered),
    "at-add-sorted": measured(plain, ordered),
    "numba-1": with_numba(False),
    "numba-2": with_numba(True),
}

if __name__ == "__main__":
    print_measurement(CODES)
