"""What members will record: names, shapes and times, known before anything is computed."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import CapacityError, ParameterError, ShapeError
from physkit.observe import Frame
from physkit.simulate import init, observe_initial, summary

from ..design._sweep import Sweep
from ._member_batch import MemberGroup


class OutputShapes(NamedTuple):
    """Of one member: frames and summaries by name, as one look gives them."""

    frames: dict[str, Any]
    summary: dict[str, Any]

    def bytes(self, sweep: Sweep) -> float:
        """Of all frames of one member."""
        sim = sweep.models[0][0]
        looks = 1 + sweep.steps / min(sim.intervals, default=sweep.steps)
        return looks * sum(_nbytes(x) for x in self.frames.values())


def output_shapes(sweep: Sweep) -> OutputShapes:
    """What a member records.

    **Errors:** `ShapeError` where groups record different things.
    """
    found = [_of_group(sweep, group) for group in range(len(sweep.models))]
    intervals = [[o.interval for o in sim.observers] for sim, _ in sweep.models]
    for number, other in enumerate(found):
        if other != found[0]:
            raise ShapeError(
                f"groups 0 and {number} record different things, {_said(found[0])} and {_said(other)}: make "
                "two sweeps of them"
            )
        if intervals[number] != intervals[0]:
            raise ShapeError(
                f"groups 0 and {number} record at different intervals, {intervals[0]} and "
                f"{intervals[number]} steps: make two sweeps of them"
            )
    return found[0]


def _of_group(sweep: Sweep, group: int) -> OutputShapes:
    shared = MemberGroup(sweep.models[group], sweep.places(group))
    one = sweep.chunks(1)[0] * 0 + group * sweep.group_size
    values = tuple(jnp.asarray(v[0]) for v in sweep.values(group, one))
    keys = sweep.keys(group, one)

    def looks(values: Any) -> tuple[Frame, Frame]:
        sim, state = shared.of(values)
        carry = init(sim, state, key=None if keys is None else keys[0])
        carry, first = observe_initial(sim, carry)
        return jax.tree.map(lambda x: x[0], first), summary(sim, carry)

    try:
        frames, results = eqx.filter_eval_shape(looks, values)
    except CapacityError:  # large members are set up outside of a trace
        frames, results = looks(values)
    shape = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)
    return OutputShapes(*(jax.tree.map(shape, flatten_frames(x)) for x in (frames, results)))


def require_recorded(sweep: Sweep, shapes: OutputShapes) -> None:
    """**Errors:** `ParameterError` where `reduce` or `keep` name what is not recorded."""
    there = sorted({*shapes.frames, *shapes.summary})
    asked = [r.name for r in sweep.reduce]
    asked += [] if isinstance(sweep.keep, bool) else list(sweep.keep)
    if unknown := sorted(set(asked) - set(there)):
        raise ParameterError(f"nothing is recorded as {unknown}; available: {there}")


def flatten_frames(frames: dict[str, Any]) -> dict[str, Any]:
    """Arrays by name; a frame of several arrays gives several: `name`, `name[0]`, …"""
    out = {}
    for name, frame in frames.items():
        leaves, _ = jax.tree_util.tree_flatten_with_path(frame)
        out |= {name + jax.tree_util.keystr(path): leaf for path, leaf in leaves}
    return out


def frame_times(
    sweep: Sweep, group: int, members: np.ndarray, frames: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The times of the frames, `[times]`; `[members, times]` where members differ in dt or t0."""
    shared = MemberGroup(sweep.models[group], sweep.places(group))
    values = tuple(jnp.asarray(v) for v in sweep.values(group, members))

    def step(values):
        sim = shared.of(values)[0]
        return sim.t0, sim.dt

    found = jax.vmap(step, axis_size=len(members))(values)
    t0, dt = (np.asarray(x, np.float64) for x in found)
    out = {}
    for name, x in frames.items():
        counts = np.arange(x.shape[1]) * (sweep.steps // max(x.shape[1] - 1, 1))
        times = t0[:, None] + dt[:, None] * counts[None]
        out[name] = times[0] if np.all(dt == dt[0]) and np.all(t0 == t0[0]) else times
    return out


def _said(shapes: OutputShapes) -> str:
    rows = {**shapes.frames, **shapes.summary}
    return ", ".join(f"{n} {x.dtype}{list(x.shape)}" for n, x in rows.items()) or "nothing"


def _nbytes(x: Any) -> int:
    return int(np.prod(x.shape)) * np.dtype(x.dtype).itemsize
