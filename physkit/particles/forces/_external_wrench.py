"""A force and a torque on rigid bodies, by a function of time and of the bodies."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ComponentError,
    DeclarationError,
    PyTree,
    State,
    as_arguments,
    call_user_function,
    describe,
    get_component,
    static,
)

from ..rigid._rigid_bodies import RigidBodies
from ._force import AbstractExternalForce


class ExternalWrench(AbstractExternalForce):
    """A force and a torque on each rigid body from outside, by any function of time and bodies.

        ExternalWrench(lambda t, bodies: (0 * bodies.position, -0.1 * bodies.angular_velocity))

    This is how anything acts on whole bodies: the pull of a motor, the lift and torque of a flow.

    **Arguments:**

    - `function`: `(t, bodies) → (force, torque)`, each `[n 3]` in space, the torque about the centers; with
      `args` `(t, bodies, args)`. Splitting methods need one that does not depend on velocities;
      `RK4(EquationsOfMotion(…))` takes any.
    - `args`: arrays that the function depends on and that should be differentiable.
    - `component`: name of the rigid bodies; None where the state is one component.

    **Errors:** `ComponentError` where the component is no `RigidBodies`; `DeclarationError` for a function that
    returns something else.
    """

    function: Callable = static()
    args: PyTree = eqx.field(default=None, converter=as_arguments)
    component: str | None = static(default=None)

    def force(self, clock: Clock, state: State) -> Float[Array, "n 6"]:
        bodies = get_component(state, self.component)
        if not isinstance(bodies, RigidBodies):
            raise ComponentError(
                f"ExternalWrench acts on rigid bodies; the state is {describe(bodies)}. ExternalForce acts on "
                "particles"
            )
        arguments: tuple[Any, ...] = (clock.t, bodies)
        signature = "(t, bodies)"
        if self.args is not None:
            arguments, signature = (*arguments, self.args), "(t, bodies, args)"
        pair = call_user_function(self.function, arguments, "a wrench", signature)
        shapes = [jnp.shape(x) for x in pair] if isinstance(pair, tuple) else None
        if shapes != [bodies.position.shape] * 2:
            raise DeclarationError(
                f"a wrench is a pair (force, torque), each of shape {list(bodies.position.shape)}; got "
                f"{describe(pair) if shapes is None else [list(s) for s in shapes]}"
            )
        return jnp.concatenate(pair, axis=1)
