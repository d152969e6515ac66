"""Gradient by viscosity through `size` steps of two-dimensional turbulence on 128² points, order 2."""

from benchmarks._gradient import codes, measure_gradient
from benchmarks._harness import print_measurement

POINTS, DT = 128, 0.004


def start():
    """Random vortices of unit speed."""
    import jax

    import physkit as pk

    grid = pk.Grid(pk.Box([2 * jax.numpy.pi] * 2), (POINTS, POINTS))
    return pk.systems.random_vorticity(grid, jax.random.key(0))


def with_adjoint(adjoint, size: int) -> dict:
    import jax.numpy as jnp

    import physkit as pk

    vorticity = start()

    def loss(viscosity):
        flow = pk.ETDRK2(pk.equations.VorticityTransport(viscosity))
        sim = pk.Simulation(flow, dt=DT, adjoint=adjoint)
        return jnp.mean(pk.simulate(sim, vorticity, size).state.data ** 2)

    return measure_gradient(loss, jnp.asarray(1e-3), size)


def with_exponax(size: int, precision: str) -> dict:
    """A plain scan, as its documentation differentiates."""
    import exponax
    import jax
    import jax.numpy as jnp

    del precision
    vorticity = start().data[None]

    def loss(viscosity):
        stepper = exponax.stepper.NavierStokesVorticity(
            2, float(2 * jax.numpy.pi), POINTS, DT, diffusivity=viscosity, order=2
        )
        step = lambda w, _: (stepper(w), None)
        return jnp.mean(jax.lax.scan(step, vorticity, None, length=size)[0] ** 2)

    return measure_gradient(loss, jnp.asarray(1e-3), size)


if __name__ == "__main__":
    ours = codes(with_adjoint)
    del ours["reversible"]  # viscosity cannot be undone
    print_measurement(ours | {"exponax": with_exponax})
