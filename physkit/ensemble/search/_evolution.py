"""The generations of a search: draw a population, compute its losses, learn from them; and when to stop."""

import abc
import time
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Count,
    Key,
    ObjectiveError,
    ParameterError,
    PyTree,
    as_count,
    count_of,
    static,
)
from physkit.fit import (
    AbstractSearch,
    SearchHistory,
    SearchOutcome,
    SearchRequest,
    SearchStart,
)
from physkit.simulate import StopRequest
from physkit.storage import (
    Identity,
    describe_array,
    describe_numbers,
    fingerprint,
    program_digest,
)

from ._population import GenerationStopped, PopulationLoss
from ._search_folder import SearchFolder

_LIMITS = (
    ".max_generations",
    ".max_evaluations",
    ".target",
)  # which a search may be continued beyond
_MIN_SIZE = 1e-12  # of a population beside the first one, below which it has contracted to a point


def optional_count_of(what: str) -> Callable[[Count | None], int | None]:
    """`count_of`, of what may be None."""

    def convert(value: Count | None) -> int | None:
        return None if value is None else as_count(value, what, ParameterError)

    return convert


class AbstractEvolution(AbstractSearch):
    """A search by generations, whose populations are computed by the engine of sweeps.

    Members whose loss is not finite are dead: they rank last. Losses that are equal rank in the order of the
    members. In the end the loss of the mean is computed, too: what is returned is the best of all.

    **Arguments:**

    - `max_generations`, `max_evaluations`: where it ends at the latest, over all restarts; the one that is
      reached first. It is continued from its folder by larger ones. Evaluations must be enough for one
      generation, and one each for the start and the mean.
    - `target`: a loss that is low enough.
    - `tolerance`: it has converged when losses differ by no more than this part of all that they fell.
    """

    _: KW_ONLY
    max_generations: int = static(default=1000, converter=count_of("max_generations"))
    max_evaluations: int | None = static(
        default=None, converter=optional_count_of("max_evaluations")
    )
    target: float | None = static(default=None)
    tolerance: float = static(default=1e-12)

    def __check_init__(self):
        if not self.tolerance >= 0:
            raise ParameterError(f"tolerance must be 0 or more; got {self.tolerance}")

    @property
    def step_limit(self) -> int:
        return self.max_generations

    @property
    def num_starts(self) -> int:
        """How often it begins, with a population twice as large each time."""
        return 1

    @abc.abstractmethod
    def population_size(self, dims: int) -> int:
        """Members of the first population, of so many numbers each.

        **Errors:** `ParameterError` for one that is too small for this method.
        """

    @abc.abstractmethod
    def begin(self, key: Key, z: Float[Array, " p"], members: int) -> PyTree:
        """The state of a search that begins at z."""

    @abc.abstractmethod
    def ask(self, key: Key, state: PyTree, members: int) -> tuple[Float[Array, "m p"], PyTree]:
        """The next population, and the state after drawing it."""

    @abc.abstractmethod
    def tell(
        self, key: Key, population: Float[Array, "m p"], losses: np.ndarray, state: PyTree
    ) -> PyTree:
        """The state after the losses of the population are known, `[m]`, NaN of dead members."""

    @abc.abstractmethod
    def center_and_spread(self, state: PyTree) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of what is drawn next, `[p]` each."""

    def why_done(self, state: PyTree, generations: "list[_Generation]") -> str:
        """Why this start has come to its end; empty while it has not."""
        lowest = [g.best for g in generations if np.isfinite(g.best)]
        _, spread = self.center_and_spread(state)
        if np.all(spread <= _MIN_SIZE * generations[0].spread):
            return "the population has contracted to a point"
        # After Hansen: the range of the best losses of some generations, and of all losses of the last.
        latest = generations[-1]
        count = 10 + int(np.ceil(30 * spread.size / latest.losses.size))
        if len(lowest) < count:
            return ""
        values = np.concatenate([lowest[-count:], latest.losses[np.isfinite(latest.losses)]])
        fall = max(lowest[0] - min(lowest), 0.0)
        rounding = 4 * np.finfo(latest.losses.dtype).eps * abs(min(lowest))
        if np.ptp(values) <= self.tolerance * fall + rounding:
            return "losses no longer differ"
        return ""

    def search(self, request: SearchRequest) -> SearchOutcome:
        stop = StopRequest(request.wall_time)
        folder = None
        if request.to is not None:
            folder = SearchFolder(request.to, _identity(self, request))
        try:
            with stop:
                return _Search(self, request, folder, stop).run()
        finally:
            if folder is not None:
                folder.close()


class _Generation(NamedTuple):
    """What one generation gave: its losses, `[m]`, and the spread that it was drawn with, `[p]`."""

    losses: np.ndarray
    best: float
    spread: np.ndarray


class _Search:
    """A search under way: all starts, one after the other."""

    def __init__(
        self,
        method: AbstractEvolution,
        request: SearchRequest,
        folder: SearchFolder | None,
        stop: StopRequest,
    ):
        self.method, self.request, self.folder, self.stop = method, request, folder, stop
        self.start = np.asarray(request.start)
        self.dims = self.start.size
        self.rows: list[tuple[float, ...]] = []  # of the history
        self.evaluations = 0
        self.best_z, self.best_loss = self.start, np.inf
        self.seconds = 0.0  # of the last generation
        self.limit = ""  # why it may not go on, which is no reason to believe it

    def run(self) -> SearchOutcome:
        method, starts, reasons = self.method, [], []
        members = method.population_size(self.dims)
        self._require_evaluations(members)
        for number in range(method.num_starts):
            start, reason = self._descend(number, members * 2**number)
            starts.append(start)
            reasons.append(reason)
            if self.limit or self._reached_target():
                break
        converged, reason = self._judge(starts, reasons)
        columns = [np.array(column) for column in zip(*self.rows, strict=True)]
        loss, best, mean, sigma, *counts = columns
        history = SearchHistory(loss, best, mean, sigma, *(c.astype(int) for c in counts))
        return SearchOutcome(
            self.best_z, float(self.best_loss), converged, reason, history, tuple(starts)
        )

    def _judge(self, starts: list[SearchStart], reasons: list[str]) -> tuple[bool, str]:
        """Whether the best point is a minimum, and why, or why not."""
        if self._reached_target():
            return True, f"the loss is below the target, {self.method.target:g}"
        best = min(range(len(starts)), key=lambda k: starts[k].loss)
        if not self.limit:
            return True, reasons[best]
        # What was stopped is to go on; what has used up its generations may have found its best before.
        if starts[best].converged and not self.stop.reason:
            return True, f"{reasons[best]}; then, in restart {len(starts) - 1}, {self.limit}"
        return False, self.limit

    def _require_evaluations(self, members: int) -> None:
        """**Errors:** `ParameterError` where the limit does not hold the first generation."""
        limit, least = self.method.max_evaluations, members + 2
        if limit is not None and limit < least:
            raise ParameterError(
                f"max_evaluations={limit} are fewer than the first generation takes: {members} members, and "
                f"one each for the start and the mean. Give {least} or more, or a smaller population="
            )

    def _descend(self, number: int, members: int) -> tuple[SearchStart, str]:
        """One start, to its end; also why it ended."""
        method, request = self.method, self.request
        key = jax.random.fold_in(request.key, number)
        center = request.start
        if number:
            # A new start about the old one, as far from it as members of the first generation.
            center = method.ask(key, method.begin(key, center, members), members)[0][0]
        state = method.begin(key, center, members)
        compute = PopulationLoss(
            request.loss, members, self.dims, self.start.dtype, request.batch_size, request.devices
        )
        generations: list[_Generation] = []
        best_z, best_loss, reason = np.asarray(center), np.inf, ""
        if number == 0:
            # What was given may be the best of all.
            loss = float(compute(best_z[None])[0])
            self.evaluations += 1
            best_loss = loss if np.isfinite(loss) else np.inf
            self.best_loss = best_loss
        while not reason:
            if reason := self._why_stop(members):
                self.limit = reason
                break
            spread = method.center_and_spread(state)[1]
            # By the number of the generation alone: a search that goes on draws what it would have drawn.
            own_key = jax.random.fold_in(key, 1 + len(generations))
            asked, told = jax.random.split(own_key)
            population, state = method.ask(asked, state, members)
            try:
                losses = self._losses(compute, np.asarray(population))
            except GenerationStopped:
                self.limit = reason = self._stopped_by()
                break
            dead = ~np.isfinite(losses)
            losses[dead] = np.nan
            lowest = np.inf if dead.all() else float(np.nanmin(losses))
            generations.append(_Generation(losses, lowest, spread))
            if lowest < best_loss:
                best_loss, best_z = lowest, np.asarray(population)[np.nanargmin(losses)]
            self._note(generations[-1], dead, best_z, best_loss)
            if dead.all():
                if not np.isfinite(self.best_loss):
                    raise ObjectiveError(
                        f"the objective is not finite for any of the {members} members of the first "
                        "generation: all are dead. Start nearer, take a smaller sigma=, or set bounds="
                    )
                self.limit = reason = (
                    f"all {members} members of generation {len(self.rows)} are dead"
                )
                break
            state = method.tell(told, population, losses, state)
            reason = "target" if self._reached_target() else method.why_done(state, generations)
        # Of members that scatter about a mean, the mean itself is often the best.
        mean = method.center_and_spread(state)[0]
        loss = float(compute(mean[None])[0])
        self.evaluations += 1
        if np.isfinite(loss) and loss < best_loss:
            best_loss, best_z = loss, mean
            if loss < self.best_loss:
                self.best_loss, self.best_z = loss, mean
        found = SearchStart(
            np.asarray(center), best_z, best_loss, len(generations), bool(reason) and not self.limit
        )
        return found, reason

    def _losses(self, compute: PopulationLoss, population: np.ndarray) -> np.ndarray:
        """The losses of a generation, from its file if it is finished there."""
        began, number = time.monotonic(), len(self.rows)
        losses = None if self.folder is None else self.folder.load(number, population)
        if losses is None:
            # There is a result from the first generation on.
            losses = compute(population, self.stop if self.rows else None)
            if self.folder is not None:
                self.folder.save(number, population, losses)
        self.seconds = time.monotonic() - began
        self.evaluations += len(population)
        return np.array(losses)

    def _note(
        self, generation: _Generation, dead: np.ndarray, best_z: np.ndarray, best_loss: float
    ) -> None:
        if best_loss < self.best_loss:
            self.best_loss, self.best_z = best_loss, best_z
        losses = generation.losses[~dead]
        mean = float(losses.mean()) if losses.size else np.nan
        best = float(losses.min()) if losses.size else np.nan
        sigma = float(np.sqrt(np.mean(generation.spread.astype(float) ** 2)))
        self.rows.append(
            (self.best_loss, best, mean, sigma, self.evaluations, int(dead.sum()), dead.size)
        )
        failed = f"  {dead.sum()} dead" if dead.any() else ""
        self.request.report(len(self.rows), f"loss {self.best_loss:.6g}  sigma {sigma:.2g}{failed}")

    def _why_stop(self, members: int) -> str:
        """Why no further generation may begin; empty if it may. The first one always may."""
        limit = self.method.max_evaluations
        if not self.rows:
            return ""
        if len(self.rows) >= self.method.max_generations:
            return f"max_generations={self.method.max_generations} are used up"
        if limit is not None and self.evaluations + members >= limit:  # one is left for the mean
            return f"max_evaluations={limit} are used up"
        is_known = self.folder is not None and self.folder.has(len(self.rows))
        if not is_known and self.stop.check(self.seconds):
            return self._stopped_by()
        return ""

    def _stopped_by(self) -> str:
        again = "; the same call goes on" if self.folder is not None else ""
        return f"stopped ({self.stop.reason}) after {len(self.rows)} generations{again}"

    def _reached_target(self) -> bool:
        target = self.method.target
        return target is not None and bool(self.best_loss <= target)


def _identity(method: AbstractEvolution, request: SearchRequest) -> Identity:
    """What the search is, for its folder; without the limits, beyond which it may be continued."""
    sections = {
        **request.identity,
        "the method": describe_numbers(method, ignore=_LIMITS),
        "the random key": {"": describe_array(request.key)},
    }
    if optimizer := getattr(method, "optimizer", None):
        # Functions, whose closures hold its numbers.
        sections["the optimizer"] = fingerprint(tuple(optimizer))
    # With the numbers that it closes over: data, for one.
    return Identity(sections, {"the objective": program_digest(request.loss.program.closed)})


def require_population(given: int | None, default: int, least: int, name: str) -> int:
    """`given`, or the default.

    **Errors:** `ParameterError` for fewer members than a method needs.
    """
    if given is None:
        return max(default, least)
    if given < least:
        raise ParameterError(f"{name} needs a population of at least {least} members; got {given}")
    return given


def require_positive_sigma(sigma: float) -> None:
    """**Errors:** `ParameterError` for a standard deviation that is not above 0."""
    if not (np.isfinite(sigma) and sigma > 0):
        raise ParameterError(
            f"sigma is the standard deviation of the first population, above 0; got {sigma!r}"
        )


def ranks(losses: np.ndarray) -> np.ndarray:
    """The rank of each member as a floating number, 0 the best; dead ones last, equal ones in their order."""
    order = np.argsort(np.where(np.isnan(losses), np.inf, losses), kind="stable")
    found = np.empty(len(losses), losses.dtype)
    found[order] = np.arange(len(losses), dtype=losses.dtype)
    return found
