"""Lattice Boltzmann in a periodic box, two relaxation times. M cells per CPU second, by the clock on a GPU.

`--size` n is D2Q9 on n² cells for n > 200, D3Q19 on n³ below. physkit as `run` steps it; numba as one kernel
that reads, collides and writes each cell, on one thread; XLB's JAX backend with its own step, which has one
relaxation time.
"""

import time
from collections.abc import Callable

from benchmarks._harness import (
    ALL_CORES,
    describe_traffic,
    enough,
    least_seconds,
    print_measurement,
    rate_of_cells,
)

TAU, TAU_ODD = 0.8, 1.125  # Λ = 3/16


def case(size: int) -> tuple[int, int]:
    """Number of dimensions and of steps."""
    d, steps = (2, 20) if size > 200 else (3, 10)
    return d, enough(steps)


def timed(advance: Callable[[], object], size: int, precision: str, compiling: float) -> dict:
    """`note`: also what memory carries, if a step reads and writes every population once."""
    import numpy as np

    d, steps = case(size)
    updates = size**d * steps / 1e6
    best, cpu = least_seconds(advance)
    found = rate_of_cells(updates, best, cpu) | {"compile": compiling}
    populations = 9 if d == 2 else 19
    traffic = describe_traffic(updates / best, 2 * populations * np.dtype(precision).itemsize)
    note = f"{found['note']}, {traffic}" if "note" in found else traffic
    return found | {"note": note}


def with_physkit(size: int, precision: str) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats

    lb = pk.lattice_boltzmann
    d, steps = case(size)
    kind = jnp.dtype(precision)
    grid = cast_floats(pk.Grid([float(size)] * d, (size,) * d), kind)
    wave = [lambda *x: 0.05 * jnp.sin(2 * jnp.pi * x[1] / size), *[0.0] * (d - 1)]
    flow = lb.Populations.of(grid, 1.0, wave, dtype=kind)
    law = lb.LatticeBoltzmann((TAU - 0.5) / 3)
    sim = pk.Simulation(lb.StreamAndCollide(law), dt=1.0, adjoint=pk.adjoints.Direct())
    sim = cast_floats(sim, kind)
    advance = lambda flow: pk.simulate(sim, flow, steps).state
    began = time.perf_counter()
    compiled = jax.jit(advance, compiler_options=ALL_CORES).lower(flow).compile()
    compiling = time.perf_counter() - began
    jax.block_until_ready(compiled(flow))
    return timed(lambda: jax.block_until_ready(compiled(flow)), size, precision, compiling)


def fused_step(velocities: list, weights: list) -> str:
    """Source of one cell's step: it reads `f` at the cells that populations come from and writes `g`."""
    q, axes = len(velocities), "xyz"[: len(velocities[0])]
    rest = q // 2  # opposites are mirrored about it

    def signed(vector: str, e: list) -> str:
        return "".join("+-"[n < 0] + vector + a for n, a in zip(e, axes, strict=True) if n)

    names = ", ".join(a + s for a in axes for s in "m0p")
    lines = [f"def cell(f, g, {names}, even, odd):"]
    for i, e in enumerate(velocities):
        source = ", ".join(a + "p0m"[n + 1] for a, n in zip(axes, e, strict=True))
        lines.append(f"f{i} = f[{i}, {source}]")
    lines.append("excess = " + " + ".join(f"f{i}" for i in range(q)))
    for k, a in enumerate(axes):
        terms = "".join("+-"[e[k] < 0] + f"f{i}" for i, e in enumerate(velocities) if e[k])
        lines.append(f"m{a} = {terms}")
    lines += ["rho = one + excess", "inverse = one / rho"]
    lines += [f"u{a} = m{a} * inverse" for a in axes]
    square = " + ".join(f"u{a} * u{a}" for a in axes)
    here = ", ".join(a + "0" for a in axes)
    lines.append(f"base = excess - three_halves * rho * ({square})")
    lines.append(f"g[{rest}, {here}] = f{rest} - two * even * (f{rest} - w[{rest}] * base)")
    for i in range(rest):
        j = q - 1 - i
        lines += [
            f"along = {signed('u', velocities[i])}",
            "momentum = rho * along",
            f"a = even * (f{i} + f{j} - two * w[{i}] * (base + nine_halves * momentum * along))",
            f"b = odd * (f{i} - f{j} - six * w[{i}] * momentum)",
            f"g[{i}, {here}] = f{i} - a - b",
            f"g[{j}, {here}] = f{j} - a + b",
        ]
    return "\n    ".join(lines)


