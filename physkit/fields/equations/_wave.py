"""Fields that obey Newton's equation: waves."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    Rate,
    State,
    as_increment,
    get_component,
    param,
    require_nonnegative,
    static,
)

from .._field import Field
from .._spectrum import Spectrum
from ..operators import AbstractScheme, Spectral, laplacian


class AbstractSecondOrder(AbstractTendency):
    """∂²u/∂t² = A(t, u): the field's Newton equation, for two fields of a state.

        ∂u/∂t = w,   ∂w/∂t = A(t, u)

    Write `acceleration`. `RK4(Wave(1.0))` takes both rates at once; `kick` and `drift` are the two
    halves by themselves, each exact under one Euler step, so that

        Strang(Euler(wave.kick), Euler(wave.drift))

    is velocity Verlet for fields: symplectic, reversible, order 2, at one acceleration more.
    """

    displacement: eqx.AbstractVar[str]
    velocity: eqx.AbstractVar[str]

    @abc.abstractmethod
    def acceleration(self, clock: Clock, field: Field) -> Field | Spectrum:
        """A(t, u) of the displacement `field`."""

    @property
    def kick(self) -> "WaveKick":
        """∂w/∂t = A(t, u) alone."""
        return WaveKick(self)

    @property
    def drift(self) -> "WaveDrift":
        """∂u/∂t = w alone."""
        return WaveDrift(self.displacement, self.velocity)

    @property
    def drifts(self) -> tuple[tuple[str, str | None], ...]:
        return ((type(self).__name__, self.displacement),)

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        return {**self.drift.rate(clock, state), **self.kick.rate(clock, state)}


class WaveKick(AbstractTendency):
    """What a field's Newton equation says of the velocity."""

    law: AbstractSecondOrder

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        field = get_component(state, self.law.displacement)
        return {self.law.velocity: as_increment(self.law.acceleration(clock, field))}


class WaveDrift(AbstractTendency):
    """What a field's Newton equation says of the displacement."""

    displacement: str = static()
    velocity: str = static()

    @property
    def drifts(self) -> tuple[tuple[str, str | None], ...]:
        return ((type(self).__name__, self.displacement),)

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        del clock
        return {self.displacement: get_component(state, self.velocity).increment()}


class Wave(AbstractSecondOrder):
    """Wave equation, for a state of two fields, `{"displacement": u, "velocity": w}`.

        ∂²u/∂t² = c² ∇²u

    On a line u(x, t) = ½[u₀(x − ct) + u₀(x + ct)] from rest (d'Alembert). Walls are the
    displacement's: `Dirichlet` holds them (waves return upside down), `Neumann` lets them slide.

    **Arguments:**

    - `speed`: c, length / time; one number, or one per point.
    - `displacement`, `velocity`: names of the two fields.
    - `scheme`: `Spectral()` on grids that repeat, `Central(order)` on any.

    **Good values:** c dt < h/√d with `Central(2)` and Strang's composition, which is exact for
    c dt = h on a line.

    **Reference:** d'Alembert, Hist. Acad. Sci. Berlin 3, 214 (1747).
    """

    speed: Float[Array, "..."] = param()
    displacement: str = static(default="displacement")
    velocity: str = static(default="velocity")
    scheme: AbstractScheme = Spectral()

    def __check_init__(self):
        require_nonnegative(self, "speed")

    def acceleration(self, clock: Clock, field: Field) -> Field:
        del clock
        return laplacian(field, self.scheme) * self.speed**2
