"""Electrostatic particle-in-cell on a line: 256 cells, cloud in cell, leapfrog. M particle-steps per second."""

from benchmarks._harness import print_measurement, seconds

CELLS, STEPS = 256, 20
UNIT = "M particle-steps/s"
DT = 0.05


def start(size: int, precision: str, *, in_order: bool = False):
    """A warm plasma in a box of 20 Debye lengths."""
    import numpy as np

    rng = np.random.default_rng(0)
    x, v = 20 * rng.random(size), rng.normal(size=size)
    return (np.sort(x) if in_order else x).astype(precision), v.astype(precision)


def timed(advance, *state) -> float:
    import jax

    state = jax.device_put(state)
    compiled = jax.jit(advance)
    jax.block_until_ready(compiled(*state))
    return seconds(lambda: jax.block_until_ready(compiled(*state)), 5)


def ours(in_order: bool):
    def measure(size: int, precision: str) -> dict:
        import jax.numpy as jnp

        import physkit as pk

        x, v = start(size, precision, in_order=in_order)
        box = pk.Box(jnp.full(1, 20.0, precision))
        weight = 20.0 / size
        particles = pk.Particles(x[:, None], v[:, None], weight, box, charge=-weight)
        mesh = pk.ParticleMesh(pk.Grid(box, (CELLS,)))
        simulation = pk.Simulation(
            pk.VelocityVerlet(mesh), dt=DT, guards=(), adjoint=pk.adjoints.Direct()
        )

        def advance(particles):
            return pk.simulate(simulation, particles, STEPS).state

        best = timed(advance, particles)
        return {"rate": size * STEPS / best / 1e6, "unit": UNIT}

    return measure


def plain(in_order: bool):
    """What one would write: `.at[].add`, `jnp.fft`, two gathers, a scan."""

    def measure(size: int, precision: str) -> dict:
        import jax
        import jax.numpy as jnp

        x, v = start(size, precision, in_order=in_order)
        h, weight = 20.0 / CELLS, 20.0 / size

        def cell_and_fraction(x):
            u = x / h - 0.5
            cell = jnp.floor(u)
            return cell.astype(jnp.int32), u - cell

        def force(x):
            cell, f = cell_and_fraction(x)
            left, right = cell % CELLS, (cell + 1) % CELLS
            rho = (
                jnp.zeros(CELLS, x.dtype).at[left].add(-weight * (1 - f)).at[right].add(-weight * f)
                / h
            )
            k = (2 * jnp.pi / 20.0 * jnp.arange(CELLS // 2 + 1)).astype(x.dtype)
            inverse = jnp.where(k > 0, 1 / jnp.where(k > 0, k, 1), 0)
            field = jnp.fft.irfft(-1j * inverse * jnp.fft.rfft(rho))
            return -(field[left] * (1 - f) + field[right] * f)

        def step(carry, _):
            x, v, a = carry
            v = v + 0.5 * DT * a
            x = (x + DT * v) % 20.0
            a = force(x)
            return (x, v + 0.5 * DT * a, a), None

        def advance(x, v):
            return jax.lax.scan(step, (x, v, force(x)), None, STEPS)[0]

        return {"rate": size * STEPS / timed(advance, x, v) / 1e6, "unit": UNIT}

    return measure


def with_numba(size: int, precision: str) -> dict:
    """One fused loop over particles a step, on one core."""
    import numba
    import numpy as np

    x, v = start(size, precision)
    one = x.dtype.type
    h, weight = one(20.0 / CELLS), one(20.0 / size)

    @numba.njit(fastmath=True)
    def push(x, v, field, rho, dt):
        rho[:] = 0
        for p in range(x.size):
            u = x[p] / h + one(0.5)
            i = np.int32(u)
            f = u - i
            a = -(field[i] * (one(1) - f) + field[i + 1] * f)
            v[p] += dt * a
            x[p] += dt * v[p]
            if x[p] >= one(20):
                x[p] -= one(20)
            elif x[p] < 0:
                x[p] += one(20)
            u = x[p] / h + one(0.5)
            i = np.int32(u)
            f = u - i
            rho[i] += one(1) - f
            rho[i + 1] += f

    k = 2 * np.pi / 20.0 * np.arange(CELLS // 2 + 1)
    inverse = np.where(k > 0, 1 / np.where(k > 0, k, 1), 0)

    def advance():
        field, rho = np.zeros(CELLS + 2, x.dtype), np.zeros(CELLS + 2, x.dtype)
        for _ in range(STEPS):
            push(x, v, field, rho, one(DT))
            inside = rho[1 : CELLS + 1].copy()
            inside[0] += rho[CELLS + 1]
            inside[-1] += rho[0]
            solved = np.fft.irfft(-1j * inverse * np.fft.rfft(-weight / h * inside))
            field[1 : CELLS + 1] = solved
            field[0], field[-1] = solved[-1], solved[0]

    advance()
    return {"rate": size * STEPS / seconds(advance, 5) / 1e6, "unit": UNIT}


CODES = {
    "physkit": ours(False),
    "at-add": plain(False),
    "physkit-sorted": ours(True),
    "at-add-sorted": plain(True),
    "numba-1": with_numba,
}

if __name__ == "__main__":
    print_measurement(CODES)
