"""Monte Carlo of spins, site by site: heat bath and Metropolis on a checkerboard."""

import abc
from collections.abc import Callable
from typing import cast

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    Clock,
    DeclarationError,
    ShapeError,
    State,
    describe,
    put_component,
    require_positive,
)
from physkit.geometry import AXES, Grid
from physkit.spins import UNDEFINED, AbstractSpinModel, Spins, site_index

from .._accept_reject import is_accepted
from .._integrator import AbstractOneStep, StepSize, TermsWithCaches
from ..baths._targets import Target, as_target, positive, target_at


def as_model(model: object) -> AbstractSpinModel:
    """`model`, of spins.

    **Errors:** `DeclarationError` for something else.
    """
    if isinstance(model, AbstractSpinModel) or type(model) is object:
        return cast(AbstractSpinModel, model)
    raise DeclarationError(
        f"spins have an energy: IsingModel(…) or PottsModel(q, …); got {describe(model)}"
    )


class AbstractSpinUpdate(AbstractOneStep):
    """A step that draws spins anew, at a temperature that is a number or a function of time."""

    model: eqx.AbstractVar[AbstractSpinModel]
    temperature: eqx.AbstractVar[Target]

    def __check_init__(self):
        require_positive(self, "temperature")

    def check_step(self, state: State, dt: StepSize) -> None:
        del dt
        self.model.check_state(state)

    def step(self, plan: None, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        spins = self.model.spins_of(state)
        temperature = positive(target_at(self.temperature, clock)).astype(spins.grid.spacing.dtype)
        updated = self.update(clock.key, spins, temperature)
        # Whole numbers cannot be NaN: a temperature or an energy that is none leaves a value that no spin has.
        energies = jnp.stack([self.model.coupling, self.model.field])
        is_lost = jnp.isnan(temperature) | ~jnp.all(jnp.isfinite(energies))
        data = jnp.where(is_lost, jnp.int8(UNDEFINED), updated.data)
        return put_component(state, self.model.component, spins.with_values(data)), aux

    @abc.abstractmethod
    def update(self, key: Array, spins: Spins, temperature: Float[Array, ""]) -> Spins:
        """The spins after a step."""

    def terms(self, aux: None) -> TermsWithCaches:
        return ((self.model, aux),)


class SpinHeatBath(AbstractSpinUpdate):
    """Every spin is drawn once a step from its Boltzmann distribution among its neighbors.

        p(s_i = v) = e^{−E_i(v)/k_B T} / Σ_v' e^{−E_i(v')/k_B T}

    First all sites of one color of a checkerboard, which are no neighbors, then all of the other.

        Simulation(SpinHeatBath(IsingModel(), temperature=2.0), dt=1.0)

    Time counts sweeps: give dt=1. Many temperatures are members of a `sweep`.

    **Arguments:**

    - `model`: `IsingModel(…)` or `PottsModel(…)`.
    - `temperature`: k_B T, energy: a number, or a function of time.

    **Errors:** `ParameterError` for a temperature that is not positive; `ShapeError` for a periodic axis with
    an odd number of sites, which no checkerboard covers; `ComponentError` for values that the model does not
    have.

    **Good values:** far from T_c. There correlation times grow as L²: take `SwendsenWang`.

    **Notes:** needs a key. The random number of a site depends on (key, step, site): results are the same
    on one device and on many, bit by bit. What is drawn has no derivative: that of an average by the
    temperature follows from fluctuations, as in `spin_averages`.

    **Reference:** Creutz, Phys. Rev. D 21, 2308 (1980).
    """

    model: AbstractSpinModel = eqx.field(converter=as_model)
    temperature: Target = eqx.field(converter=as_target)

    def update(self, key: Array, spins: Spins, temperature: Float[Array, ""]) -> Spins:
        values = jnp.asarray(self.model.values, spins.data.dtype)
        drawn = spins.grid.random_uniform(key)  # every site is drawn once a step

        def draw(spins: Spins) -> Array:
            energies = self.model.local_energies(spins)
            # From the lowest: the largest weight is 1, whatever the temperature.
            weights = jnp.exp((jnp.min(energies, axis=0, keepdims=True) - energies) / temperature)
            levels = jnp.cumsum(weights, axis=0)
            return values[jnp.sum((drawn * levels[-1])[None] >= levels[:-1], axis=0)]

        return _sweep(spins, draw)


class SpinMetropolis(AbstractSpinUpdate):
    """Every spin tries another value once a step, and takes it by Metropolis' rule.

        s_i → v,   accepted with min(1, e^{−(E_i(v) − E_i(s_i))/k_B T})

    v is the other value of an Ising spin, one of the q − 1 others of a Potts spin. First all sites of one color
    of a checkerboard, then all of the other.

    **Arguments, errors, notes:** as of `SpinHeatBath`.

    **Good values:** below T_c it changes more spins than a heat bath. Where nothing costs energy it accepts
    everything, and a sweep of Ising spins turns them all round: there take `SpinHeatBath`.

    **Reference:** Metropolis et al., J. Chem. Phys. 21, 1087 (1953).
    """

    model: AbstractSpinModel = eqx.field(converter=as_model)
    temperature: Target = eqx.field(converter=as_target)

    def update(self, key: Array, spins: Spins, temperature: Float[Array, ""]) -> Spins:
        values = jnp.asarray(self.model.values, spins.data.dtype)
        q = len(self.model.values)
        choice, proposal = spins.grid.random_uniform(key, (2,))
        # One of the other values: some steps ahead in the cycle of all.
        ahead = 1 + jnp.minimum((proposal * (q - 1)).astype(jnp.int32), q - 2)

        def draw(spins: Spins) -> Array:
            energies = self.model.local_energies(spins)
            now = jnp.searchsorted(values, spins.data)
            then = (now + ahead) % q
            before, after = (
                jnp.take_along_axis(energies, index[None], axis=0)[0] for index in (now, then)
            )
            accepted = is_accepted(choice, (after - before) / temperature)
            return jnp.where(accepted, values[then], spins.data)

        return _sweep(spins, draw)


def _sweep(spins: Spins, draw: Callable[[Spins], Array]) -> Spins:
    """The spins after both colors have taken the values that `draw(spins)` gives."""
    color = _checkerboard(spins.grid)
    for own in (color, ~color):
        spins = spins.with_values(jnp.where(own, draw(spins), spins.data))
    return spins


def _checkerboard(grid: Grid) -> Bool[Array, "..."]:
    """Which sites have an even sum of indices.

    **Errors:** `ShapeError` for a periodic axis of odd length, whose ends have the same color.
    """
    for axis, (n, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        if wraps and n % 2:
            raise ShapeError(
                f"{n} sites along {AXES[axis]}, which is periodic: a checkerboard needs an even number; "
                "SwendsenWang takes any"
            )
    total = sum((site_index(grid, k) for k in range(grid.dimension)), jnp.zeros((), jnp.int32))
    return total % 2 == 0
