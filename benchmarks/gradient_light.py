"""Gradient by the permittivity of every cell through `size` lossless steps of light on 128² cells."""

from benchmarks._gradient import codes, measure_gradient
from benchmarks._harness import print_measurement

CELLS = 128


def with_adjoint(adjoint, size: int) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk

    em = pk.electromagnetism
    grid = pk.Grid([1.0, 1.0], (CELLS, CELLS))
    spot = lambda x, y: jnp.exp(-((x - 0.4) ** 2 + (y - 0.5) ** 2) / 0.005)
    field = em.ElectromagneticField.of(grid, {"Ez": spot})
    noise = jax.random.uniform(jax.random.key(0), (CELLS, CELLS))

    def loss(medium):
        contrast, cells = medium
        maxwell = em.Maxwell(em.Dielectric(1.5 + contrast * cells))
        sim = pk.Simulation(em.Yee(maxwell), dt=0.6 / CELLS, adjoint=adjoint)
        return jnp.sum(pk.simulate(sim, field, size).state.Ez.data[90:] ** 2)

    return measure_gradient(loss, (jnp.asarray(0.5), noise), size)


if __name__ == "__main__":
    print_measurement(codes(with_adjoint))
