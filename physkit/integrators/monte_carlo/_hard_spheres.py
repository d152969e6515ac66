"""Monte Carlo of hard disks and spheres, on a checkerboard of cells."""

import itertools
import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    CapacityError,
    Clock,
    ComponentError,
    CutoffError,
    DeclarationError,
    Module,
    ParameterError,
    ShapeError,
    State,
    as_count,
    as_parameter,
    concrete_value,
    data,
    get_component,
    param,
    poison_where,
    put_component,
    replace_fields,
    require_positive,
    static,
)
from physkit.geometry import Box
from physkit.particles import Particles

from .._integrator import AbstractIntegrator, StepSize


class MovesAux(Module):
    """What `HardSphereMonteCarlo` carries.

    - `cells`: along each axis. `slots`: particles that a cell can hold.
    - `acceptance`: the share of the last step's trials that were accepted.
    """

    cells: tuple[int, ...] = static()
    slots: int = static()
    acceptance: Float[Array, ""] = data()


class _Table(NamedTuple):
    """Particles sorted into cells, as far as the cells that take turns see them.

    - `cell`, `slot`: of each particle, `[n]`. `start`: of each cell among the sorted particles, `[cells + 1]`.
    - `order`: of the particles by cells, `[n]`. `within`: the place of each in its cell, d × `[n]`.
    """

    cell: Int[Array, " n"]
    slot: Int[Array, " n"]
    start: Int[Array, " c"]
    order: Int[Array, " n"]
    within: tuple[Float[Array, " n"], ...]


