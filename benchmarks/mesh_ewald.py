"""Forces of charges by particle-mesh Ewald sums, as of water: the same splitting, mesh and order in both codes.

The sum of charges alone, with no pair excluded, since jax-md excludes none. Lists are kept: one evaluation
without a rebuild. Rates are evaluations per CPU second, so that other work on the machine hardly matters; the
note says how many by the clock, on as many cores as a code takes.
"""

import time

from benchmarks._harness import print_measurement

CUTOFF, TOLERANCE, MESH, REPEATS, STRETCHES = 0.9, 1e-3, 24, 10, 4
UNIT = "forces/CPU s"


def charges(size: int):
    """Molecules of water on their lattice, shaken for a moment, and the sum of their charges."""
    import physkit as pk

    sim, state = pk.systems.water_box(round((size / 3) ** (1 / 3)), cutoff=CUTOFF)
    assert state.num_particles == size
    bath = pk.find(sim, pk.VelocityRescaling)
    shaken = pk.BAOAB(bath.integrator.force, temperature=bath.temperature, friction=50.0)
    state = pk.run(pk.Simulation(shaken, 1e-3), state, 200, key=0, progress=False).state
    return pk.ParticleMeshEwald(CUTOFF, TOLERANCE, mesh=MESH).for_start(state), state


def measure(function, *arguments) -> dict:
    import jax

    began = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    first, used, passed = time.perf_counter() - began, [], []
    for _ in range(STRETCHES):
        # CPU seconds of single evaluations are too few to be counted well.
        began = time.process_time(), time.perf_counter()
        for _ in range(REPEATS):
            jax.block_until_ready(function(*arguments))
        used.append(time.process_time() - began[0])
        passed.append(time.perf_counter() - began[1])
    note = f"{REPEATS / min(passed):.0f} a second"
    return {"rate": REPEATS / min(used), "unit": UNIT, "first": first, "note": note}


def with_physkit(size: int, precision: str) -> dict:
    import jax

    from physkit.core import Clock, StepCount

    del precision  # the environment's jax_enable_x64 decides
    force, state = charges(size)
    clock = Clock.at(StepCount.of(0), 0.0, 1.0)
    # As in a run, whose lists get the capacity that the particles need.
    cache = force.fit_cache(jax.jit(lambda state: force.init(state))(state))
    return measure(jax.jit(lambda state, cache: force(clock, state, cache)[0]), state, cache)


def with_jax_md(size: int, precision: str) -> dict:
    import jax
    from jax_md import partition, space
    from jax_md._energy import electrostatics

    del precision
    force, state = charges(size)
    edge, alpha = float(state.space.lengths[0]), float(force.near.potential.damping)
    displacement, _ = space.periodic(edge)
    listed = partition.neighbor_list(
        displacement, edge, CUTOFF, dr_threshold=0.1, format=partition.OrderedSparse
    )
    near = listed.allocate(state.position)
    _, direct = electrostatics.coulomb_direct_neighbor_list(
        displacement, edge, state.charge, alpha=alpha, cutoff=CUTOFF
    )
    waves = electrostatics.coulomb_recip_pme(state.charge, edge, MESH, alpha=alpha)
    energy = lambda x, near: direct(x, neighbor=near) + waves(x)
    return measure(jax.jit(lambda x, near: -jax.grad(energy)(x, near)), state.position, near)


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "jax-md": with_jax_md})
