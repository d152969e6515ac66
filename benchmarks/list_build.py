"""Building a neighbor list of an LJ melt anew: radius 2.8 at ρ* = 0.8442. Builds per second."""

import time

from benchmarks._harness import ALL_CORES, print_measurement, seconds
from benchmarks.lj_melt import CUTOFF, DENSITY, DT, SKIN, TEMPERATURE, cells

UNIT = "builds/s"


def melt(size: int):
    """A liquid, 200 steps from the crystal."""
    import jax

    import physkit as pk

    position, box = pk.lattice.face_centered_cubic((cells(size),) * 3, density=DENSITY)
    atoms = pk.maxwell_boltzmann(jax.random.key(0), pk.Particles(position, space=box), TEMPERATURE)
    force = pk.Pairwise(pk.LennardJones(), cutoff=CUTOFF, skin=SKIN, truncation="plain")
    sim = pk.Simulation(pk.VelocityVerlet(force), dt=DT)
    return pk.run(sim, atoms, 200, progress=False).state


def timed(build, *arguments) -> dict:
    import jax

    began = time.perf_counter()
    compiled = jax.jit(build, compiler_options=ALL_CORES).lower(*arguments).compile()
    compiling = time.perf_counter() - began
    best = seconds(lambda: jax.block_until_ready(compiled(*arguments)), repeats=7)
    return {"rate": 1 / best, "unit": UNIT, "compile": compiling, "note": f"{1e3 * best:.1f} ms"}


def with_physkit(size: int, precision: str) -> dict:
    from physkit.particles.neighbors import neighbor_list
    from physkit.particles.neighbors._search import search

    del precision
    atoms = melt(size)
    near = neighbor_list(atoms, CUTOFF, SKIN)
    capacity = near.pairs.capacity

    def build(position, space):
        return search(position, space, CUTOFF + SKIN, near.cells, capacity)

    return timed(build, atoms.position, atoms.space)


def with_jax_md(size: int, precision: str) -> dict:
    from jax_md import partition, space

    del precision
    atoms = melt(size)
    edge = atoms.space.lengths[0]
    displacement, _ = space.periodic(edge)
    neighbors = partition.neighbor_list(
        displacement, edge, CUTOFF, SKIN, format=partition.OrderedSparse
    )
    near = neighbors.allocate(atoms.position)
    far = near.set(reference_position=near.reference_position + edge / 3)  # asks for a rebuild
    return timed(lambda x, near: near.update(x), atoms.position, far)


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "jax-md": with_jax_md})
