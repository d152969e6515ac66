"""SPC/E water with rigid bonds and particle-mesh Ewald sums: 2 fs steps at constant energy, cutoff 0.9 nm.

Both codes begin with the same liquid at room temperature. Rates are thousand particle-steps per CPU second, so
that other work on the machine hardly matters. `charges` is the cost of an energy and its derivative by all
charges, over that of the energy.
"""

import resource

from benchmarks._harness import print_measurement

CUTOFF, TOLERANCE, MELT, WARM, STEPS = 0.9, 1e-3, 300, 10, 20
UNIT = "k particle-steps/CPU s"


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def best_rate(size: int, advance) -> float:
    """Of three runs of `STEPS` steps."""
    rates = []
    for _ in range(3):
        began = cpu_seconds()
        advance()
        rates.append(size * STEPS / (cpu_seconds() - began) / 1e3)
    return max(rates)


def water(size: int, is_liquid: bool = True):
    """The integrator, and molecules whose lattice has melted while a fast thermostat took up its heat."""
    import equinox as eqx
    import numpy as np

    import physkit as pk

    sim, state = pk.systems.water_box(
        round((size / 3) ** (1 / 3)), cutoff=CUTOFF, tolerance=TOLERANCE
    )
    assert state.num_particles == size
    bath = pk.find(sim, pk.VelocityRescaling)
    if is_liquid:
        fast = eqx.tree_at(lambda bath: bath.relaxation_time, bath, np.float32(0.02))
        state = pk.run(pk.Simulation(fast, sim.dt), state, MELT, key=0, progress=False).state
    return bath.integrator, state


def with_physkit(size: int, precision: str) -> dict:
    import physkit as pk

    del precision  # the environment's jax_enable_x64 decides
    motion, state = water(size)
    simulation = pk.Simulation(motion, dt=0.002)
    warm = pk.run(simulation, state, WARM, progress=False)
    compile_seconds = warm.compile_seconds
    run = pk.run(simulation, warm.carry, STEPS, progress=False)

    def advance():
        nonlocal run
        run = pk.run(simulation, run.carry, STEPS, progress=False)

    mesh = pk.find(motion, pk.ParticleMeshEwald).for_start(state).mesh
    return {
        "rate": best_rate(size, advance),
        "unit": UNIT,
        "compile": compile_seconds,
        "note": f"mesh {mesh[0]}³",
    }


def with_charges(size: int, precision: str) -> dict:
    import jax

    from physkit.core import Clock, StepCount

    del precision
    motion, state = water(size, is_liquid=False)
    clock, force = Clock.at(StepCount.of(0), 0.0, 1.0), motion.force.terms[0].for_start(state)
    cache = jax.jit(lambda state: force.init(state))(state)
    energy = lambda charge, cache: force.energy(clock, state.replace(charge=charge), cache)
    seconds = []
    for function in (jax.jit(energy), jax.jit(jax.value_and_grad(energy))):
        jax.block_until_ready(function(state.charge, cache))
        trials = []
        for _ in range(5):
            began = cpu_seconds()
            jax.block_until_ready(function(state.charge, cache))
            trials.append(cpu_seconds() - began)
        seconds.append(min(trials))
    return {"rate": seconds[1] / seconds[0], "unit": "forward evaluations"}


def with_openmm_1(size: int, precision: str) -> dict:
    """The CPU platform on one thread, whose precision is mixed."""
    import numpy as np
    import openmm

    from physkit.systems import WATER_MODELS

    del precision
    _, state = water(size)
    model = WATER_MODELS["SPC/E"]
    system, nonbonded = openmm.System(), openmm.NonbondedForce()
    edge = float(state.space.lengths[0])
    system.setDefaultPeriodicBoxVectors(*(edge * np.eye(3)))
    for k in range(size):
        system.addParticle(float(state.mass[k % 3]))
        if k % 3 == 0:
            nonbonded.addParticle(-2 * model.charge, model.sigma, model.epsilon)
        else:
            nonbonded.addParticle(model.charge, 1.0, 0.0)
    for k in range(0, size, 3):
        for a, b, length in ((0, 1, model.oh), (0, 2, model.oh), (1, 2, model.hh)):
            system.addConstraint(k + a, k + b, length)
            nonbonded.addException(k + a, k + b, 0.0, 1.0, 0.0)
    nonbonded.setNonbondedMethod(openmm.NonbondedForce.PME)
    nonbonded.setCutoffDistance(CUTOFF)
    nonbonded.setEwaldErrorTolerance(5e-4)
    system.addForce(nonbonded)
    integrator = openmm.VerletIntegrator(0.002)
    platform = openmm.Platform.getPlatformByName("CPU")
    context = openmm.Context(system, integrator, platform, {"Threads": "1"})
    # Whole molecules: constraints there know no box.
    context.setPositions(np.asarray(state.unwrapped, float))

    def advance():
        integrator.step(STEPS)
        context.getState(getEnergy=True).getPotentialEnergy()  # waits until they are done

    context.setVelocities(np.asarray(state.velocity, float))
    integrator.step(WARM)
    _, *mesh = nonbonded.getPMEParametersInContext(context)
    return {"rate": best_rate(size, advance), "unit": UNIT, "note": f"1 core, mesh {mesh[0]}³"}


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "charges": with_charges, "openmm-1": with_openmm_1})
