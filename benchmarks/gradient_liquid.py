"""Gradient by σ and ε through `size` steps of a Lennard-Jones liquid of 500 atoms, list and rebuilds included.

Liquids are chaotic: the derivative grows by e every 150 steps or so, and its value means nothing. What
it costs is the same.
"""

from benchmarks._gradient import codes, measure_gradient
from benchmarks._harness import print_measurement


def with_adjoint(adjoint, size: int) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk

    position, box = pk.lattice.face_centered_cubic((5, 5, 5), density=0.8442)
    atoms = pk.maxwell_boltzmann(jax.random.key(0), pk.Particles(position, space=box), 1.44)

    def simulation(theta):
        potential = pk.LennardJones(sigma=theta["sigma"], epsilon=theta["epsilon"])
        force = pk.Pairwise(potential, cutoff=2.5, skin=0.3, exact=True)
        return pk.Simulation(pk.VelocityVerlet(force), dt=0.004, adjoint=adjoint)

    at = {"sigma": jnp.asarray(1.0), "epsilon": jnp.asarray(1.0)}
    melted = pk.run(simulation(at), atoms, 200, progress=False)
    atoms, capacity = melted.state, 128

    def loss(theta):
        sim = simulation(theta)
        begin = pk.init(sim, atoms, capacity=capacity)
        return jnp.mean(pk.simulate(sim, begin, size).state.velocity ** 2)

    return measure_gradient(loss, at, size)


if __name__ == "__main__":
    print_measurement(codes(with_adjoint))
