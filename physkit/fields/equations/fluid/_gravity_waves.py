"""Long waves of small amplitude on a staggered grid."""

from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    Rate,
    State,
    as_increment,
    get_component,
    param,
    require_positive,
    static,
)

from ...operators import difference, staggered_divergence


class GravityWaves(AbstractTendency):
    """Linear shallow-water waves on Arakawa's C grid, without rotation or friction.

        ∂u/∂t = −g ∇η,   ∂η/∂t = −H ∇·u

    Waves of speed √(gH), for a state of fields: the elevation η in the cells, and one velocity per axis
    on the faces across it. `kick` and `drift` are the two halves by themselves, each exact under one
    Euler step and the same taken back:

        Strang(Euler(waves.kick), Euler(waves.drift))

    is the forward–backward scheme, symplectic and undamped. The same equations are those of sound
    (pressure and velocity).

    **Arguments:**

    - `gravity`: g, length / time².
    - `depth`: H, length.
    - `elevation`, `velocity`: names of the fields; as many velocities as axes.

    **Good values:** √(gH) dt < h/√d. On walls give the velocities `Dirichlet(0.0)` and the elevation
    `Neumann(0.0)`.

    **Reference:** Mesinger & Arakawa, GARP Publications 17 (1976), chapter IV; Arakawa & Lamb, Meth.
    Comput. Phys. 17, 173 (1977).
    """

    gravity: Float[Array, ""] = param(9.81)
    depth: Float[Array, ""] = param(1.0)
    elevation: str = static(default="elevation")
    velocity: tuple[str, ...] = static(default=("velocity_x", "velocity_y"))

    def __check_init__(self):
        require_positive(self, "gravity", "depth")

    @property
    def kick(self) -> "GravityWaveKick":
        """∂u/∂t alone."""
        return GravityWaveKick(self)

    @property
    def drift(self) -> "GravityWaveDrift":
        """∂η/∂t alone."""
        return GravityWaveDrift(self)

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        return {**self.kick.rate(clock, state), **self.drift.rate(clock, state)}


class GravityWaveKick(AbstractTendency):
    """What the slope of the surface does to velocities."""

    waves: GravityWaves

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        del clock
        surface = get_component(state, self.waves.elevation)
        gravity = self.waves.gravity
        return {
            name: as_increment(difference(surface, k) * -gravity)
            for k, name in enumerate(self.waves.velocity)
        }


class GravityWaveDrift(AbstractTendency):
    """What the divergence of the flow does to the surface."""

    waves: GravityWaves

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        del clock
        flow = [get_component(state, name) for name in self.waves.velocity]
        return {self.waves.elevation: as_increment(staggered_divergence(flow) * -self.waves.depth)}
