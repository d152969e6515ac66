"""Gradient by the speed of sound in every cell through `size` lossless k-space steps, 128² cells."""

from benchmarks._gradient import codes, measure_gradient
from benchmarks._harness import print_measurement

CELLS = 128


def with_adjoint(adjoint, size: int) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk

    ac = pk.acoustics
    grid = pk.Grid([1.0, 1.0], (CELLS, CELLS))
    spot = lambda x, y: jnp.exp(-((x - 0.4) ** 2 + (y - 0.5) ** 2) / 0.005)
    field = ac.AcousticField.of(grid, {"pressure": spot})
    noise = jax.random.uniform(jax.random.key(0), (CELLS, CELLS))

    def loss(medium):
        contrast, cells = medium
        acoustics = ac.KSpaceAcoustics(1.0 + contrast * cells, reference_speed=1.5)
        sim = pk.Simulation(ac.StaggeredLeapfrog(acoustics), dt=0.3 / CELLS, adjoint=adjoint)
        return jnp.sum(pk.simulate(sim, field, size).state.pressure.data[90:] ** 2)

    return measure_gradient(loss, (jnp.asarray(0.2), noise), size)


if __name__ == "__main__":
    print_measurement(codes(with_adjoint))