class HardSphereMonteCarlo(AbstractIntegrator):
    """Metropolis' moves of hard disks or spheres, as many at once as do not meet.

        x_i → x_i + δ,   δ uniform in (−s, s)ᵈ,   accepted where no center comes nearer than σ

    The box is divided into cells not narrower than σ, at a random place. The particles of every other cell
    along each axis move, one after the other in a cell, and do not leave it: cells that move at once do not
    see one another, so that each pass satisfies detailed balance. A step is 2ᵈ passes, in each of which a cell
    that has its turn makes `moves` trials.

        sim = Simulation(HardSphereMonteCarlo(diameter=1.0, max_move=0.15), dt=1.0)

    **Arguments:**

    - `diameter`: σ, length.
    - `max_move`: s, length.
    - `moves`: trials of each cell that has its turn. With 4, a particle is tried about four times a step.
    - `component`: name of the particles, where there are several components.
    - `cells`: how many along each axis, even numbers; `slots`: particles that a cell can hold. Both follow from
      box and diameter at the start; give them where a program hides these.

    **Errors:** `ParameterError` for numbers that are not positive, and for spheres that overlap at the start;
    `CutoffError` for a box shorter than 2σ; `ComponentError` for anything but particles in a periodic `Box`
    without constraints; `DeclarationError` over several devices.

    **Good values:** an s of which 30 to 50 % are accepted (`Acceptance`): 0.2 σ in a fluid of packing fraction
    0.4, less when denser. A crystal melts in hundreds of steps.

    **Notes:** needs a key. Velocities do not change; frozen particles stay. There is no energy that a
    pressure could come from: `hard_sphere_pressure` takes g(r). No derivatives.

    **Reference:** Anderson, Jankowski, Grubb, Engel & Glotzer, J. Comput. Phys. 254, 27 (2013); Metropolis,
    Rosenbluth, Rosenbluth, Teller & Teller, J. Chem. Phys. 21, 1087 (1953).
    """

    hides_terms: ClassVar[bool] = True  # there are none: the numbers of the start choose cells

    diameter: Float[Array, ""] = param()
    max_move: Float[Array, ""] = param()
    moves: int = static()
    component: str | None = static()
    cells: tuple[int, ...] | None = static()
    slots: int | None = static()

    def __init__(
        self,
        diameter: ArrayLike = 1.0,
        max_move: ArrayLike = 0.1,
        *,
        moves: int = 4,
        component: str | None = None,
        cells: tuple[int, ...] | None = None,
        slots: int | None = None,
    ):
        self.diameter, self.max_move = as_parameter(diameter), as_parameter(max_move)
        self.moves, self.component = as_count(moves, "moves", ParameterError), component
        self.cells = None if cells is None else tuple(int(k) for k in cells)
        self.slots = None if slots is None else as_count(slots, "slots", ParameterError)
        if self.cells is not None and not all(k >= 2 and k % 2 == 0 for k in self.cells):
            raise ShapeError(f"a checkerboard has even numbers of cells; got cells={self.cells}")

    def __check_init__(self):
        require_positive(self, "diameter", "max_move")

    # --- the start ------------------------------------------------------------------------------

    def check_state(self, state: State) -> None:
        particles = self._particles(state)
        numbers = [concrete_value(x) for x in (particles.position, particles.space.lengths)]
        diameter = concrete_value(self.diameter)
        if diameter is None or any(x is None or not np.all(np.isfinite(x)) for x in numbers):
            return
        x, lengths = (np.asarray(x, np.float64) for x in numbers)
        if min(lengths) < 2 * float(diameter):
            raise CutoffError(
                f"hard spheres of diameter {diameter:g} need a box of at least two diameters along each axis; "
                f"got {lengths.tolist()}"
            )
        overlap = _closest_overlap(x, lengths, float(diameter))
        if overlap is not None:
            i, j, r = overlap
            raise ParameterError(
                f"particles {i} and {j} overlap: they are {r:.6g} apart, less than the diameter {diameter:g}; "
                "start from a lattice, e.g. pk.lattice.triangular"
            )

    def for_start(self, state: State, least: int = 0) -> "HardSphereMonteCarlo":
        del least
        if self.cells is not None and self.slots is not None:
            return self
        particles = self._particles(state)
        lengths = concrete_value(particles.space.lengths)
        diameter = concrete_value(self.diameter)
        if lengths is None or diameter is None:
            return self
        cells = self.cells or tuple(2 * max(1, int(x / (2 * float(diameter)))) for x in lengths)
        widths = np.asarray(lengths, np.float64) / cells / float(diameter)
        return replace_fields(self, {"cells": cells, "slots": self.slots or _most_in(widths)})

    def _particles(self, state: State) -> Particles:
        particles = get_component(state, self.component)
        if (
            not isinstance(particles, Particles)
            or particles.constraints is not None
            or not isinstance(particles.space, Box)
            or not all(particles.space.periodic)
        ):
            raise ComponentError(
                "HardSphereMonteCarlo moves pk.Particles without constraints in a box that is periodic along "
                f"all axes; got {type(particles).__name__} in {getattr(particles, 'space', None)!r}"
            )
        if particles.is_distributed:
            raise DeclarationError(
                "HardSphereMonteCarlo runs on one device; sweep(…, replicas=…) computes many"
            )
        return particles

    # --- the contract of integrators ------------------------------------------------------------

    def prepare(self, state: State, dt: StepSize) -> None:
        del state, dt

    def init(self, plan: None, clock: Clock, state: State) -> MovesAux:
        del plan, clock
        particles = self._particles(state)
        if self.cells is None or self.slots is None:
            # A sweep then initializes its members one by one, where their numbers can be seen.
            raise CapacityError(
                "HardSphereMonteCarlo chooses its cells from box and diameter, which are hidden inside jit and "
                "vmap: plan outside, integrator.for_start(state), or give cells=… and slots=…"
            )
        if len(self.cells) != particles.dimension:
            raise ShapeError(
                f"HardSphereMonteCarlo has cells={self.cells} for positions of {particles.dimension} axes"
            )
        return MovesAux(self.cells, self.slots, jnp.zeros((), particles.position.dtype))

    def refresh(self, plan: None, clock: Clock, state: State, aux: MovesAux) -> MovesAux:
        del plan, clock, state
        return aux

    def is_stale(self, before: State, after: State) -> bool:
        del before, after
        return False

    def step(self, plan: None, clock: Clock, state: State, aux: MovesAux) -> tuple[State, MovesAux]:
        del plan
        particles = self._particles(state)
        d, dtype = particles.dimension, particles.position.dtype

        def one_pass(particles: Particles, key: Array) -> tuple[Particles, tuple[Array, Array]]:
            change, accepted, tried = self._pass(key, particles, aux.cells, aux.slots)
            return particles.displace(change), (accepted, tried)

        particles, (accepted, tried) = jax.lax.scan(
            one_pass, particles, jax.random.split(clock.key, 2**d)
        )
        share = jnp.sum(accepted).astype(dtype) / jnp.maximum(jnp.sum(tried), 1).astype(dtype)
        aux = MovesAux(aux.cells, aux.slots, share)
        return put_component(state, self.component, particles), aux

    # --- a pass ---------------------------------------------------------------------------------

    def _pass(
        self, key: Array, particles: Particles, cells: tuple[int, ...], slots: int
    ) -> tuple[Array, Array, Array]:
        """The moves of one pass, `[n d]`; how many trials were accepted, and how many made."""
        for_shift, for_moves = jax.random.split(key)
        d, dtype = particles.dimension, particles.position.dtype
        width = particles.space.lengths / jnp.asarray(cells, dtype)
        table = _sort(for_shift, particles, cells, width)
        neighbors, offsets = _neighbors(cells)
        # Of every cell that has its turn and those around it: [cells, neighbors, slots], itself first.
        slot = jnp.arange(slots, dtype=jnp.int32)
        rows = table.start[neighbors][..., None] + slot[None, None]
        present = rows < table.start[neighbors + 1][..., None]
        who = table.order.at[rows].get(mode="clip")
        away = jnp.asarray(offsets, dtype)
        around = tuple(
            jnp.where(present, x[who] + (away[:, k] * width[k])[None, :, None], jnp.inf)
            for k, x in enumerate(table.within)
        )
        own = tuple(x[:, 0] for x in around)
        others = tuple(x[:, 1:].reshape(len(neighbors), -1) for x in around)
        count = jnp.sum(present[:, 0], axis=1, dtype=jnp.int32)
        movable = present[:, 0]
        if particles.frozen is not None:
            movable = movable & ~particles.frozen[who[:, 0]]

        def trial(own: tuple[Array, ...], draw: Array) -> tuple[tuple[Array, ...], Array]:
            # In a cell without particles, −1: nothing is chosen.
            number = jnp.minimum((draw[0] * count.astype(dtype)).astype(jnp.int32), count - 1)
            chosen = slot[None] == number[:, None]
            new = tuple(
                jnp.sum(jnp.where(chosen, x, 0), axis=1) + self.max_move * (2 * draw[1 + k] - 1)
                for k, x in enumerate(own)
            )
            is_allowed = jnp.any(chosen & movable, axis=1)
            for k, x in enumerate(new):
                is_allowed = is_allowed & (x >= 0) & (x < width[k])
            is_allowed = is_allowed & self._is_clear(new, others, jnp.zeros((), bool))
            is_allowed = is_allowed & self._is_clear(new, own, chosen)
            moved = chosen & is_allowed[:, None]
            own = tuple(jnp.where(moved, y[:, None], x) for x, y in zip(own, new, strict=True))
            return own, jnp.sum(is_allowed, dtype=jnp.int32)

        draws = jax.random.uniform(for_moves, (self.moves, 1 + d, len(neighbors)), dtype)
        after, accepted = jax.lax.scan(trial, own, draws)
        tried = self.moves * jnp.sum(count > 0, dtype=jnp.int32)
        # Back to the particles by a gather: the place of each in the table is known.
        turn = jnp.asarray(_turns(cells))[table.cell]
        place = (jnp.maximum(turn, 0), jnp.minimum(table.slot, slots - 1))
        change = jnp.stack(
            [
                jnp.where(turn >= 0, jnp.where(present[:, 0], b - a, 0)[place], 0)
                for a, b in zip(own, after, strict=True)
            ],
            axis=1,
        )
        # A box or a diameter that a trace hid may not suit the cells; beyond rounding of cells of just σ.
        unfit = jnp.any(width < self.diameter * (1 - 1e-6)) | jnp.any(table.slot >= slots)
        return poison_where(change, unfit), jnp.sum(accepted), tried

    def _is_clear(
        self, new: tuple[Array, ...], x: tuple[Array, ...], ignored: Bool[Array, "..."]
    ) -> Bool[Array, " cells"]:
        """Whether the places `new`, `[cells]`, keep their distance from all `x`, `[cells m]`."""
        parts = [b - a[:, None] for a, b in zip(new, x, strict=True)]
        square = sum((p * p for p in parts[1:]), parts[0] * parts[0])
        return jnp.all((square >= self.diameter * self.diameter) | ignored, axis=1)


