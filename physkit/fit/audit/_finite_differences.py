"""Finite differences of an audited run along one direction, with the steps that its precision resolves."""

import itertools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import as_generator

from ._audited_run import AuditedRun

Increments = list[tuple[float, float]]  # (h, what the projection gains with the step h)


class FiniteDifferences:
    """What a run does when one of its leaves, x, becomes x + h v.

    - `steps`: the h of Taylor tests, ever smaller. `tiny_steps`: smaller than all of them, for leaves that
      others hold in place, as rigid bonds hold positions. `noise`: how far rounding moves the projection.
    - `mode_tolerance`: by how much forward and reverse mode may differ.
    """

    def __init__(
        self, run: AuditedRun, leaf_index: int, direction: np.ndarray, noise: float, double: bool
    ):
        self.run, self.leaf_index, self.direction = run, leaf_index, direction
        self.noise = noise
        self._eps = float(jnp.finfo(run.values[leaf_index].dtype).eps)
        # Down to h ≈ 10⁻⁶ in double precision and 10⁻³ in single: beyond, remainders drown in rounding.
        count, first = (14, 1e-2) if double else (7, 0.1)
        self.steps = [first * 2.0**-k for k in range(count)]
        self.tiny_steps = [self.steps[-1] * 2.0**-k for k in range(1, 15)]
        self.mode_tolerance = 1e-11 if double else 2e-4

    def tangents(self) -> list[Array]:
        """v for the leaf, 0 for all others."""
        tangents = [jnp.zeros_like(x) for x in self.run.values]
        like = self.run.values[self.leaf_index]
        tangents[self.leaf_index] = jnp.asarray(self.direction, like.dtype)
        return tangents

    def values_at(self, h: float) -> list[Array]:
        """The leaves, this one at x + h v."""
        x = np.asarray(self.run.values[self.leaf_index])
        return self._with_leaf(jnp.asarray(x + h * self.direction, x.dtype))

    def increment(self, h: float) -> float:
        """J(x + h v) − J(x); NaN where the run leaves its domain."""
        return self.run.increment(self.values_at(h))

    def noise_of(self, increment: float) -> float:
        """How far rounding moves this increment: as the projection, and in proportion, since h v is rounded."""
        return self.noise + 4 * self._eps * abs(increment)

    def is_read(self) -> bool:
        """Whether NaN in the leaf reaches the outputs."""
        like = self.run.values[self.leaf_index]
        return self.run.changes_outputs(self._with_leaf(jnp.full_like(like, jnp.nan)))

    def decreasing_increments(self) -> Increments | None:
        """(h, |increment|) for ever smaller h, where finite; None if no bit of any run changes."""
        # Also larger than in the Taylor test: a rounding or a comparison may need them to jump.
        large = [h for k in range(8, 0, -1) if (h := self.steps[0] * 2.0**k) < 3]
        # Bits are compared at few and large steps: each is a run, and small steps change the fewest bits.
        coarse = {*large[::2], self.steps[0], self.steps[3]}
        if not any(self.run.changes_outputs(self.values_at(h)) for h in coarse):
            return None
        increments: Increments = []
        for sign in (1.0, -1.0):  # the other side, where one is outside of the domain
            increments = [(h, abs(self.increment(sign * h))) for h in self.steps]
            # Too few above the noise for an order (NaN does not count): add the large steps.
            if sum(d > 10 * self.noise for _, d in increments) < 3:
                increments = [(h, abs(self.increment(sign * h))) for h in large] + increments
            increments = [(h, d) for h, d in increments if np.isfinite(d)]
            if len(increments) >= 3:
                break
        return increments

    def _with_leaf(self, value: Array) -> list[Array]:
        values = list(self.run.values)
        values[self.leaf_index] = value
        return values


def local_orders(increments: Increments) -> list[float]:
    """The power of h by which increments fall, from each to the next."""
    pairs = itertools.pairwise(increments)
    return [float(np.log(d / e) / np.log(h / k)) for (h, d), (k, e) in pairs]


def drops_at_once(increments: Increments, noise: float) -> bool:
    """Whether an increment above the noise is gone at the next step, where a power of h would still show."""
    power = 2.0  # a smooth function whose derivative is 0 falls at least as h²
    for (h, d), (k, e) in itertools.pairwise(increments):
        expected = d * (k / h) ** power
        if d > 10 * noise and expected > 2 * noise and e < expected / 64:
            return True
        # Some functions fall faster, as h⁴: the next is measured against the power seen so far.
        power = float(np.clip(np.log(d / e) / np.log(h / k), 2, 12)) if d > 0 and e > 0 else 2.0
    return False


def random_direction(x: Array | np.ndarray, seed: tuple[int, ...]) -> np.ndarray:
    """A random v; entries of a leaf without signs (masses, depths) in proportion, so that they stay so.

    Of others each as large as the leaf's root mean square, 1 for a leaf of zeros.
    """
    rng = as_generator(*seed)
    x = np.asarray(x)
    finite = np.where(np.isfinite(x), x, 0)
    scale = np.sqrt(np.mean(np.abs(finite) ** 2)) or 1.0
    if np.isrealobj(x) and np.all(x >= 0) and np.any(x):
        scale = x
    out = rng.uniform(0.5, 1.0, x.shape) * rng.choice([-1.0, 1.0], x.shape)
    if np.iscomplexobj(x):
        out = out * np.exp(2j * np.pi * rng.random(x.shape))
    return np.asarray(scale * out)
