"""A Lennard-Jones melt of LAMMPS' `in.lj`, twice as long along x as along y and z; float32."""

from benchmarks._devices import run_case
from benchmarks.lj_melt import CUTOFF, DENSITY, DT, SKIN, TEMPERATURE


def make(size: int, part: int):
    import jax

    import physkit as pk

    edge = round((size / 8) ** (1 / 3))
    cells = (2 * edge // part, edge, edge)
    position, box = pk.lattice.face_centered_cubic(cells, density=DENSITY)
    atoms = pk.maxwell_boltzmann(jax.random.key(0), pk.Particles(position, space=box), TEMPERATURE)
    force = pk.Pairwise(pk.LennardJones(), cutoff=CUTOFF, skin=SKIN, truncation="plain")
    return pk.Simulation(pk.VelocityVerlet(force), dt=DT), atoms


if __name__ == "__main__":
    run_case(make, "devices_lj", 64_000, 10, 60)
