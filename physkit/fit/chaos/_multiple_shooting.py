"""Multiple shooting: fits over windows much longer than the Lyapunov time."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    AbstractComponent,
    Module,
    ParameterError,
    PyTree,
    SelectionError,
    ShapeError,
    State,
    as_count,
    call_user_function,
    explain_call,
    replace_fields,
    static,
)
from physkit.simulate import Simulation, simulate

from .._select import Where, select
from ..solve._bounds import AbstractBounds, BoundsLike
from ..solve._fit import fit
from ..solve._fit_result import Fit
from ..solve._methods import MethodLike


class MultipleShooting(Module):
    """An objective for `fit`: a long run cut into windows whose starts are unknowns of their own.

        r = ( misfit of every window ,  w · (end of window i − start of window i + 1) )

    One run through many Lyapunov times has a loss with a hundred valleys, and gradients as large as
    the growth of errors. Windows of about one Lyapunov time each have gradients that mean something;
    the continuity residuals draw them together into one trajectory as the fit converges.

    The model is `(simulation, starts)`, `starts` being states stacked along a new first axis;
    `initial_model` makes it. Point `where` at parameters of the simulation and at the arrays of `starts`
    that evolve.

    **Arguments:**

    - `misfit`: `(frames, data)` → residuals of one window, in units of the noise; frames are those of
      the simulation's observers from the window's start on. Its end belongs to the next window, so that
      every frame counts once; the very last of the run is not used.
    - `steps`: of the whole run; `windows` must divide it, and the observers' intervals each window.
    - `windows`: how many.
    - `weight`: w, one number, or one for each array of the state that evolves. Jumps at the seams count
      in units of 1/w.

    **Errors:** `ParameterError` for windows that do not divide the steps; `ShapeError` for data whose
    times do not fall on the frames.

    **Good values:** windows of 0.5 to 2 Lyapunov times (`gradient_growth` measures it). At first jumps
    as large as the noise of the data (w = 1 / noise): the fit then finds the valley. At last 100 times
    less: the seams are closed better than the data can see, and standard errors are those of a fit of
    one trajectory. `fit_in_windows` goes this way.

    **Notes:** `data` is for the whole run: arrays with a first axis for frames, `steps / interval + 1`
    of them. For dynamics without noise.

    **Reference:** Bock, in Modelling of Chemical Reaction Systems (Springer, 1981), p. 102; Baake,
    Baake, Bock & Briggs, Phys. Rev. A 45, 5524 (1992), for chaos.
    """

    misfit: Callable = static()
    steps: int = static()
    windows: int = static()
    weight: float | tuple[float, ...] = static()

    def __init__(
        self,
        misfit: Callable[[PyTree, PyTree], PyTree],
        steps: int,
        windows: int,
        weight: float | tuple[float, ...] = 100.0,
    ):
        steps = as_count(steps, "steps", ParameterError)
        windows = as_count(windows, "windows", ParameterError)
        if steps % windows:
            # The divisors next to what was asked for.
            near = [n for n in range(1, steps + 1) if steps % n == 0]
            near = sorted(near, key=lambda n: abs(n - windows))[:3]
            raise ParameterError(
                f"windows must divide the steps; got {windows} windows of {steps} steps, try {near}"
            )
        self.misfit, self.steps, self.windows = misfit, steps, windows
        self.weight = tuple(map(float, weight)) if isinstance(weight, tuple) else float(weight)

    @property
    def length(self) -> int:
        """Steps of one window."""
        return self.steps // self.windows

    def initial_model(self, sim: Simulation, state: State) -> tuple[Simulation, State]:
        """The model to start from: windows begin on the trajectory from `state`.

        Where states are known better than that (observed, or smoothed), stack those instead.
        """
        bare = replace_fields(sim, {"observers": (), "guards": ()})
        # One window after the other: each begins where the last one ended, so gaps are 0 at first.
        ends = [state]
        for _ in range(self.windows - 1):
            window_sim = self._sim_of_window(bare, len(ends) - 1)
            ends.append(simulate(window_sim, ends[-1], self.length).state)
        return sim, jax.tree.map(lambda *x: jnp.stack(x), *ends)

    def trajectory(self, model: tuple[Simulation, State]) -> tuple[PyTree, State]:
        """Frames `[windows frames …]` of every window, and the states `[windows …]` at their ends."""
        sim, starts = model
        counts = {x.shape[0] for x in jax.tree.leaves(starts)}
        if counts != {self.windows}:
            raise ShapeError(
                f"starts are states stacked along a first axis of {self.windows} windows; "
                f"got first axes {sorted(counts)}"
            )

        def run_window(i: Array, start: State) -> tuple[PyTree, State]:
            result = simulate(self._sim_of_window(sim, i), start, self.length)
            return result.frames, result.state

        # Windows do not depend on one another.
        return jax.vmap(run_window)(jnp.arange(self.windows), starts)

    def gaps(
        self, model: tuple[Simulation, State], ends: State | None = None
    ) -> Float[Array, "seams n"]:
        """End of each window minus start of the next, not weighted."""
        ends = self.trajectory(model)[1] if ends is None else ends
        return self._weighted_gaps(ends, model[1], 1.0)

    def __call__(self, model: tuple[Simulation, State], data: PyTree = None) -> PyTree:
        """All residuals: misfits of the windows, then weighted gaps."""
        frames, ends = self.trajectory(model)
        parts = self._data_by_window(frames, data)
        # The end of a window is the start of the next, where its frame counts.
        frames = jax.tree.map(lambda x: x[:, :-1], frames)

        def misfit(frames: PyTree, data: PyTree) -> PyTree:
            return call_user_function(self.misfit, (frames, data), "misfit", "(frames, data)")

        return jax.vmap(misfit)(frames, parts), self._weighted_gaps(ends, model[1], self.weight)

    def _sim_of_window(self, sim: Simulation, window: int | Array) -> Simulation:
        """`sim` with its clock at the start of a window."""
        # What depends on time sees the time of the whole run.
        offset = jnp.asarray(window * self.length, sim.dt.dtype)
        return replace_fields(sim, {"t0": sim.t0 + offset * sim.dt})

    def _data_by_window(self, frames: PyTree, data: PyTree) -> PyTree:
        """`data` by window, without the frame at its end."""
        lengths = {x.shape[1] for x in jax.tree.leaves(frames)}
        if len(lengths) != 1:
            raise ShapeError(
                f"all observers must have one interval for multiple shooting; windows have {lengths} frames"
            )
        frames_per_window = lengths.pop() - 1  # the one at the end belongs to the next window
        expected = frames_per_window * self.windows + 1
        first = frames_per_window * np.arange(self.windows)[:, None]
        index = jnp.asarray(first + np.arange(frames_per_window)[None])  # (windows, frames)

        def by_window(x: Any) -> Array:
            x = jnp.asarray(x)
            if x.ndim == 0 or x.shape[0] != expected:
                raise ShapeError(
                    f"{self.steps} steps have {expected} frames, the first one included; data of shape "
                    f"{x.shape} do not fall on them"
                )
            return x[index]

        return jax.tree.map(by_window, data)

    def _weighted_gaps(
        self, ends: State, starts: State, weight: float | tuple[float, ...]
    ) -> Float[Array, "seams n"]:
        if self.windows == 1:
            return jnp.zeros((0, 0))
        # Seam i lies between windows i and i + 1.
        before = jax.tree.map(lambda x: x[:-1], ends)
        after = jax.tree.map(lambda x: x[1:], starts)
        gaps = jax.vmap(_gap)(before, after)
        leaves = jax.tree.leaves(gaps)
        weights = weight if isinstance(weight, tuple) else (weight,) * len(leaves)
        if len(weights) != len(leaves):
            raise ShapeError(
                f"weight is one number or one per array of the state that evolves ({len(leaves)}); "
                f"got {len(weights)}"
            )
        # (seams, numbers): all arrays of the state side by side.
        flat = [(w * g).reshape(self.windows - 1, -1) for g, w in zip(leaves, weights, strict=True)]
        return jnp.concatenate(flat, axis=1)


@explain_call
def fit_in_windows(
    misfit: Callable[[PyTree, PyTree], PyTree],
    model: tuple[Simulation, State],
    *,
    where: Where,
    steps: int,
    windows: int,
    data: PyTree = None,
    starts: State | None = None,
    weights: Sequence[float | tuple[float, ...]] = (1.0, 10.0, 100.0),
    bounds: BoundsLike = None,
    method: MethodLike = None,
    progress: bool = True,
) -> Fit:
    """`fit` of a long, chaotic run by multiple shooting: windows that are joined ever more tightly.

    **Arguments:**

    - `misfit`, `steps`, `windows`, `data`: as `MultipleShooting` has them.
    - `model`: `(simulation, state)`; `where` points into it, at parameters of the simulation; `bounds`
      are theirs, one for all or a dict by name. All that changes with time in the states at the
      windows' starts is fitted, too, as `start` in the table.
    - `starts`: states stacked along a first axis of windows, if better known than by running the model.
    - `weights`: of continuity, one fit each. The first about 1 / noise of the data.
    - `method`: as for `fit` of residuals.

    **Returns:** the last `Fit`; its model is `(simulation, starts)`.

    **Errors:** those of `fit` and `MultipleShooting`; `ParameterError` without weights.

    **Reference:** see `MultipleShooting`.
    """
    if not weights:
        raise ParameterError("fit_in_windows needs at least one weight")
    sim, state = model
    pointers = _pointers_into_sim(where, sim)
    if isinstance(bounds, AbstractBounds):
        bounds = dict.fromkeys(pointers, bounds)  # of the parameters, not of the starts
    elif isinstance(bounds, tuple | list):
        bounds = dict(zip(pointers, bounds, strict=True))
    evolves = _evolving_leaves(sim, state)

    def evolving_starts(model: tuple[Simulation, State]) -> list[PyTree]:
        leaves = zip(jax.tree.leaves(model[1]), evolves, strict=True)
        return [leaf for leaf, does in leaves if does]

    # Loose joints first: the loss then has one valley. Tight ones later: one trajectory is left.
    windowed = (sim, starts)
    found = None
    for weight in weights:
        shooting = MultipleShooting(misfit, steps, windows, weight)
        if windowed[1] is None:
            windowed = shooting.initial_model(sim, state)
        found = fit(
            shooting, windowed, where=pointers | {"start": evolving_starts}, bounds=bounds, method=method,
            data=data, progress=progress, title=f"fit in {windows} windows",
        )  # fmt: skip
        # The next fit, with tighter joints, starts where this one ended.
        windowed = found.model
    assert found is not None
    return found


def _pointers_into_sim(where: Where, sim: Simulation) -> dict[str, Callable[[PyTree], Array]]:
    """By name, functions that point at the parameters of the simulation which `where` selects."""
    try:
        selection = select(where, (sim, None))
    except SelectionError as error:
        raise SelectionError(
            f"{error}. (Point into the simulation; the windows' starts are fitted anyway)"
        ) from error
    if "start" in selection.names:
        raise SelectionError("the windows' starts are called 'start': name the parameter otherwise")

    # By number: a leaf of the simulation has the same one in the model of the fit, (sim, starts).
    def pointer(number: int, index: tuple) -> Callable[[PyTree], Array]:
        def leaf_or_part(model: PyTree) -> Any:
            leaf = jax.tree.leaves(model[0])[number]
            return leaf[index[0]] if index else leaf

        return leaf_or_part

    rows = zip(selection.names, selection.leaf_numbers, selection.indices, strict=True)
    return {name: pointer(number, index) for name, number, index in rows}


def _evolving_leaves(sim: Simulation, state: State) -> tuple[bool, ...]:
    """Which leaves of the state change with time."""
    # One step tells. Masses, charges and boxes stay: they are not unknowns of each window.
    after = simulate(replace_fields(sim, {"observers": (), "guards": ()}), state, 1).state
    pairs = zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True)
    return tuple(eqx.is_inexact_array(a) and not np.array_equal(a, b) for a, b in pairs)


def _gap(end: State, start: State) -> PyTree:
    """What separates two states: of particles the way from one to the other and the change of velocity."""

    def is_component(node: PyTree) -> bool:
        return isinstance(node, AbstractComponent)

    def difference(a: PyTree, b: PyTree) -> PyTree:
        if is_component(a):
            # A component knows its space: across a periodic boundary the way is short.
            return a.difference(b)
        floats = eqx.filter(a, eqx.is_inexact_array), eqx.filter(b, eqx.is_inexact_array)
        return jax.tree.map(lambda x, y: x - y, *floats)

    return jax.tree.map(difference, end, start, is_leaf=is_component)
