"""Functions outside of simulations read changed numbers, too: in states, statistics and operators."""

import warnings

import jax.numpy as jnp
import numpy as np

import physkit as pk


def test_functions_of_states_statistics_and_operators_are_compiled_anew():
    value = 1.0
    side = pk.boundaries.Dirichlet(lambda t, *x: value)
    grid = pk.Grid(pk.Box([1.0], (False,)), (4,))
    field = pk.Field(jnp.zeros(4), grid, None, side)
    law = pk.equations.Diffusion(0.1, scheme=pk.fields.operators.Central(2))
    simulation = pk.Simulation(pk.Euler(law), dt=0.01)
    operator = pk.quantum.PauliSum({"Z": 1.0}).driven(lambda t: value + 0 * t)
    sample = np.linspace(0.0, 1.0, 9)
    calls = {
        "run": lambda: pk.run(simulation, field, 1, progress=False).state.data[0],
        "simulate": lambda: pk.simulate(simulation, field, 1).state.data[0],
        "bootstrap": lambda: pk.ensemble.bootstrap(lambda v: value * v.mean(), sample, key=0).error,
        "matrix": lambda: operator.matrix((2,))[0, 0].real,
    }
    for name, call in calls.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pk.errors.PhyskitWarning)
            value = 1.0
            before = float(call())
            value = 3.0
            np.testing.assert_allclose(float(call()), 3 * before, rtol=1e-5, err_msg=name)