def with_numba(size: int, precision: str) -> dict:
    import numba
    import numpy as np

    from physkit.fields.lattice_boltzmann import D2Q9, D3Q19

    d, steps = case(size)
    lattice = D2Q9 if d == 2 else D3Q19
    kind = np.dtype(precision).type
    constants = {"one": 1, "two": 2, "six": 6, "three_halves": 1.5, "nine_halves": 4.5}
    scope = {name: kind(x) for name, x in constants.items()}
    scope["w"] = tuple(kind(x) for x in lattice.weights)
    exec(fused_step(lattice.velocities.tolist(), lattice.weights.tolist()), scope)
    cell = numba.njit(fastmath=True, inline="always")(scope["cell"])

    @numba.njit(fastmath=True)
    def line(f, g, i, even, odd):
        n, m = f.shape[1:]
        a, b = i - 1 if i else n - 1, i + 1 if i < n - 1 else 0
        cell(f, g, a, i, b, m - 1, 0, 1, even, odd)
        for j in range(1, m - 1):  # without a branch, so that it is vectorized
            cell(f, g, a, i, b, j - 1, j, j + 1, even, odd)
        cell(f, g, a, i, b, m - 2, m - 1, 0, even, odd)

    @numba.njit(fastmath=True)
    def plane(f, g, i, even, odd):
        n, m, k = f.shape[1:]
        a, b = i - 1 if i else n - 1, i + 1 if i < n - 1 else 0
        for j in range(m):
            c, e = j - 1 if j else m - 1, j + 1 if j < m - 1 else 0
            cell(f, g, a, i, b, c, j, e, k - 1, 0, 1, even, odd)
            for l in range(1, k - 1):
                cell(f, g, a, i, b, c, j, e, l - 1, l, l + 1, even, odd)
            cell(f, g, a, i, b, c, j, e, k - 2, k - 1, 0, even, odd)

    slab = line if d == 2 else plane

    @numba.njit(fastmath=True)
    def step(f, g, even, odd):
        for i in range(f.shape[1]):
            slab(f, g, i, even, odd)

    f = np.zeros((lattice.size, *[size] * d), precision)
    g = f.copy()
    even, odd = kind(0.5 / TAU), kind(0.5 / TAU_ODD)

    def advance():
        a, b = f, g
        for _ in range(steps):
            step(a, b, even, odd)
            a, b = b, a

    began = time.perf_counter()
    step(f, g, even, odd)
    compiling = time.perf_counter() - began
    return timed(advance, size, precision, compiling)


def with_xlb(size: int, precision: str) -> dict:
    import jax
    import xlb
    from xlb.compute_backend import ComputeBackend
    from xlb.grid import grid_factory
    from xlb.operator.stepper import IncompressibleNavierStokesStepper
    from xlb.precision_policy import PrecisionPolicy

    d, steps = case(size)
    policy = PrecisionPolicy.FP32FP32 if precision == "float32" else PrecisionPolicy.FP64FP64
    velocities = getattr(xlb.velocity_set, "D2Q9" if d == 2 else "D3Q19")(
        precision_policy=policy, compute_backend=ComputeBackend.JAX
    )
    xlb.init(
        velocity_set=velocities,
        default_backend=ComputeBackend.JAX,
        default_precision_policy=policy,
    )
    grid = grid_factory((size,) * d, compute_backend=ComputeBackend.JAX)
    stepper = IncompressibleNavierStokesStepper(
        grid=grid, boundary_conditions=[], collision_type="BGK"
    )
    f, g, kinds, missing = stepper.prepare_fields()

    def advance():
        a, b = f, g
        for n in range(steps):
            a, b = stepper(a, b, kinds, missing, 1 / TAU, n)
            a, b = b, a
        jax.block_until_ready((a, b))

    began = time.perf_counter()
    advance()
    compiling = time.perf_counter() - began
    return timed(advance, size, precision, compiling)


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "numba-1": with_numba, "xlb": with_xlb})
