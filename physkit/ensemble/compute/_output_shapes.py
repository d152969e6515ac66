"""What members will record: names, shapes and times, known before anything is computed."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import CapacityError, Frame, ParameterError, ShapeError
from physkit.simulate import check_terms, init, observe_initial, summary

from ..design._sweep import Sweep
from ._member_batch import MemberGroup


class OutputShapes(NamedTuple):
    """Shapes of what one member records: of one frame of each name, and of summaries by name."""

    frames: dict[str, jax.ShapeDtypeStruct]
    summary: dict[str, jax.ShapeDtypeStruct]

    def bytes(self, sweep: Sweep) -> float:
        """Bytes of all frames of one member."""
        sim = sweep.models[0][0]
        # An upper bound: as if everything were recorded at the shortest interval, and at step 0.
        observations = 1 + sweep.steps / min(sim.intervals, default=sweep.steps)
        return observations * sum(_nbytes(x) for x in self.frames.values())

    def __str__(self) -> str:
        rows = {**self.frames, **self.summary}
        return ", ".join(f"{n} {x.dtype}{list(x.shape)}" for n, x in rows.items()) or "nothing"


def output_shapes(sweep: Sweep) -> OutputShapes:
    """What a member records.

    **Errors:** `ShapeError` where groups record different things.
    """
    # Groups lie side by side in the arrays of one ensemble: they must record the same, at the same steps.
    shapes = [_group_shapes(sweep, group) for group in range(len(sweep.models))]
    intervals = [[o.interval for o in sim.observers] for sim, _ in sweep.models]
    for number, group_shapes in enumerate(shapes):
        if group_shapes != shapes[0]:
            raise ShapeError(
                f"groups 0 and {number} record different things, {shapes[0]} and {group_shapes}: make two "
                "sweeps of them"
            )
        if intervals[number] != intervals[0]:
            raise ShapeError(
                f"groups 0 and {number} record at different intervals, {intervals[0]} and "
                f"{intervals[number]} steps: make two sweeps of them"
            )
    return shapes[0]


def _group_shapes(sweep: Sweep, group: int) -> OutputShapes:
    member_group = MemberGroup(sweep.models[group], sweep.leaf_positions(group))
    first_member = np.array([group * sweep.group_size])

    def values_of(member: np.ndarray) -> tuple[Any, ...]:
        return tuple(jnp.asarray(v[0]) for v in sweep.values(group, member))

    # Members are computed in traces, where no numbers can be seen. What contradicts the state in one of them
    # and is swept does so in the first or in the last.
    for member in (first_member, first_member + sweep.group_size - 1):
        check_terms(*member_group.member(values_of(member)), checks_step=False)
    values, keys = values_of(first_member), sweep.keys(group, first_member)

    def record(values: Any) -> tuple[Frame, Frame]:
        sim, state = member_group.member(values)
        carry = init(sim, state, key=None if keys is None else keys[0])
        carry, first = observe_initial(sim, carry)
        return jax.tree.map(lambda x: x[0], first), summary(sim, carry)

    def shape(x):
        return jax.ShapeDtypeStruct(x.shape, x.dtype)

    # Shapes alone: nothing is computed, and nothing compiled.
    try:
        frames, results = eqx.filter_eval_shape(record, values)
    except CapacityError:
        # So many particles that their neighbors must be counted, which no trace can do: one is initialized.
        frames, results = record(values)
    return OutputShapes(
        jax.tree.map(shape, flatten_frames(frames)), jax.tree.map(shape, flatten_frames(results))
    )


def require_recorded(sweep: Sweep, shapes: OutputShapes) -> None:
    """**Errors:** `ParameterError` where `reduce` or `keep` name what is not recorded."""
    recorded = {*shapes.frames, *shapes.summary}
    requested = {r.name for r in sweep.reduce}
    if not isinstance(sweep.keep, bool):
        requested |= set(sweep.keep)
    # Before anything is computed: a misspelled name must not show after hours.
    if unknown := sorted(requested - recorded):
        raise ParameterError(f"nothing is recorded as {unknown}; available: {sorted(recorded)}")


def flatten_frames(frames: Frame) -> dict[str, Any]:
    """Arrays by name; a frame of several arrays gives several: `name`, `name[0]`, …"""
    arrays = {}
    for name, frame in frames.items():
        leaves, _ = jax.tree_util.tree_flatten_with_path(frame)
        arrays |= {name + jax.tree_util.keystr(path): leaf for path, leaf in leaves}
    return arrays


def frame_times(
    sweep: Sweep, group: int, members: np.ndarray, frames: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The times of the frames, `[times]`; `[members, times]` where members differ in dt or t0."""
    model = sweep.models[group]
    member_group = MemberGroup(model, sweep.leaf_positions(group))
    # Compared by identity: time steps may be swept under any name. Where none is, one member stands for all.
    leaves, (sim, _) = jax.tree.leaves(model), model
    swept = [leaves[leaf] for leaf, _ in member_group.positions]
    if not any(leaf is sim.dt or leaf is sim.t0 for leaf in swept):
        members = members[:1]
    values = tuple(jnp.asarray(v) for v in sweep.values(group, members))

    def time_step(values):
        sim = member_group.member(values)[0]
        return sim.t0, sim.dt

    t0, dt = jax.vmap(time_step, axis_size=len(members))(values)
    # On the host in double precision: in single precision late times would not be distinct.
    t0, dt = np.asarray(t0, np.float64), np.asarray(dt, np.float64)
    if np.all(dt == dt[0]) and np.all(t0 == t0[0]):
        t0, dt = t0[:1], dt[:1]
    times = {}
    for name, x in frames.items():
        # The interval follows from the number of frames, of which the first is at step 0.
        steps = np.arange(x.shape[1]) * (sweep.steps // max(x.shape[1] - 1, 1))
        rows = t0[:, None] + dt[:, None] * steps[None]
        times[name] = rows[0] if len(rows) == 1 else rows
    return times


def _nbytes(x: jax.ShapeDtypeStruct) -> int:
    return int(np.prod(x.shape)) * np.dtype(x.dtype).itemsize
