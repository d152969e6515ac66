"""Gradient by a mass through `size` steps of five bodies: the Sun and the giant planets."""

from benchmarks._gradient import codes, measure_gradient
from benchmarks._harness import print_measurement


def with_adjoint(adjoint, size: int) -> dict:
    import dataclasses

    import jax.numpy as jnp

    import physkit as pk

    sim, bodies = pk.systems.giant_planets()
    sim = dataclasses.replace(sim, observers=(), guards=(), adjoint=adjoint)

    def loss(scale):
        heavier = bodies.replace(mass=bodies.mass.at[1].multiply(scale))
        return jnp.sum(pk.simulate(sim, heavier, size).state.position ** 2)

    return measure_gradient(loss, jnp.asarray(1.0), size)


if __name__ == "__main__":
    print_measurement(codes(with_adjoint))
