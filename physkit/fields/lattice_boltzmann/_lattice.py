"""Lattices of velocities: D2Q9, D3Q19, D3Q27, and those of five and seven for temperatures."""

import dataclasses
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from physkit.core import ParameterError


@dataclasses.dataclass(frozen=True)
class Lattice:
    """Velocities from a cell to itself and its neighbors, with weights that follow from isotropy.

        Σ w_i = 1,   Σ w_i e_ix² = c_s²,   Σ w_i e_ix² e_iy² = c_s⁴,   Σ w_i e_ix² e_iy² e_iz² = c_s⁶

    Velocities of one length share a weight. Nothing is tabulated: velocities, weights, opposites and mirror
    images follow from the three numbers.

    **Arguments:**

    - `dimension`: d, 2 or 3.
    - `axes`: along how many axes a velocity may point at once: 1 to neighbors across faces, 2 across edges,
      too, 3 across corners.
    - `sound_speed_squared`: c_s², in cells² per step².

    **Reference:** Qian, d'Humières & Lallemand, Europhys. Lett. 17, 479 (1992); Krüger et al., The Lattice
    Boltzmann Method (2017), §3.4.7.
    """

    dimension: int
    axes: int
    sound_speed_squared: Fraction = Fraction(1, 3)

    def __post_init__(self):
        if self.dimension not in (2, 3) or not 1 <= self.axes <= self.dimension:
            raise ParameterError(
                "a lattice has two or three dimensions, and velocities along one axis up to all at once; got "
                f"Lattice({self.dimension}, {self.axes})"
            )
        if min(self.shell_weights) < 0:
            raise ParameterError(f"c_s² = {self.sound_speed_squared} makes a weight negative")

    def __repr__(self) -> str:
        return f"D{self.dimension}Q{self.size}"

    @cached_property
    def velocities(self) -> np.ndarray:
        """e: `[q, d]`, whole numbers, in an order whose reverse is that of −e."""
        every = product((-1, 0, 1), repeat=self.dimension)
        return np.array([e for e in every if _length(e) <= self.axes])

    @property
    def size(self) -> int:
        """q, the number of velocities."""
        return len(self.velocities)

    @property
    def rest(self) -> int:
        """The index of the velocity zero."""
        return self.size // 2

    @cached_property
    def shell_weights(self) -> tuple[Fraction, ...]:
        """The weight of a velocity by the number of axes that it points along."""
        weights = [Fraction(0)] * (self.axes + 1)
        lengths = [_length(e) for e in self.velocities.tolist()]
        # From the longest: the moment of k axes sees only velocities along k axes and more.
        for k in range(self.axes, -1, -1):
            moment = self.sound_speed_squared**k
            counts = [0] * (self.axes + 1)
            for e, length in zip(self.velocities.tolist(), lengths, strict=True):
                counts[length] += all(e[:k])
            longer = sum(counts[j] * weights[j] for j in range(k + 1, self.axes + 1))
            weights[k] = (moment - longer) / counts[k]
        return tuple(weights)

    @cached_property
    def weights(self) -> np.ndarray:
        """w: `[q]`."""
        return np.array([float(self.shell_weights[_length(e)]) for e in self.velocities.tolist()])

    @cached_property
    def opposites(self) -> np.ndarray:
        """`[q]`: the index of −e."""
        return np.arange(self.size)[::-1]

    def mirrored(self, axis: int) -> np.ndarray:
        """`[q]`: the index of e as a mirror across `axis` shows it."""
        image = self.velocities.copy()
        image[:, axis] *= -1
        return self._index_of(image)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The indices of e and −e, every pair once; rest is in none."""
        return tuple((i, int(j)) for i, j in enumerate(self.opposites) if i < j)

    @property
    def is_product(self) -> bool:
        """Whether it has all velocities from {−1, 0, 1}^d, as central moments ask for."""
        return self.axes == self.dimension

    def _index_of(self, velocities: np.ndarray) -> np.ndarray:
        index = {tuple(e): i for i, e in enumerate(self.velocities.tolist())}
        return np.array([index[tuple(e)] for e in velocities.tolist()])


def _length(e: tuple[int, ...] | list[int]) -> int:
    return sum(abs(part) for part in e)


D2Q5 = Lattice(2, 1)
D2Q9 = Lattice(2, 2)
# At c_s² = 1/3 nothing would rest: the usual choice for temperatures is 1/4.
D3Q7 = Lattice(3, 1, Fraction(1, 4))
D3Q19 = Lattice(3, 2)
D3Q27 = Lattice(3, 3)
