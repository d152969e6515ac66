"""Networks of reactions by mass action."""

import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    ComponentError,
    DeclarationError,
    Rate,
    ShapeError,
    State,
    as_parameter,
    describe,
    get_component,
    param,
    require_nonnegative,
    safe_maximum,
    static,
)
from physkit.fields import AbstractEquation, Field

_TERM = re.compile(r"(?:(\d+)\s*\*?\s*)?([A-Za-z_]\w*)")

Side = tuple[int, ...]  # how many of each species


class ReactionNetwork(AbstractEquation):
    """Reactions by mass action, written as chemists do.

        ReactionNetwork(["A + B -> C", "2 C -> 0"], rates=[1.0, 0.1])

        dc/dt = Σ_r ν_r k_r Π_s c_s^m_rs,   a_r = k_r Ω^{1 − Σm} Π_s n_s (n_s − 1) … (n_s − m_rs + 1)

    with m molecules on the left and ν = right − left. One network serves three ways: `Gillespie(network)` and
    `TauLeaping(network)` move copy numbers by the propensities a; `RK4(RateEquations(network))` moves
    concentrations; as an equation of a field with a component for each species it reacts in space,
    `ETDRK4(Diffusion(…), network)`.

    **Arguments:**

    - `reactions`: strings. Nothing is written 0, or left out. A reaction and its reverse are two.
    - `rates`: k, `[reactions]`, concentration^(1 − order) / time; for fields also `[reactions, *points]`.
    - `species`: their names in the order of the state; by default as they appear.
    - `component`: the name of what reacts, where the state has several components.

    **Errors:** `DeclarationError` for a reaction that cannot be read, or a species that is not among `species`;
    `ShapeError` unless there is a rate for each reaction; `ParameterError` for negative rates.

    **Notes:** there is no 1/m! in a: 2A → B goes k n (n − 1)/Ω times per unit of time, and takes two A each.

    **Reference:** Gillespie, J. Phys. Chem. 81, 2340 (1977).
    """

    rates: Float[Array, "..."] = param()
    reactants: tuple[Side, ...] = static()
    products: tuple[Side, ...] = static()
    species: tuple[str, ...] = static()
    component: str | None = static(default=None)

    def __init__(
        self,
        reactions: Sequence[str],
        rates: ArrayLike | Sequence[Any],
        *,
        species: Sequence[str] | None = None,
        component: str | None = None,
    ):
        if isinstance(reactions, str) or not reactions:
            raise DeclarationError(
                f'reactions are a list of strings, ["A -> B", …]; got {describe(reactions)}'
            )
        sides = [_parse(reaction) for reaction in reactions]
        found = dict.fromkeys(name for pair in sides for side in pair for name in side)
        self.species = tuple(found if species is None else species)
        unknown = sorted(set(found) - set(self.species))
        if unknown or len(set(self.species)) < len(self.species):
            raise DeclarationError(
                f"species={list(self.species)} are each named once; unknown: {unknown}"
            )
        count = lambda side: tuple(side.get(name, 0) for name in self.species)
        self.reactants = tuple(count(left) for left, _ in sides)
        self.products = tuple(count(right) for _, right in sides)
        self.rates = as_parameter(rates)
        if self.rates.ndim == 0 or len(self.rates) != len(sides):
            raise ShapeError(
                f"a rate for each of {len(sides)} reactions; got shape {self.rates.shape}"
            )
        self.component = component

    def __check_init__(self):
        require_nonnegative(self, "rates")

    @property
    def stoichiometry(self) -> np.ndarray:
        """ν, `[reactions, species]`: what one event of each reaction changes."""
        return np.array(self.products, np.int32) - np.array(self.reactants, np.int32)

    def propensities(self, counts: Array, volume: Float[Array, ""]) -> Float[Array, " reactions"]:
        """Events per unit of time of each reaction, from copy numbers."""
        n = counts.astype(self.rates.dtype)
        out = []
        for rate, side in zip(self._well_stirred_rates(), self.reactants, strict=True):
            value = rate * volume ** (1 - sum(side))
            for s, order in enumerate(side):
                for taken in range(order):
                    value = value * (n[s] - taken)
            out.append(value)
        # 1 (1 − 1) (1 − 2) is 0, 0 (0 − 1) is −0.
        return safe_maximum(jnp.stack(out), 0)

    def concentration_rates(
        self, concentrations: Float[Array, "species ..."]
    ) -> Float[Array, "species ..."]:
        """dc/dt of each species, with any axes behind the first."""
        c = concentrations
        if c.ndim == 0 or c.shape[0] != len(self.species):
            raise ShapeError(
                f"the network has the species {list(self.species)}; got shape {c.shape}"
            )
        speeds = []
        for rate, side in zip(self.rates, self.reactants, strict=True):
            value = jnp.broadcast_to(rate, c.shape[1:])
            for s, order in enumerate(side):
                for _ in range(order):
                    value = value * c[s]
            speeds.append(value)
        changes = []
        for column in self.stoichiometry.T.tolist():
            parts = [v * speed if v != 1 else speed for v, speed in zip(column, speeds) if v]
            changes.append(sum(parts[1:], parts[0]) if parts else jnp.zeros_like(c[0]))
        return jnp.stack(changes)

    def rate(self, clock: Clock, state: State) -> Rate:
        """**Errors:** `ComponentError` for copy numbers or plain concentrations, which others move."""
        found = get_component(state, self.component)
        if not isinstance(found, Field):
            raise ComponentError(
                f"a ReactionNetwork by itself moves a field; the state is {describe(found)}. "
                "RK4(RateEquations(network)) moves concentrations [species], Gillespie(network) and "
                "TauLeaping(network) move Populations"
            )
        return super().rate(clock, state)

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        return field.with_values(self.concentration_rates(field.data))

    def _well_stirred_rates(self) -> Float[Array, " reactions"]:
        """**Errors:** `ShapeError` for rates that differ from place to place."""
        if self.rates.ndim != 1:
            raise ShapeError(
                f"a well-stirred volume has one rate a reaction; got {self.rates.shape}"
            )
        return self.rates


