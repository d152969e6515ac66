"""A sweep over the temperature of many boxes of 108 Lennard-Jones atoms, with velocity Verlet.

physkit goes over all pairs of so small a box (`use_neighbor_list=False`); `lists` and
`loop-lists` keep neighbor lists.
`loop` runs boxes one after the other from Python (a few of them, rate per box); `numba` is a plain loop over
all pairs of every box, without lists, its boxes over threads. All begin at the crystal's sites with
velocities of their temperature; rates are million atom-steps per second, rebuilds included.
"""

import time

from benchmarks._harness import has_gpu, print_measurement, seconds, wait_for_turn

DENSITY, CUTOFF, SKIN, DT, STEPS, CELLS = 0.7, 2.2, 0.3, 0.004, 100, 3
ATOMS = 4 * CELLS**3
CHUNK = 50  # boxes at a time; all on a GPU
UNIT = "M atom-steps/s"


def model(precision: str, use_neighbor_list: bool = False):
    import jax
    import jax.numpy as jnp

    import physkit as pk

    sites, box = pk.lattice.face_centered_cubic(CELLS, density=DENSITY)
    atoms = pk.Particles(jnp.asarray(sites, precision), space=box)
    atoms = pk.maxwell_boltzmann(jax.random.key(0), atoms, 1.0)
    kept = {"skin": SKIN, "capacity": 64} if use_neighbor_list else {"use_neighbor_list": False}
    force = pk.Pairwise(pk.LennardJones(), CUTOFF, **kept)
    # A sweep checks its members as often as they are observed.
    record = pk.Every(20, energy=pk.KineticEnergy())
    return pk.Simulation(pk.VelocityVerlet(force), dt=DT, observers=record), atoms


def velocities(atoms, size: int):
    import numpy as np

    scale = np.sqrt(np.linspace(0.8, 2.0, size))
    return scale[:, None, None] * np.asarray(atoms.velocity)


def with_physkit(size: int, precision: str, use_neighbor_list: bool = False) -> dict:
    import physkit as pk

    sim, atoms = model(precision, use_neighbor_list)
    over = pk.SweepAxis(lambda m: m[1].velocity, velocities(atoms, size))
    whole = pk.Sweep((sim, atoms), STEPS, over=over)
    chunk = size if has_gpu() else min(size, CHUNK)
    return timed(lambda: pk.sweep(whole, chunk_size=chunk, progress=False), size)


def with_lists(size: int, precision: str) -> dict:
    return with_physkit(size, precision, use_neighbor_list=True)


def with_loop(size: int, precision: str, use_neighbor_list: bool = False) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk

    sim, atoms = model(precision, use_neighbor_list)
    some = min(size, 10)
    first = pk.init(sim, atoms)
    run = jax.jit(lambda sim, carry: pk.simulate(sim, carry, STEPS).state.position)
    carries = [
        first.replace(state=atoms.replace(velocity=jnp.asarray(v, precision)))
        for v in velocities(atoms, size)[:: size // some][:some]
    ]
    return timed(lambda: [run(sim, c).block_until_ready() for c in carries], some)


def with_loop_lists(size: int, precision: str) -> dict:
    return with_loop(size, precision, use_neighbor_list=True)


def _with_numba(size: int, precision: str, threads: int) -> dict:
    import numba
    import numpy as np

    numba.set_num_threads(threads)
    sim, atoms = model(precision)
    del sim
    kind = np.dtype(precision).type
    edge = kind(np.asarray(atoms.space.lengths)[0])
    half, reach, dt = kind(0.5), kind(CUTOFF**2), kind(DT)
    one, twenty_four, two = kind(1), kind(24), kind(2)
    shift = kind(-48 * CUTOFF**-13 + 24 * CUTOFF**-7)  # of the force, so that it ends at zero

    @numba.njit(fastmath=True)
    def forces(x, f):
        f[:] = 0
        for i in range(ATOMS):
            xi, yi, zi = x[i, 0], x[i, 1], x[i, 2]
            fx = fy = fz = kind(0)
            for j in range(i + 1, ATOMS):
                a, b, c = xi - x[j, 0], yi - x[j, 1], zi - x[j, 2]
                a -= edge * np.rint(a / edge)
                b -= edge * np.rint(b / edge)
                c -= edge * np.rint(c / edge)
                r2 = a * a + b * b + c * c
                if r2 < reach:
                    s2 = one / r2
                    s6 = s2 * s2 * s2
                    g = twenty_four * s6 * (two * s6 - one) * s2 + shift * np.sqrt(s2)
                    fx += g * a
                    fy += g * b
                    fz += g * c
                    f[j, 0] -= g * a
                    f[j, 1] -= g * b
                    f[j, 2] -= g * c
            f[i, 0] += fx
            f[i, 1] += fy
            f[i, 2] += fz

    @numba.njit(parallel=True, fastmath=True)
    def run(start, speed, out):
        for m in numba.prange(len(speed)):
            x, v, f = start.copy(), speed[m].copy(), np.zeros_like(start)
            forces(x, f)
            for _ in range(STEPS):
                for i in range(ATOMS):
                    for k in range(3):
                        v[i, k] += half * dt * f[i, k]
                        x[i, k] += dt * v[i, k]
                forces(x, f)
                for i in range(ATOMS):
                    for k in range(3):
                        v[i, k] += half * dt * f[i, k]
            out[m] = x

    start = np.asarray(atoms.position)
    speed = velocities(atoms, size).astype(precision)
    out = np.zeros_like(speed)
    return timed(lambda: run(start, speed, out), size)


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
    best = seconds(work, 2)
    # On a machine that others use, seconds of the processor mean more than those of the clock.
    cpu = (time.process_time() - cpu) / 2
    count = size * ATOMS * STEPS / 1e6
    return {
        "rate": count / best,
        "unit": UNIT,
        "first": first,
        "note": f"{count / cpu:.3g} a CPU second",
    }


if __name__ == "__main__":
    print_measurement({
        "physkit": with_physkit,
        "loop": with_loop,
        "lists": with_lists,
        "loop-lists": with_loop_lists,
        "numba-1": with_numba_1,
        "numba-2": with_numba_2,
    })  # fmt: skip
