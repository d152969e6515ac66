"""`check_units`: the same physics in other units."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jax.typing import DTypeLike

from physkit.core import PhyskitError, PyTree

from ._compare import check_equal, check_finite


@dataclass(frozen=True)
class Units:
    """A system of units: the numbers that one length, time, mass, charge and temperature are written with.

        sigma=1.0 * u.length, epsilon=1.5 * u.energy, dt=0.01 * u.time

    - `dimension`: of space, for densities and pressures.
    """

    length: float = 1.0
    time: float = 1.0
    mass: float = 1.0
    charge: float = 1.0
    temperature: float = 1.0
    dimension: int = 3
    name: str = "all units 1"

    @property
    def speed(self) -> float:
        """length / time."""
        return self.length / self.time

    @property
    def acceleration(self) -> float:
        """length / time²."""
        return self.length / self.time**2

    @property
    def diffusivity(self) -> float:
        """length² / time: of viscosities, too."""
        return self.length**2 / self.time

    @property
    def force(self) -> float:
        """mass · length / time²."""
        return self.mass * self.length / self.time**2

    @property
    def energy(self) -> float:
        """mass · length² / time²."""
        return self.mass * self.length**2 / self.time**2

    @property
    def stiffness(self) -> float:
        """energy / length²."""
        return self.mass / self.time**2

    @property
    def volume(self) -> float:
        """length to the power of the dimension."""
        return self.length**self.dimension

    @property
    def density(self) -> float:
        """mass / volume."""
        return self.mass / self.volume

    @property
    def pressure(self) -> float:
        """energy / volume."""
        return self.energy / self.volume


# Powers of two change no digit of a number, so that results must agree to the last bit.
EXACT = Units(2.0**-11, 2.0**-7, 2.0**-9, 2.0**-5, 2.0**3, name="powers of two")
ATOMS = Units(1e-10, 1e-12, 1e-26, 1.6e-19, 300.0, name="atoms in SI units")
STARS = Units(1e9, 1e6, 1e12, 1e3, 1e6, name="large bodies")


class _Outcome(NamedTuple):
    """What came of a calculation: its numbers, or the kind of its error; and what it warned of."""

    numbers: PyTree
    error: Exception | None
    warned: list[str]


def check_units(
    calculate: Callable[[Units], PyTree],
    *,
    systems: Sequence[Units] = (EXACT, ATOMS, STARS),
    precisions: Sequence[DTypeLike] = (np.float64,),
    dimension: int = 3,
    relative: float | None = None,
    exact: bool = True,
    raises: type[PhyskitError] | tuple[type[PhyskitError], ...] = (),
) -> None:
    """A calculation gives the same physics in every system of units.

        def fall(u):
            bodies = pk.Particles([[0.0, 2.0 * u.length]], mass=[3.0 * u.mass])
            force = pk.UniformAcceleration([0.0, -9.8 * u.acceleration])
            sim = pk.Simulation(pk.VelocityVerlet(force), 0.01 * u.time)
            return pk.run(sim, bodies, 50, progress=False).state.position / u.length

        check_units(fall)

    An absolute number inside a term – a tolerance, a regularization, a threshold – makes it differ. The
    numbers, whether there was an error and of which class, and how many warnings there were, are compared
    with those in units of one.

    **Arguments:**

    - `calculate`: units → pure numbers: every number with a dimension that goes in is multiplied by its unit,
      every one that comes out divided by it.
    - `systems`: of units. One whose units are all powers of two is compared bit by bit.
    - `precisions`: in which all is calculated: `jnp.float32`, `jnp.float64`.
    - `dimension`: of space.
    - `relative`: allowed difference in other systems, of the largest number of each array; by default 1e-9
      in float64, 1e-3 in float32, for trajectories let rounding errors grow.
    - `exact`: whether powers of two must agree bit by bit; else as closely as the others.
    - `raises`: errors of which the calculation may end with one, of the same class in all units.

    **Errors:** `AssertionError` that says in which units what differs, and by how much; for numbers that are
    not finite. In units of one, any error of the calculation that `raises` does not name.
    """
    for precision in precisions:
        is_double = np.dtype(precision) == np.float64
        allowed = relative if relative is not None else (1e-9 if is_double else 1e-3)
        with jax.enable_x64(is_double):
            expected = _calculate(calculate, Units(dimension=dimension))
            if expected.error is not None and not isinstance(expected.error, raises):
                raise expected.error
            # NaN agrees with NaN in any units.
            check_finite(expected.numbers, f"in units of one, {np.dtype(precision)}")
            for system in systems:
                units = Units(
                    system.length,
                    system.time,
                    system.mass,
                    system.charge,
                    system.temperature,
                    dimension,
                    system.name,
                )
                what = f"in {system.name}, {np.dtype(precision)}"
                found = _calculate(calculate, units)
                _check_outcome(found, expected, what)
                is_exact = exact and _is_power_of_two(units)
                check_equal(
                    found.numbers, expected.numbers, what, relative=0.0 if is_exact else allowed
                )


def _calculate(calculate: Callable[[Units], PyTree], units: Units) -> _Outcome:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            numbers, error = jax.tree.map(np.asarray, calculate(units)), None
        except PhyskitError as raised:
            numbers, error = {}, raised
    return _Outcome(numbers, error, [str(w.message) for w in caught])


def _check_outcome(found: _Outcome, expected: _Outcome, what: str) -> None:
    """The same error or none, and as many warnings."""
    if type(found.error) is not type(expected.error):
        raise AssertionError(
            f"{what}: {_name(found.error)}; in units of one {_name(expected.error)}"
        )
    if len(found.warned) != len(expected.warned):
        raise AssertionError(
            f"{what}: warned of {found.warned or 'nothing'}; in units of one of "
            f"{expected.warned or 'nothing'}"
        )


def _name(error: Exception | None) -> str:
    return "no error" if error is None else f"{type(error).__name__}: {error}"


def _is_power_of_two(units: Units) -> bool:
    numbers = (units.length, units.time, units.mass, units.charge, units.temperature)
    return all(np.frexp(x)[0] == 0.5 for x in numbers)
