"""What a sweep gives: members' frames with the swept quantities as coordinates."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from physkit.core import ADVICE, Fault, ParameterError
from physkit.storage import require_xarray

from ._sweep_folder import StoredChunk

_MOST_ROWS = 12


class FailedMember(NamedTuple):
    """A member that went wrong: the step at the end of the block in which it did (there are no numbers from
    there on), why, and how often it was computed."""

    member: int
    step: int
    reason: str
    attempts: int


class MemberArray:
    """One quantity of all members that there are, `[members, …]`; read from its chunks when indexed.

    Members are in the order of `Ensemble.members`.
    """

    def __init__(self, name: str, parts: Sequence[Any], place: np.ndarray):
        # place[m] = (chunk, row) of member m
        self.name, self._parts, self._place = name, parts, place
        self.dtype = np.result_type(*(p.dtype for p in parts))
        self.shape = (len(place), *parts[0].shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        del copy
        values = self[:]
        return values if dtype is None else values.astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if first is Ellipsis or first is None:
            return self[:][index]
        if isinstance(first, int | np.integer):
            if not -len(self) <= first < len(self):
                raise IndexError(f"{self.name} has {len(self)} members; got {first}")
            chunk, row = self._place[first]
            return np.asarray(self._parts[chunk][int(row)])[tuple(rest)]
        chosen = self._place[first]
        whole = np.empty((len(chosen), *self.shape[1:]), self.dtype)
        for chunk in np.unique(chosen[:, 0]):
            mine = chosen[:, 0] == chunk
            whole[mine] = np.asarray(self._parts[chunk][()])[chosen[mine, 1]]
        return whole[(slice(None), *rest)] if rest else whole

    def __repr__(self) -> str:
        return f"<{self.name} {self.dtype}{list(self.shape)}>"


class Ensemble(Mapping[str, MemberArray]):
    """The members of a sweep that have been computed; prints as a table.

    - `frames[name]`: `[members, times, …]`, read when indexed; `ensemble[name]` for short.
    - `times[name]`: `[times]`, or `[members, times]` where members differ in dt.
    - `summary[name]`: `[members, …]`, of accumulating observers.
    - `coordinates[name]`: the swept quantities, `[members, …]`.
    - `members`: their numbers; `total`: how many the sweep has; `missing`: numbers of absent chunks.
    - `ok`: `[members]`; `failed`: those that went wrong, their frames NaN from then on; `attempts`.
    - `reduced`: statistics over members made on the way, by title.
    - `groups`: their names, if they have any: `groups[k]` is the one of coordinate `group` k.
    - `stopped_by`: what ended the call that computed it early, if anything.
    """

    def __init__(
        self,
        chunks: Mapping[int, StoredChunk],
        *,
        total: int,
        num_chunks: int,
        coordinates: Mapping[str, np.ndarray],
        reduced: Mapping[str, Any],
        what: str,
        groups: Sequence[str] = (),
        path: Path | None = None,
        stopped_by: str | None = None,
    ):
        self.groups = tuple(groups)
        self.total, self.path, self.stopped_by, self._what = total, path, stopped_by, what
        self.missing = tuple(k for k in range(num_chunks) if k not in chunks)
        parts = [chunks[k] for k in sorted(chunks)]
        found = np.concatenate([p.members for p in parts]) if parts else np.zeros(0, int)
        rows = [
            np.stack([np.full(len(p.members), k), np.arange(len(p.members))], axis=1)
            for k, p in enumerate(parts)
        ]
        order = np.argsort(found, kind="stable")
        self.members = found[order]
        place = np.concatenate(rows)[order] if rows else np.zeros((0, 2), int)
        join = lambda name: _joined(parts, name, order)
        self.ok = join("ok").astype(bool)
        self.attempts = join("attempts")
        self._reason, self._step = join("reason"), join("step")
        self.coordinates = {n: np.asarray(x)[self.members] for n, x in coordinates.items()}
        self.frames = _gathered(parts, "frames", place)
        self.summary = _gathered(parts, "summary", place)
        self.times = {name: _times(parts, name, order) for name in self.frames}
        self.reduced = dict(reduced)
        self.seconds = sum(p.seconds for p in parts)
        self.growths = tuple(g for p in parts for g in p.growths)

    @property
    def failed(self) -> tuple[FailedMember, ...]:
        """Members that went wrong."""
        lost = np.flatnonzero(~self.ok)
        return tuple(
            FailedMember(
                int(self.members[k]),
                int(self._step[k]),
                reason_text(int(self._reason[k])),
                int(self.attempts[k]),
            )
            for k in lost
        )

    @property
    def complete(self) -> bool:
        """Whether all members have been computed."""
        return len(self.members) == self.total

    def __getitem__(self, name: str) -> MemberArray:
        for found in (self.frames, self.summary):
            if name in found:
                return found[name]
        raise KeyError(
            f"nothing kept as {name!r}; available: {sorted([*self.frames, *self.summary])}"
            + (f"; statistics: {sorted(self.reduced)} in .reduced" if self.reduced else "")
        )

    def __iter__(self) -> Iterator[str]:
        return iter([*self.frames, *(n for n in self.summary if n not in self.frames)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def to_xarray(self) -> Any:
        """A labeled `xarray.Dataset` over `member` with the swept quantities as coordinates.

        **Errors:** `MissingExtraError` without the extra `physkit[xarray]`.
        """
        labeled = require_xarray()
        labels: dict[str, Any] = {"member": self.members, "ok": ("member", self.ok)}
        for name, values in self.coordinates.items():
            dims = ("member", *(f"{name}_{k}" for k in range(values.ndim - 1)))
            labels[name] = (dims, values)
        if self.groups:
            names = np.asarray(self.groups)
            labels["group_name"] = ("member", names[self.members // (self.total // len(names))])
        arrays: dict[str, Any] = {}
        axes: dict[str, np.ndarray] = {}
        for name, values in self.frames.items():
            times = self.times[name]
            axis = next((a for a, t in axes.items() if np.array_equal(t, times)), None)
            if axis is None:
                axis = f"time_{len(axes)}" if axes else "time"
                axes[axis] = times
                labels[axis if times.ndim == 1 else f"{axis}_of_member"] = (
                    (axis,) if times.ndim == 1 else ("member", axis),
                    times,
                )
            inner = [f"{name}_{k}" for k in range(values.ndim - 2)]
            arrays[name] = (("member", axis, *inner), np.asarray(values))
        for name, values in self.summary.items():
            inner = [f"{name}_{k}" for k in range(values.ndim - 1)]
            arrays[name] = (("member", *inner), np.asarray(values))
        return labeled.Dataset(arrays, labels, attrs={"title": self._what})

    def require_complete(self) -> "Ensemble":
        """This ensemble.

        **Errors:** `ParameterError` where members are missing or went wrong.
        """
        if not self.complete or not np.all(self.ok):
            raise ParameterError(
                f"{self.total - len(self.members)} of {self.total} members are missing, "
                f"{np.sum(~self.ok)} went wrong"
            )
        return self

    def __repr__(self) -> str:
        lines = [f"Ensemble of {len(self.members)} of {self.total} members"]
        if self.path is not None:
            lines[0] += f" in {self.path}"
        if self.stopped_by:
            lines[0] += f", stopped ({self.stopped_by})"
        if self.missing:
            lines.append(f"  {len(self.missing)} chunks missing: {_some(self.missing)}")
        for name, values in self.coordinates.items():
            if name == "group" and self.groups:
                lines.append(f"  over group: {', '.join(self.groups)}")
            elif values.ndim == 1 and len(values):
                many = len(np.unique(values))
                low, high = (1.0 * f.reduce(values) for f in (np.fmin, np.fmax))
                lines.append(f"  over {name}: {low:.6g} … {high:.6g}, {many} values")
            else:
                lines.append(f"  over {name}: {values.dtype}{list(values.shape)}")
        for name, values in (*self.frames.items(), *self.summary.items()):
            lines.append(f"  {name}: {values.dtype}{list(values.shape)}")
        for title, values in self.reduced.items():
            shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in jax.tree.leaves(values))
            lines.append(f"  {title}: {shapes}")
        failed = self.failed
        again = int(np.sum(self.attempts > 1))
        if again:
            lines.append(f"  {again} members were computed more than once")
        if failed:
            lines.append(f"  {len(failed)} members went wrong:")
            lines += [f"    {f.member} by step {f.step}: {f.reason}" for f in failed[:_MOST_ROWS]]
            if len(failed) > _MOST_ROWS:
                lines.append(f"    … and {len(failed) - _MOST_ROWS} more")
        return "\n".join(lines)


def reason_text(bits: int) -> str:
    """Fault bits in words, the most telling one."""
    for fault, (_, advice) in ADVICE.items():
        if bits & int(fault):
            if fault is Fault.OVERFLOW:
                return (
                    "a cache overflowed and growing did not help: the density rises without bound"
                )
            return advice
    return ""


def _joined(parts: list[StoredChunk], name: str, order: np.ndarray) -> np.ndarray:
    if not parts:
        return np.zeros(0, int)
    return np.concatenate([np.asarray(getattr(p, name)) for p in parts])[order]


def _gathered(parts: list[StoredChunk], kind: str, place: np.ndarray) -> dict[str, MemberArray]:
    if not parts:
        return {}
    names = getattr(parts[0], kind)
    return {n: MemberArray(n, [getattr(p, kind)[n] for p in parts], place) for n in names}


def _times(parts: list[StoredChunk], name: str, order: np.ndarray) -> np.ndarray:
    rows = [np.asarray(p.times[name]) for p in parts]
    if all(r.ndim == 1 and np.array_equal(r, rows[0]) for r in rows):
        return rows[0]
    each = [
        np.broadcast_to(r if r.ndim > 1 else r[None], (len(p.members), r.shape[-1]))
        for r, p in zip(rows, parts, strict=True)
    ]
    return np.concatenate(each)[order]


def _some(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return shown + (", …" if len(numbers) > 8 else "")
