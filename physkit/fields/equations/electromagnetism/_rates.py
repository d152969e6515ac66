"""How fast light, electrons and conductors move a field on a grid: what limits a step."""

from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import concrete_value
from physkit.geometry import Grid

from ._media import AbstractDispersiveMedium, Dielectric, Pole

if TYPE_CHECKING:
    from ._maxwell import Maxwell


class _Numbers(NamedTuple):
    """What the rates depend on. `filling`: of each dielectric, whether it fills all of space."""

    permittivities: list[Array]
    conductivities: list[Array | None]
    filling: list[bool]
    poles: list[Pole]
    vacuum_permittivity: Array
    vacuum_permeability: Array
    spacing: Array

    @classmethod
    def of(cls, maxwell: "Maxwell", grid: Grid) -> "_Numbers":
        dielectrics = [m for m in maxwell.media if isinstance(m, Dielectric)]
        return cls(
            [m.permittivity for m in dielectrics],
            [m.conductivity for m in dielectrics],
            [m.shape is None for m in dielectrics],
            [m.pole() for m in maxwell.media if isinstance(m, AbstractDispersiveMedium)],
            maxwell.vacuum_permittivity,
            maxwell.vacuum_permeability,
            grid.spacing,
        )

    def known(self) -> "_Numbers | None":
        """On the host; None where a trace hides one."""
        leaves, structure = jax.tree.flatten(self)
        numbers = [x if isinstance(x, bool) else concrete_value(x) for x in leaves]
        return None if any(x is None for x in numbers) else structure.unflatten(numbers)

    def fastest(self, xp: ModuleType) -> Any:
        lowest = 1.0
        for epsilon, fills_all in zip(self.permittivities, self.filling, strict=True):
            least = xp.min(epsilon)
            lowest = least if fills_all else xp.minimum(lowest, least)
        speed = (self.vacuum_permittivity * self.vacuum_permeability * lowest) ** -0.5
        rate = 2 * speed * xp.sum(1 / self.spacing**2) ** 0.5
        for pole in self.poles:
            rate = xp.hypot(rate, (pole.strength / lowest + pole.frequency_squared) ** 0.5)
        return rate


def fastest_rate(maxwell: "Maxwell", grid: Grid) -> Array:
    """The largest rate of fields that nothing damps, 1 / time: 2 over it is Courant's limit.

    √(4 c²/ε Σ 1/h² + ω_p²/ε + ω₀²)
    """
    return _Numbers.of(maxwell, grid).fastest(jnp)


def known_fastest_rate(maxwell: "Maxwell", grid: Grid) -> float | None:
    """The same on the host; None where a trace hides a number."""
    known = _Numbers.of(maxwell, grid).known()
    return None if known is None else float(known.fastest(np))


def known_fastest_decay(maxwell: "Maxwell", grid: Grid) -> float | None:
    """The largest rate at which conductors and damping slow a field, σ/ε₀ε or γ; None likewise."""
    known = _Numbers.of(maxwell, grid).known()
    if known is None:
        return None
    rates = [
        np.max(sigma / (known.vacuum_permittivity * np.min(epsilon)))
        for epsilon, sigma in zip(known.permittivities, known.conductivities, strict=True)
        if sigma is not None
    ]
    rates += [pole.damping for pole in known.poles if pole.damping is not None]
    return float(max(rates, default=0.0))
