"""Currents of charges that move, such that charge is conserved on the grid."""

import dataclasses
import functools
import operator

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from physkit.core import explain_call, recomputed
from physkit.fields import Field
from physkit.geometry import Grid, Location
from physkit.particles import Particles

from ._kernels import CIC, AbstractKernel
from ._scatter_sums import scatter_weighted
from ._stencil import Layout, grid_coordinates, require_same_precision
from ._transfer import Points, fold_ghosts

Window = tuple[Array, ...]  # weights along one axis, point by point, `[n]` each


@explain_call
def deposit_current(
    charge: ArrayLike,
    before: Particles,
    after: Particles,
    dt: ArrayLike,
    grid: Grid,
    kernel: AbstractKernel | None = None,
) -> tuple[Field, ...]:
    """The current of charges that go from one place to another, on the edges of Yee's grid.

        (ρ_after − ρ_before)/dt + ∇·J = 0      at every node, to rounding

    ρ is `deposit(charge, …, location=nodes)` with the same kernel. Along x, with S₀ and S₁ the kernel's weights
    before and after,

        J_x(i + ½) = −q h_x/(V dt) Σ_{i′ ≤ i} D_x(i′) · (M_y M_z + D_y D_z/12),   D = S₁ − S₀,   M = ½(S₀ + S₁)

    **Arguments:**

    - `charge`: q, `[n]`, or one number for all.
    - `before`, `after`: the particles, in the same rows; none goes further than a cell.
    - `dt`: time between the two.
    - `grid`: periodic along every axis.
    - `kernel`: `CIC()` (if left out), `TSC()` or `PCS()`.

    **Returns:** one field an axis, charge / (time · length^(d−1)).

    **Errors:** `ParameterError` for a grid with walls or two precisions.

    **Reference:** Esirkepov, Comput. Phys. Commun. 135, 144 (2001): the mean over the six orders in which axes
    can be gone along, written as products.
    """
    grid.require_periodic("a current that conserves charge")
    kernel = kernel or CIC()
    start = Points.of(before, grid, "deposit_current")
    end = Points.of(after, grid, "deposit_current")
    q = jnp.broadcast_to(jnp.asarray(charge, start.position.dtype), (len(start.position),))
    require_same_precision(start.position, q, "charges")
    # Weights, steps and flows of every point of a stencil: for a derivative they are computed again.
    function = functools.partial(_deposit_current, grid, kernel, start.margin)
    return recomputed(function)(start.position, end.position, start.mask_empty(q), dt)


def _deposit_current(
    grid: Grid,
    kernel: AbstractKernel,
    margin: float,
    start: Float[Array, "n d"],
    end: Float[Array, "n d"],
    q: Float[Array, " n"],
    dt: ArrayLike,
) -> tuple[Field, ...]:
    n, d = start.shape
    nodes = Location((True,) * d)
    layout = _widen(Layout.of(grid, nodes, kernel, margin))
    x = grid_coordinates(grid, nodes, kernel, start)
    y = grid_coordinates(grid, nodes, kernel, end)
    base, flows, means, steps = jnp.zeros(n, jnp.int32), [], [], []
    for k, (low, high) in enumerate(zip(x, y)):
        # The image that is less than a cell away.
        high = high - grid.shape[k] * jnp.round((high - low) / grid.shape[k])
        first, old, new = _window(kernel, low, high, layout.intervals[k])
        base = base * layout.points[k] + (first + layout.ghosts[k][0])
        step = [b - a for a, b in zip(old, new, strict=True)]
        steps.append(tuple(step))
        means.append(tuple(0.5 * (a + b) for a, b in zip(old, new, strict=True)))
        # What has left through the point's upper side; through the last one nothing does.
        sums = [functools.reduce(operator.add, step[: j + 1]) for j in range(len(step) - 1)]
        flows.append(tuple(-s for s in sums))
    out = []
    for k in range(d):
        # One after the other: the volume times the step is 0 in single precision in SI units.
        value = q / dt
        for j in range(d):
            value = value if j == k else value / grid.spacing[j].astype(q.dtype)
        parts = [_along(k, flows[k], means)]
        if d == 3:
            twelfth = tuple(w / 12 for w in flows[k])
            parts.append(_along(k, twelfth, steps))
        total = scatter_weighted(layout.points, base, tuple(parts), value)
        place = Location(tuple(a != k for a in range(d)))
        out.append(Field(fold_ghosts(grid, place, layout, total), grid, place))
    return tuple(out)


def _along(axis: int, flow: Window, others: list[Window]) -> tuple[Window, ...]:
    return tuple(flow if k == axis else w for k, w in enumerate(others))


def _widen(layout: Layout) -> Layout:
    """With room for stencils that begin one point lower, and end one higher."""
    return dataclasses.replace(
        layout,
        ghosts=tuple((low + 1, high + 1) for low, high in layout.ghosts),
        points=tuple(n + 2 for n in layout.points),
        intervals=tuple((first - 1, last) for first, last in layout.intervals),
    )


def _window(
    kernel: AbstractKernel,
    before: Float[Array, " n"],
    after: Float[Array, " n"],
    interval: tuple[int, int],
) -> tuple[Int[Array, " n"], Window, Window]:
    """The lowest point that the kernel touches before or after, and its weights there from this point on."""
    cells = [jnp.floor(along).astype(jnp.int32) for along in (before, after)]
    first = jnp.clip(jnp.minimum(*cells), *interval)
    windows = []
    for along, cell in zip((before, after), cells, strict=True):
        weights = kernel.weights(along - cell.astype(along.dtype))
        is_higher, zero = cell > first, jnp.zeros_like(along)
        pairs = zip((*weights, zero), (zero, *weights), strict=True)
        windows.append(tuple(jnp.where(is_higher, b, a) for a, b in pairs))
    return first, windows[0], windows[1]
