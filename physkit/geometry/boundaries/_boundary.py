"""Boundary kinds: the values of the ghost cells beyond a wall."""

import abc
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from physkit.core import Module, ParameterError, concrete_value

from ._space_time_value import (
    SpaceTimeValue,
    as_space_time_value,
    component_of,
    evaluate_on_wall,
)
from ._wall import Wall, shape_for_wall


class AbstractBoundary(Module):
    """The values beyond one side of the box, for one field."""

    @abc.abstractmethod
    def ghosts(self, near: Float[Array, "..."], width: int, wall: Wall) -> Float[Array, "..."]:
        """`width` ghost layers, counted from the wall outwards.

        **Arguments:**

        - `near`: the layers inside, counted from the wall inwards, so that both sides of an axis look alike:
          `[*components, *points]`, as thick as `width` needs along the wall's axis.
        - `wall`: the side of the box.
        """

    def for_component(self, index: int, axis: int | None) -> "AbstractBoundary":
        """This boundary for one component of a field.

        **Arguments:**

        - `index`: of the component.
        - `axis`: that of the wall, if the components are those of a vector; else None.
        """
        del index, axis
        return self

    def at_time(self, t: ArrayLike, x: Sequence[Array], parts: int = 0) -> "AbstractBoundary":
        """This boundary at time `t`: values that are functions of time and place are evaluated.

        **Arguments:**

        - `x`: coordinates of the points on the wall, one array per axis.
        - `parts`: number of component axes of the field.
        """
        del t, x, parts
        return self

    def prescribed(self, axis: int, vector: bool) -> tuple[int | None, SpaceTimeValue] | None:
        """What the field is on the wall itself, for points that sit there.

        **Arguments:**

        - `axis`: that of the wall.
        - `vector`: whether the components of the field are those of a vector.

        **Returns:** the component that is prescribed (None for all) and its value, as that of `Dirichlet`;
        None where the field on the wall is free.
        """
        del axis, vector


class Periodic(AbstractBoundary):
    """The other side of the box: for periodic axes, and only for those."""

    def ghosts(self, near, width, wall):
        # The ghosts come from the other end of the axis, which one side does not have.
        raise ParameterError(
            "a periodic side has no ghosts of its own: Grid.pad fills both sides together"
        )


class Outflow(AbstractBoundary):
    """Zero gradient: ghosts repeat the outermost value, so that waves leave the box."""

    def ghosts(self, near, width, wall):
        # Layer 0 is the outermost one, on the wall or half a cell inside.
        return jnp.repeat(wall.layers(near, 0, 1), width, axis=wall.array_axis(near))


class Mirror(AbstractBoundary):
    """A mirror, which for a flow is a wall without friction (free slip).

    Scalars and tangential components are even, the component of a vector along the normal is odd.
    """

    def ghosts(self, near, width, wall):
        return wall.mirror_layers(near, width) * wall.normal_sign(near)

    def for_component(self, index, axis):
        # Odd about the wall, as values that are 0 on it.
        return Dirichlet(0.0) if index == axis else self

    def prescribed(self, axis, vector):
        return (axis, 0.0) if vector else None


class Dirichlet(AbstractBoundary):
    """u = `value` on the wall.

    **Arguments:**

    - `value`: a number, `[*components]`, an array over `[*components, *wall]`, a function
      `(t, *x) → value`, or a Module that is called like one and whose parameters have gradients.

    **Notes:** ghosts are 2·value − mirror image. Second order: the wall lies half a cell from cell
    centers.
    """

    value: SpaceTimeValue

    def __init__(self, value: SpaceTimeValue = 0.0):
        self.value = as_space_time_value(value)

    def ghosts(self, near, width, wall):
        # The mean of a ghost and its mirror image is the value on the wall.
        return 2 * shape_for_wall(self.value, near, wall) - wall.mirror_layers(near, width)

    def for_component(self, index, axis):
        return Dirichlet(component_of(self.value, index))

    def at_time(self, t, x, parts=0):
        return Dirichlet(evaluate_on_wall(self.value, t, x, parts))

    def prescribed(self, axis, vector):
        return None, self.value