def _sort(
    key: Array, particles: Particles, cells: tuple[int, ...], width: Float[Array, " d"]
) -> _Table:
    """The particles in cells of `width`, `[d]`, that lie at a random place."""
    dtype = particles.position.dtype
    # Anywhere within the period of the checkerboard, two cells: every cell may have its turn.
    shift = 2 * jax.random.uniform(key, width.shape, dtype)
    scaled = particles.position / width[None] + shift[None]
    whole = jnp.floor(scaled)
    within = (scaled - whole) * width[None]
    index = whole.astype(jnp.int32) % jnp.asarray(cells, jnp.int32)[None]
    strides = [math.prod(cells[k + 1 :]) for k in range(len(cells))]
    cell = sum((index[:, k] * stride for k, stride in enumerate(strides)), jnp.int32(0))
    order = jnp.argsort(cell).astype(jnp.int32)
    edges = jnp.arange(math.prod(cells) + 1, dtype=jnp.int32)
    start = jnp.searchsorted(cell[order], edges).astype(jnp.int32)
    slot = jnp.argsort(order).astype(jnp.int32) - start[cell]
    return _Table(cell, slot, start, order, tuple(within[:, k] for k in range(len(strides))))


def _turns(cells: tuple[int, ...]) -> np.ndarray:
    """The number of each cell among those that have their turn, −1 for the others, `[cells]`."""
    index = np.indices(cells)
    is_even = np.all(index % 2 == 0, axis=0).ravel()
    return np.where(is_even, np.cumsum(is_even) - 1, -1).astype(np.int32)


