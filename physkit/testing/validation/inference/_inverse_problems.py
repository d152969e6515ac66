"""Inverse problems: parameters through chaos, of a fluid from its structure, initial phases."""

import jax
import jax.numpy as jnp
import numpy as np

from physkit import systems
from physkit.core import Function, find
from physkit.fit import fit_in_windows, gradient_growth
from physkit.observe import Every
from physkit.particles.forces import LennardJones
from physkit.simulate import Simulation, simulate

from .._case import Case, Published


def lorenz_exponent() -> dict[str, float]:
    """The largest Lyapunov exponent of Lorenz's system, over 6000 time units of RK4 with dt = 0.01."""
    sim, state = systems.lorenz()
    return {"exponent": gradient_growth(sim, state, 600_000, directions=1).exponent}


def lorenz_fit() -> dict[str, float]:
    """σ, ρ, β from a record of nine Lyapunov times with noise 1, by twenty windows, from 20 % off."""
    record = Every(5, x=lambda now: now.state)

    def lorenz(*parameters):
        sim, _ = systems.lorenz(*parameters)
        return Simulation(sim.integrator, dt=0.01, observers=record)

    start = jnp.array([-5.9, -5.5, 24.0])
    exact = simulate(lorenz(), start, 1_000).frames["x"]
    data = exact + jax.random.normal(jax.random.key(1), exact.shape)
    names = ("sigma", "rho", "beta")

    def parameter(k):
        return lambda m: find(m, Function).args[k]

    found = fit_in_windows(
        lambda frames, data: frames["x"] - data,
        (lorenz(8.0, 24.0, 2.2), data[0]),
        where={name: parameter(k) for k, name in enumerate(names)},
        steps=1_000, windows=20, data=data, starts=data[:-1:10], weights=(1.0, 100.0),
        progress=False,
    )  # fmt: skip
    return {name: float(found.values[name]) for name in names}


def fluid_from_structure() -> dict[str, float]:
    """ε and σ of 108 Lennard-Jones atoms from their g(r), by reweighting, from 10 % off."""
    fluid = systems.SmallFluid()
    truth = systems.fluid_structure(fluid, LennardJones(1.0, 1.0), jax.random.key(7))
    start = LennardJones(1.1, 0.9)
    found = systems.fit_fluid(fluid, truth.value, truth.error, start, report=lambda line: None)
    return {"epsilon": found.path[-1][0], "sigma": found.path[-1][1]}


def initial_phases() -> dict[str, float]:
    """Initial phases of 32³ particles from their final density, and the memory of the gradient."""
    noise = jax.random.normal(jax.random.key(1), (32,) * 3, jnp.float32)
    end = jax.jit(lambda x: systems.final_density(x, contrast=1.5).data)
    found = systems.recover_phases(end(noise), contrast=1.5)
    _, correlation = systems.correlation_by_scale(noise, found.noise)

    def memory(steps):
        def power(x):
            return jnp.sum(systems.final_density(x, steps, contrast=1.5).data ** 2)

        # What the compiled program reserves; it does not run.
        return jax.jit(jax.grad(power)).lower(noise).compile().memory_analysis().temp_size_in_bytes

    return {
        "correlation, 1 to 4 waves": float(np.min(correlation[:4])),
        "memory of 48 steps over 12": memory(48) / memory(12),
    }


CASES = (
    Case(
        "lorenz-exponent",
        lorenz_exponent,
        (Published("exponent", 0.9056, 0.02, "relative"),),
        "Sprott, Chaos and Time-Series Analysis (2003), p. 431; Viswanath 1998",
    ),
    Case(
        "lorenz-fit",
        lorenz_fit,
        (
            Published("sigma", 10.0, 0.04, "relative"),
            Published("rho", 28.0, 0.01, "relative"),
            Published("beta", 8 / 3, 0.02, "relative"),
        ),
        "the values of the record",
        slow=True,
    ),
    Case(
        "fluid-from-structure",
        fluid_from_structure,
        (Published("epsilon", 1.0, 0.01), Published("sigma", 1.0, 0.01)),
        "the values of the fluid; Henderson 1974",
        slow=True,
    ),
    Case(
        "initial-phases",
        initial_phases,
        (
            Published("correlation, 1 to 4 waves", 0.9, 0.0, "at least"),
            Published("memory of 48 steps over 12", 1.05, 0.0, "at most"),
        ),
        "the noise of the initial state",
        slow=True,
    ),
)
