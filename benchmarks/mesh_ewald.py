"""Forces of charges by particle-mesh Ewald sums, as of water: the same splitting, mesh and order in both codes.

The sum of charges alone, with no pair excluded, since jax-md excludes none. Lists are kept: one evaluation
without a rebuild. Rates are evaluations per CPU second, so that other work on the machine hardly matters.
"""

import time

from benchmarks._harness import print_measurement

CUTOFF, TOLERANCE, MESH, REPEATS = 0.9, 1e-3, 24, 10
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
    first, best = time.perf_counter() - began, float("inf")
    for _ in range(REPEATS):
        began = time.process_time()
        jax.block_until_ready(function(*arguments))
        best = min(best, time.process_time() - began)
    return {"rate": 1 / best, "unit": UNIT, "first": first}


def with_physkit(size: int, precision: str) -> dict:
    import jax

    from physkit.core import Clock, StepCount

    del precision  # the environment's jax_enable_x64 decides
    force, state = charges(size)
    clock = Clock.at(StepCount.of(0), 0.0, 1.0)
    cache = jax.jit(lambda state: force.init(state))(state)
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