class Neumann(AbstractBoundary):
    """∂u/∂n = `slope` on the wall, n pointing outwards.

    **Arguments:**

    - `slope`: as the value of `Dirichlet`, per length.
    """

    slope: SpaceTimeValue

    def __init__(self, slope: SpaceTimeValue = 0.0):
        self.slope = as_space_time_value(slope)

    def ghosts(self, near, width, wall):
        # A ghost differs from its mirror image by the slope times their distance.
        rise = shape_for_wall(self.slope, near, wall) * wall.distances(near, width)
        return wall.mirror_layers(near, width) + rise

    def for_component(self, index, axis):
        return Neumann(component_of(self.slope, index))

    def at_time(self, t, x, parts=0):
        return Neumann(evaluate_on_wall(self.slope, t, x, parts))


class Robin(AbstractBoundary):
    """∂u/∂n + `coefficient`·u = `value` on the wall, n pointing outwards: exchange with what is outside.

    Heat that a wall passes to surroundings of temperature T, −k ∂u/∂n = h(u − T), has coefficient h/k and value
    hT/k.

    **Arguments:**

    - `coefficient`: ≥ 0, 1 / length, as the value of `Dirichlet`; 0 is `Neumann`.
    - `value`: as the value of `Dirichlet`, per length.
    """

    coefficient: SpaceTimeValue
    value: SpaceTimeValue

    def __init__(self, coefficient: SpaceTimeValue, value: SpaceTimeValue = 0.0):
        self.coefficient, self.value = map(as_space_time_value, (coefficient, value))

    def __check_init__(self):
        number = None if isinstance(self.coefficient, Module) else concrete_value(self.coefficient)
        if number is not None and not np.all(number >= 0):
            raise ParameterError(
                f"the coefficient of a Robin boundary must be at least 0; got {float(np.min(number)):.6g}"
            )

    def ghosts(self, near, width, wall):
        mirror, distance = wall.mirror_layers(near, width), wall.distances(near, width)
        alpha = shape_for_wall(self.coefficient, near, wall) * distance
        rise = shape_for_wall(self.value, near, wall) * distance
        if wall.on_wall:
            # The value on the wall is the first layer inside; the slope spans both sides of it.
            return mirror + rise - alpha * wall.layers(near, 0, 1)
        # The mean of a ghost and its mirror image is the value on the wall.
        return (rise + mirror * (1 - 0.5 * alpha)) / (1 + 0.5 * alpha)

    def for_component(self, index, axis):
        return Robin(component_of(self.coefficient, index), component_of(self.value, index))

    def at_time(self, t, x, parts=0):
        coefficient, value = (
            evaluate_on_wall(v, t, x, parts) for v in (self.coefficient, self.value)
        )
        return Robin(coefficient, value)


class Inflow(AbstractBoundary):
    """A given state beyond the side: ghost cells hold `value` itself.

    For flows by finite volumes: the waves at a face decide what enters and what leaves, and shocks may pass.

    **Arguments:**

    - `value`: as that of `Dirichlet`.
    """

    value: SpaceTimeValue

    def __init__(self, value: SpaceTimeValue):
        self.value = as_space_time_value(value)

    def ghosts(self, near, width, wall):
        return jnp.broadcast_to(
            shape_for_wall(self.value, near, wall), wall.mirror_layers(near, width).shape
        )

    def for_component(self, index, axis):
        return Inflow(component_of(self.value, index))

    def at_time(self, t, x, parts=0):
        return Inflow(evaluate_on_wall(self.value, t, x, parts))


class NoSlip(AbstractBoundary):
    """A wall to which a flow sticks: its velocity is that of the wall; scalars are even (no flux through it).

    **Arguments:**

    - `velocity`: `[d]` or one number for all components, or a function `(t, *x)`, length / time. The
      wall may move along itself; through itself it must not.
    """

    velocity: SpaceTimeValue

    def __init__(self, velocity: SpaceTimeValue = 0.0):
        self.velocity = as_space_time_value(velocity)

    def ghosts(self, near, width, wall):
        mirror = wall.mirror_layers(near, width)
        return 2 * shape_for_wall(self.velocity, near, wall) - mirror if wall.vector else mirror

    def for_component(self, index, axis):
        # Without an axis the components are scalars, which are even.
        return self if axis is None else Dirichlet(component_of(self.velocity, index))

    def at_time(self, t, x, parts=0):
        return NoSlip(evaluate_on_wall(self.velocity, t, x, parts))

    def prescribed(self, axis, vector):
        return (None, self.velocity) if vector else None