class RateEquations(AbstractTendency):
    """The deterministic limit of a network in a well-stirred volume: concentrations `[species]`.

        dc/dt = Σ_r ν_r k_r Π_s c_s^m_rs

        Simulation(RK4(RateEquations(network)), dt=0.01)

    **Arguments:** `network`. Its `component` names the concentrations, where the state has several components.
    """

    network: ReactionNetwork

    def rate(self, clock: Clock, state: State) -> State:
        del clock
        name = self.network.component
        concentrations = get_component(state, name)
        if not isinstance(concentrations, jax.Array | np.ndarray):
            raise ComponentError(
                f"RateEquations move concentrations, an array [species]; got {describe(concentrations)}. "
                "Gillespie and TauLeaping move Populations"
            )
        rate = self.network.concentration_rates(concentrations)
        return rate if name is None else {name: rate}


def _parse(reaction: str) -> tuple[dict[str, int], dict[str, int]]:
    """Both sides of a reaction."""
    if not isinstance(reaction, str) or len(reaction.split("->")) != 2:
        raise DeclarationError(f'a reaction is written "2 A + B -> C"; got {describe(reaction)}')
    if "<" in reaction:
        raise DeclarationError(
            f"a reaction and its reverse are two, each with a rate, not {reaction!r}"
        )
    sides: list[dict[str, int]] = []
    for text in reaction.split("->"):
        side: dict[str, int] = {}
        for term in [] if text.strip() in ("", "0", "∅") else text.split("+"):
            match = _TERM.fullmatch(term.strip())
            if match is None:
                raise DeclarationError(
                    f"in {reaction!r}, {term.strip()!r} is no number of molecules of a species, as in 2 A"
                )
            side[match[2]] = side.get(match[2], 0) + int(match[1] or 1)
        sides.append(side)
    return sides[0], sides[1]
