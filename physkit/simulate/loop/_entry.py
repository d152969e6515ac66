"""What verbs are given: a simulation first, then a state or carry."""

from typing import Any

from physkit.core import AbstractComponent, AbstractTerm, DeclarationError, describe
from physkit.integrators import AbstractIntegrator

from ._simulation import Simulation


def require_simulation(verb: str, sim: Any, other: Any, steps: Any = None) -> None:
    """Check the order of a verb's arguments: a simulation, a state, and the number of steps.

    **Errors:** `DeclarationError` says what was given instead, and how to make a simulation of it.
    """
    if isinstance(sim, Simulation):
        if isinstance(steps, AbstractComponent | dict):
            raise DeclarationError(
                f"pk.{verb}(simulation, state, steps): the state comes second, the number of steps third; got "
                f"{describe(other)} and {describe(steps)}"
            )
        return
    call = f"pk.{verb}(simulation, state, …)"
    if isinstance(other, Simulation):
        raise DeclarationError(
            f"{call}: the simulation comes first; here it is the second argument"
        )
    if sim is Simulation:
        advice = "give an instance, Simulation(integrator, dt=…)"
    elif isinstance(sim, AbstractIntegrator):
        advice = f"wrap the integrator: Simulation({type(sim).__name__}(…), dt=…)"
    elif isinstance(sim, AbstractTerm):
        advice = (
            "a term needs an integrator and a time step: Simulation(VelocityVerlet(force), dt=…), or "
            "Simulation(RK4(equation), dt=…)"
        )
    elif isinstance(sim, AbstractComponent):
        advice = "the state comes second; a simulation is Simulation(integrator, dt=…)"
    else:
        advice = "a simulation is Simulation(integrator, dt=…)"
    raise DeclarationError(f"{call} got {describe(sim)} as its simulation: {advice}")
