r"""`Reversible` for particles over two emulated devices, against one: as JSON.

    XLA_FLAGS=--xla_force_host_platform_device_count=2 JAX_ENABLE_X64=1 PHYSKIT_SPMD=pmap \
        python -m tests.parallel.reversible [steps] [speed]

(`vmap` cannot emulate the devices: JAX traces the backward pass when the name of the mapped axis is gone.)
"""

import json
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk
from physkit.observe import Positions, TotalEnergy
from physkit.particles.forces import ExternalForce, HarmonicBonds, LennardJones, Pairwise
from tests.parallel.particle_cases import distance, fluid


def main(steps: int, speed: float) -> None:
    atoms = fluid(speed=speed, mass=np.linspace(1.0, 2.0, 96))
    bonds = HarmonicBonds([[45, 51], [2, 92]], 20.0, 1.2)
    force = Pairwise(LennardJones(), 2.0, 0.3, exact=True) + bonds
    observer = pk.Every(steps // 2, energy=TotalEnergy(), x=Positions())
    sim = pk.Simulation(
        pk.VelocityVerlet(force), 0.004, adjoint=pk.Reversible(), observers=observer
    )

    def outcome(model, devices):
        sim, start = model
        done = pk.simulate(sim, atoms.replace(**start), steps, devices=devices)
        recorded = jnp.sum(done.frames["x"][1] ** 2) + done.frames["energy"][-1]
        return recorded + jnp.sum(done.state.velocity**2), done

    start = {"position": atoms.position, "velocity": atoms.velocity, "mass": atoms.mass}

    def gradient(devices):
        return eqx.filter_grad(outcome, has_aux=True)((sim, start), devices)

    (one, on_one), (two, on_two) = gradient(None), gradient((2,))
    final = pk.run(sim, atoms, steps, devices=(2,), progress=False).state
    ownership = on_two.carry.carry.state.ownership
    pairs = lambda a, b: zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    found = {
        "same bits": all(np.array_equal(a, b) for a, b in pairs(on_two.state, on_one.state)),
        "same bits of a run": all(np.array_equal(a, b) for a, b in pairs(final, on_one.state)),
        "faults": int(on_two.health.faults()),
        "migrated": int(np.max(ownership.num_leaving)),
        "by state": [distance(b, a) for a, b in pairs(one[1], two[1])],
        "by parameters": [distance(b, a) for a, b in pairs(one[0].integrator, two[0].integrator)],
        "by dt and t0": differences_by_time(atoms, steps),
        "largest": max(float(jnp.max(jnp.abs(x))) for x in jax.tree.leaves(one[1])),
    }
    print(json.dumps(found))


def differences_by_time(atoms: pk.Particles, steps: int) -> list[float]:
    """Derivatives by dt and t0 over two devices against one, for a force that depends on time."""
    k = 2 * jnp.pi / atoms.space.lengths[0]

    def wave(t, atoms):
        x, y = atoms.position.T
        return jnp.sin(3 * t) * jnp.stack([jnp.cos(k * x), 0 * y], axis=1)

    def energy(times, devices):
        dt, t0 = times
        sim = pk.Simulation(
            pk.VelocityVerlet(ExternalForce(wave)), dt, t0=t0, adjoint=pk.Reversible()
        )
        return jnp.sum(pk.simulate(sim, atoms, steps, devices=devices).state.velocity ** 2)

    times = (jnp.asarray(0.01), jnp.asarray(0.3))
    one, two = (jax.grad(energy)(times, devices) for devices in (None, (2,)))
    return [distance(b, a) for a, b in zip(one, two, strict=True)]


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    arguments = sys.argv[1:]
    main(
        int(arguments[0]) if arguments else 100,
        float(arguments[1]) if len(arguments) > 1 else 5.0,
    )