def _neighbors(cells: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Of each cell that has its turn itself and those around it, `[turns, 3ᵈ]`; where these lie, in cells."""
    offsets = sorted(itertools.product((-1, 0, 1), repeat=len(cells)), key=lambda o: any(o))
    index = np.indices(cells).reshape(len(cells), -1).T
    own = index[np.all(index % 2 == 0, axis=1)]
    around = (own[:, None] + np.asarray(offsets)[None]) % np.asarray(cells)
    return np.ravel_multi_index(tuple(np.moveaxis(around, -1, 0)), cells), np.asarray(offsets)


def _most_in(widths: np.ndarray) -> int:
    """How many centers of spheres fit at most into a cell whose edges are `widths`, in diameters."""
    # The spheres lie in a box wider by a diameter, which tiles space: no denser than the densest packing.
    densest = {1: 1.0, 2: 2 / math.sqrt(3), 3: math.sqrt(2)}[len(widths)]
    return int(densest * np.prod(widths + 1) * (1 + 1e-9))


def _closest_overlap(
    x: np.ndarray, lengths: np.ndarray, diameter: float
) -> tuple[int, int, float] | None:
    """Two particles that are nearer than `diameter`, and their distance; None where there are none."""
    from scipy.spatial import cKDTree

    folded = np.mod(x, lengths)
    tree = cKDTree(np.where(folded >= lengths, 0, folded), boxsize=lengths)
    # Rounding, of a lattice of spheres in contact, is no overlap.
    pairs = tree.query_pairs(diameter * (1 - 1e-5), output_type="ndarray")
    if not len(pairs):
        return None
    difference = x[pairs[:, 0]] - x[pairs[:, 1]]
    r = np.linalg.norm(difference - lengths * np.round(difference / lengths), axis=1)
    worst = int(np.argmin(r))
    return int(pairs[worst, 0]), int(pairs[worst, 1]), float(r[worst])
