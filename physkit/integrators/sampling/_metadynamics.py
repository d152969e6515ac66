"""Well-tempered metadynamics: hills that fill the free energy."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Aux,
    Clock,
    Module,
    ParameterError,
    Plan,
    ShapeError,
    State,
    as_count,
    as_parameter,
    find,
    param,
    poison_where,
    require_above,
    require_nonnegative,
    require_positive,
    static,
)
from physkit.particles.forces import GridBias

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches
from ..baths._barostat import is_due
from ..baths._bath import AbstractBath, as_integrator
from ..baths._targets import temperature_at, thermostat_temperature


class HillGrid(Module):
    """The nodes that a bias in a carry is given at."""

    lower: tuple[float, ...] = static()
    upper: tuple[float, ...] = static()
    nodes: tuple[int, ...] = static()

    @staticmethod
    def of(bias: GridBias) -> "HillGrid":
        """That of a bias."""
        return HillGrid(bias.lower, bias.upper, bias.values.shape)


# Of the integrator inside, the energy that hills have taken up, the bias at the nodes, and where these are.
MetadynamicsAux = tuple[Aux, Float[Array, ""], Float[Array, "..."], HillGrid]


class Metadynamics(AbstractBath):
    """Well-tempered metadynamics: Gaussian hills where the collective variables are fill up their free energy.

        V(ξ) += h e^{−V(ξₙ)/k_BΔT} e^{−Σ (ξ − ξₙ)²/2w²}   every `interval` steps,   ΔT = (γ − 1) T
        F(ξ) = −γ/(γ − 1) V(ξ) + constant,   in the long run

        bias = GridBias(CollectiveVariable(first_coordinate), -2.0, 2.0)
        Metadynamics(BAOAB(force + bias, temperature=0.1, friction=1.0), height=0.02, width=0.1)

    The bias is carried by the run: checkpoints hold it, and a run that goes on is bitwise the same.

    **Arguments:**

    - `integrator`: moves the particles at constant temperature, with one `GridBias` among its forces: its
      variables, its grid, and the bias to start from.
    - `height`: h, energy, of the first hills.
    - `width`: w, in the units of the variables; one number or one for each.
    - `bias_factor`: γ > 1; infinite for metadynamics whose hills do not shrink.
    - `interval`: steps between hills.

    **Errors:** `SelectionError` without a `GridBias`, or with several; `DeclarationError` for no thermostat;
    `ParameterError` for numbers out of their ranges, and for a carry with hills on another grid; `ShapeError`
    for widths of another number.

    **Good values:** h of k_B T/10 to k_B T; w a third of the width of a well; γ near the barrier over k_B T;
    an interval longer than ξ stays correlated in a well.

    **Notes:** the quantity `MetadynamicsFreeEnergy` is F at the nodes, `CollectiveVariables` records ξ,
    `ConservedEnergy` counts what hills give. Hills near the end of a grid are cut off: it should reach further
    than the variables. Its nodes must be dense: at most w/2 apart.

    **Reference:** Barducci, Bussi & Parrinello, Phys. Rev. Lett. 100, 020603 (2008); Laio & Parrinello,
    Proc. Natl. Acad. Sci. 99, 12562 (2002).
    """

    integrator: AbstractIntegrator = eqx.field(converter=as_integrator)
    height: Float[Array, ""] = param()
    width: Float[Array, "..."] = param()
    bias_factor: Float[Array, ""] = param(10.0)
    interval: int = static(default=500)

    def __init__(
        self,
        integrator: AbstractIntegrator,
        height: ArrayLike,
        width: ArrayLike | Sequence[float],
        *,
        bias_factor: ArrayLike = 10.0,
        interval: int = 500,
    ):
        self.integrator = as_integrator(integrator)
        self.height, self.width = as_parameter(height), as_parameter(_as_array(width))
        self.bias_factor = as_parameter(bias_factor)
        self.interval = as_count(interval, "interval", ParameterError)

    def __check_init__(self):
        require_nonnegative(self, "height")
        require_positive(self, "width")
        require_above(self, 1.0, "bias_factor")
        number = len(find(self.integrator, GridBias).variables)
        if self.width.ndim and self.width.shape != (number,):
            raise ShapeError(
                f"width is one number, or one for each of {number} variables; got {self.width.shape}"
            )
        thermostat_temperature(self.integrator, type(self).__name__)

    def prepare(self, state: State, dt: StepSize) -> Plan:
        return self.integrator.prepare(state, dt)

    def init(self, plan: Plan, clock: Clock, state: State) -> MetadynamicsAux:
        inner, zero = super().init(plan, clock, state)
        bias = find(self.integrator, GridBias)
        return inner, zero, bias.values.astype(zero.dtype), HillGrid.of(bias)

    def refresh(
        self, plan: Plan, clock: Clock, state: State, aux: MetadynamicsAux
    ) -> MetadynamicsAux:
        inner, *own = aux
        return self._biased(aux).refresh(plan, clock, state, inner), *own

    def step(
        self, plan: Plan, clock: Clock, state: State, aux: MetadynamicsAux
    ) -> tuple[State, MetadynamicsAux]:
        inner, *own = aux
        state, inner = self._biased(aux).step(plan, clock, state, inner)
        after = (inner, *own)

        def deposit(after: MetadynamicsAux) -> MetadynamicsAux:
            return self._deposit(plan, clock, state, after)

        return state, jax.lax.cond(is_due(clock, self.interval), deposit, lambda aux: aux, after)

    def terms(self, aux: MetadynamicsAux) -> TermsWithCaches:
        return self._biased(aux).terms(aux[0])

    def bias(self, aux: MetadynamicsAux) -> GridBias:
        """The bias as it is now."""
        return find(self._biased(aux), GridBias)

    def free_energy(self, aux: MetadynamicsAux) -> Float[Array, "..."]:
        """F at the nodes of the grid, 0 where it is lowest."""
        values = aux[2]
        # γ/(γ − 1), for an infinite γ, too.
        energy = -values / (1 - 1 / self.bias_factor)
        return energy - jnp.min(energy)

    def _biased(self, aux: MetadynamicsAux) -> AbstractIntegrator:
        """The integrator inside with the bias of `aux`.

        **Errors:** `ParameterError` for one on another grid, whose nodes are at other places.
        """
        _, _, values, grid = aux
        own = HillGrid.of(find(self.integrator, GridBias))
        if grid != own:
            raise ParameterError(
                f"the hills in this carry are on another grid: {_describe(grid)}, and the GridBias has "
                f"{_describe(own)}. Start from carry.state; GridBias(…, values=…) begins with a bias"
            )
        return eqx.tree_at(lambda tree: find(tree, GridBias).values, self.integrator, values)

    def _deposit(
        self, plan: Plan, clock: Clock, state: State, aux: MetadynamicsAux
    ) -> MetadynamicsAux:
        inner, given, values, grid = aux
        bias, end = self.bias(aux), self.end_clock(clock)
        target = thermostat_temperature(self.integrator, type(self).__name__)
        temperature = temperature_at(target, self.own_clock(clock))
        # No derivative goes through where hills are put; by height, width and γ there is one.
        place = tuple(jax.lax.stop_gradient(x) for x in bias.variable_values(state))
        before = bias.energy_of(place)
        # A trace may have hidden a γ that is too small: NaN makes it visible.
        factor = poison_where(self.bias_factor, ~(self.bias_factor > 1))
        height = self.height * jnp.exp(-before / ((factor - 1) * temperature))
        hill, widths = height, jnp.broadcast_to(self.width, (len(place),))
        for variable, nodes, x, w in zip(bias.variables, bias.nodes, place, widths, strict=True):
            along = jnp.exp(-0.5 * (variable.difference(nodes, x) / w) ** 2)
            hill = jnp.multiply.outer(hill, along)
        values = values + hill
        after = (inner, given, values, grid)
        change = self.bias(after).energy_of(place) - before
        inner = self._biased(after).refresh(plan, end, state, inner)
        return inner, given - change, values, grid


def _describe(grid: HillGrid) -> str:
    rows = zip(grid.nodes, grid.lower, grid.upper, strict=True)
    return " by ".join(f"{n} nodes from {a:g} to {b:g}" for n, a, b in rows)


def _as_array(width: ArrayLike | Sequence[float]) -> ArrayLike:
    return np.asarray(width, float) if isinstance(width, list | tuple) else width
