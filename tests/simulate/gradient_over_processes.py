"""A derivative over the devices of several processes, for `test_multiprocess_run.py`."""

import physkit as pk


def value_and_gradient(devices):
    """A loss after 20 steps and its derivative by the diffusivity."""
    import jax
    import jax.numpy as jnp

    from tests.simulate.diffusion_over_processes import case

    sim, state = case()

    def loss(diffusivity):
        other = pk.Simulation(
            pk.RK4(pk.equations.Diffusion(diffusivity)), dt=1e-3, observers=sim.observers
        )
        out = pk.simulate(other, state, 20, devices=devices)
        return jnp.sum(out.state.data**2) / 100 + out.frames["total"][-1]

    return jax.jit(jax.value_and_grad(loss))(0.01)


if __name__ == "__main__":
    pk.parallel.initialize(wait=100)
    value, derivative = value_and_gradient((2, 2))
    print(f"value {float(value)!r} {float(derivative)!r}", flush=True)
