"""Multiple shooting: fits over windows much longer than the Lyapunov time."""

from collections.abc import Callable
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
    ShapeError,
    call_with,
    param,
    replaced,
    static,
)
from physkit.particles import Particles
from physkit.simulate import Simulation, simulate


class MultipleShooting(Module):
    """An objective for `fit`: a long run cut into windows whose starts are unknowns of their own.

        r = ( misfit of every window ,  w · (end of window i − start of window i + 1) )

    One run through many Lyapunov times has a loss with a hundred valleys, and gradients as large as
    the growth of errors. Windows of about one Lyapunov time each have gradients that mean something;
    the continuity residuals draw them together into one trajectory as the fit converges.

    The model is `(simulation, starts)`, `starts` being states stacked along a new first axis; `cut`
    makes it. Point `where` at parameters of the simulation and at the arrays of `starts` that evolve.

    **Arguments:**

    - `misfit`: `(frames, data)` → residuals of one window, in units of the noise; frames are those of
      the simulation's observers, the window's first and last step included.
    - `steps`: of the whole run; `windows` must divide it, and the observers' intervals each window.
    - `windows`: how many.
    - `weight`: w, continuity in units of its inverse: one number, or a tree like the state. Of 1/w
      states may jump at the seams.

    **Errors:** `ParameterError` for windows that do not divide the steps; `ShapeError` for data whose
    times do not fall on the frames.

    **Good values:** windows of 0.5 to 2 Lyapunov times (`gradient_growth` measures it); w of 10 to 1000
    over the typical noise: seams are then closed better than the data can see, and standard errors are
    those of a fit to one trajectory.

    **Notes:** `data` is for the whole run: arrays with a first axis for frames, `steps / interval + 1`
    of them. Frames at seams count in both windows; share them out in `misfit` if that matters. For
    dynamics without noise.

    **Reference:** Bock, in Modelling of Chemical Reaction Systems (Springer, 1981), p. 102; Baake,
    Baake, Bock & Briggs, Phys. Rev. A 45, 5524 (1992), for chaos.
    """

    misfit: Callable = static()
    steps: int = static()
    windows: int = static()
    weight: Any = param()

    def __init__(
        self,
        misfit: Callable[[Any, Any], Any],
        steps: int,
        windows: int,
        weight: Any = 100.0,
    ):
        whole = isinstance(windows, int) and isinstance(steps, int) and windows >= 1 <= steps
        if not whole or steps % windows:
            near = [n for n in range(1, max(int(steps), 1) + 1) if steps % n == 0]
            near = sorted(near, key=lambda n: abs(n - windows))[:3]
            raise ParameterError(
                f"windows must divide the steps; got {windows} windows of {steps} steps, try {near}"
            )
        self.misfit, self.steps, self.windows = misfit, steps, windows
        self.weight = jax.tree.map(lambda w: jnp.asarray(w, float), weight)

    @property
    def length(self) -> int:
        """Steps of one window."""
        return self.steps // self.windows

    def cut(self, sim: Simulation, state: Any) -> tuple[Simulation, Any]:
        """The model to start from: windows begin on the trajectory from `state`.

        Where states are known better than that (observed, or smoothed), stack those instead.
        """
        bare = replaced(sim, {"observers": (), "guards": ()})
        ends = [state]
        for _ in range(self.windows - 1):
            here = self._later(bare, len(ends) - 1)
            ends.append(simulate(here, ends[-1], self.length).state)
        return sim, jax.tree.map(lambda *x: jnp.stack(x), *ends)

    def trajectory(self, model: tuple[Simulation, Any]) -> tuple[Any, Any]:
        """Frames `[windows frames …]` of every window, and the states `[windows …]` at their ends."""
        sim, starts = model
        counts = {x.shape[0] for x in jax.tree.leaves(starts)}
        if counts != {self.windows}:
            raise ShapeError(
                f"starts are states stacked along a first axis of {self.windows} windows; "
                f"got first axes {sorted(counts)}"
            )

        def window(i, start):
            result = simulate(self._later(sim, i), start, self.length)
            return result.frames, result.state

        return jax.vmap(window)(jnp.arange(self.windows), starts)

    def gaps(self, model: tuple[Simulation, Any], ends: Any = None) -> Float[Array, "seams n"]:
        """End of each window minus start of the next, not weighted."""
        ends = self.trajectory(model)[1] if ends is None else ends
        return self._seams(ends, model[1], jnp.ones(()))

    def __call__(self, model: tuple[Simulation, Any], data: Any = None) -> Any:
        """All residuals: misfits of the windows, then weighted gaps."""
        frames, ends = self.trajectory(model)
        parts = self._parts(frames, data)
        call = lambda f, d: call_with(self.misfit, (f, d), "misfit", "(frames, data)")
        return jax.vmap(call)(frames, parts), self._seams(ends, model[1], self.weight)

    def _later(self, sim: Simulation, window: Any) -> Simulation:
        """`sim` with its clock at the start of a window."""
        offset = jnp.asarray(window * self.length, sim.dt.dtype)
        return replaced(sim, {"t0": sim.t0 + offset * sim.dt})

    def _parts(self, frames: Any, data: Any) -> Any:
        """`data` by window, the frames at seams in both."""
        inside = {x.shape[1] for x in jax.tree.leaves(frames)}
        if len(inside) != 1:
            raise ShapeError(
                f"all observers must have one interval for multiple shooting; windows have {inside} frames"
            )
        each = inside.pop() - 1
        wanted = each * self.windows + 1
        place = jnp.asarray(each * np.arange(self.windows)[:, None] + np.arange(each + 1)[None])

        def part(x):
            x = jnp.asarray(x)
            if x.ndim == 0 or x.shape[0] != wanted:
                raise ShapeError(
                    f"{self.steps} steps have {wanted} frames, the first one included; data of shape "
                    f"{x.shape} do not fall on them"
                )
            return x[place]

        return jax.tree.map(part, data)

    def _seams(self, ends: Any, starts: Any, weight: Any) -> Float[Array, "seams n"]:
        if self.windows == 1:
            return jnp.zeros((0, 0))
        before = jax.tree.map(lambda x: x[:-1], ends)
        after = jax.tree.map(lambda x: x[1:], starts)
        gaps = jax.vmap(_gap)(before, after)
        leaves = jax.tree.leaves(gaps)
        weights = jax.tree.leaves(weight)
        weights = weights * len(leaves) if len(weights) == 1 else weights
        if len(weights) != len(leaves):
            raise ShapeError(
                f"weight is one number or one per part of the state that evolves ({len(leaves)}); "
                f"got {len(weights)}"
            )
        flat = [
            (w.astype(g.dtype) * g).reshape(self.windows - 1, -1)
            for g, w in zip(leaves, weights, strict=True)
        ]
        return jnp.concatenate(flat, axis=1)


def _gap(end: Any, start: Any) -> Any:
    """What separates two states: of particles the way from one to the other and the change of velocity."""
    is_component = lambda x: isinstance(x, AbstractComponent)

    def part(a, b):
        if isinstance(a, Particles):
            return a.space.displacement(a.position, b.position), a.velocity - b.velocity
        floats = eqx.filter(a, eqx.is_inexact_array), eqx.filter(b, eqx.is_inexact_array)
        return jax.tree.map(lambda x, y: x - y, *floats)

    return jax.tree.map(part, end, start, is_leaf=is_component)
