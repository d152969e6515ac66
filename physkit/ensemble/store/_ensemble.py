"""`Ensemble`: frames of the members of a sweep, with the swept quantities as coordinates."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from physkit.core import ADVICE, Fault, ParameterError, import_extra, printable
from physkit.html import describe_shape, describe_values, expandable, fragment, span, table, tree

from ._member_array import MemberArray
from ._member_table import member_columns, members_dataframe
from ._stored_chunk import StoredChunk

_MAX_ROWS = 12


class FailedMember(NamedTuple):
    """A member that failed: the step at the end of the block in which it did (there are no numbers from there
    on), the reason, and how often it was computed."""

    member: int
    step: int
    reason: str
    attempts: int


class Ensemble(Mapping[str, MemberArray]):
    """The members of a sweep that have been computed; prints as a table.

    - `frames[name]`: `[members, times, …]`, read when indexed; `ensemble[name]` for short.
    - `times[name]`: `[times]`, or `[members, times]` where members differ in dt.
    - `summary[name]`: `[members, …]`, of accumulating observers.
    - `coordinates[name]`: the swept quantities, `[members, …]`.
    - `members`: their numbers; `num_members`: how many the sweep has; `missing`: numbers of absent chunks.
    - `ok`: `[members]`; `failed`: those that failed, their frames NaN from then on; `attempts`.
    - `reduced`: statistics over the members that did not fail, by title.
    - `groups`: their names, if they have any: `groups[k]` is the one of coordinate `group` k.
    - `stopped_by`: what ended the call that computed it early, if anything.
    """

    def __init__(
        self,
        chunks: Mapping[int, StoredChunk],
        *,
        num_members: int,
        num_chunks: int,
        coordinates: Mapping[str, np.ndarray],
        reduced: Mapping[str, np.ndarray],
        title: str,
        groups: Sequence[str] = (),
        path: Path | None = None,
        stopped_by: str | None = None,
    ):
        self.groups = tuple(groups)
        self.num_members, self.path = num_members, path
        self.stopped_by, self._title = stopped_by, title
        self.missing = tuple(k for k in range(num_chunks) if k not in chunks)
        present = [chunks[k] for k in sorted(chunks)]
        members = np.concatenate([c.members for c in present]) if present else np.zeros(0, int)
        # (members, 2): the chunk that each member is in, and its row there.
        rows = [
            np.stack([np.full(len(c.members), k), np.arange(len(c.members))], axis=1)
            for k, c in enumerate(present)
        ]
        # Chunks come in the order of computing (by cost); everything is shown in the order of members.
        in_order = bool(np.all(members[:-1] <= members[1:]))
        order = slice(None) if in_order else np.argsort(members, kind="stable")
        self.members = members[order]
        chunk_and_row = np.concatenate(rows)[order] if rows else np.zeros((0, 2), int)
        self.ok = _concatenate_column(present, "ok", order).astype(bool)
        self.attempts = _concatenate_column(present, "attempts", order)
        self._reason = _concatenate_column(present, "reason", order)
        self._step = _concatenate_column(present, "step", order)
        self.coordinates = {n: np.asarray(x)[self.members] for n, x in coordinates.items()}
        self.frames = _member_arrays(present, "frames", chunk_and_row, self.ok)
        self.summary = _member_arrays(present, "summary", chunk_and_row, self.ok)
        self.times = {name: _merge_times(present, name, order) for name in self.frames}
        self.reduced = dict(reduced)
        self.seconds = sum(c.seconds for c in present)
        self.growths = tuple(g for c in present for g in c.growths)

    @property
    def failed(self) -> tuple[FailedMember, ...]:
        """Members that failed."""
        failed = np.flatnonzero(~self.ok)
        return tuple(
            FailedMember(
                int(self.members[k]),
                int(self._step[k]),
                describe_fault(int(self._reason[k])),
                int(self.attempts[k]),
            )
            for k in failed
        )

    @property
    def complete(self) -> bool:
        """Whether all members have been computed."""
        return len(self.members) == self.num_members

    def __getitem__(self, name: str) -> MemberArray:
        for arrays in (self.frames, self.summary):
            if name in arrays:
                return arrays[name]
        raise KeyError(
            f"the ensemble has nothing called {name!r}; available: {sorted([*self.frames, *self.summary])}"
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
        xarray = import_extra("xarray", "xarray", "to_xarray")
        labels: dict[str, Any] = {"member": self.members, "ok": ("member", self.ok)}
        for name, values in self.coordinates.items():
            dims = ("member", *(f"{name}_{k}" for k in range(values.ndim - 1)))
            # A swept quantity may have the name of a result, and a dataset has one name for each.
            taken = name in self.frames or name in self.summary
            labels[f"at_{name}" if taken else name] = (dims, values)
        if self.groups:
            names = np.asarray(self.groups)
            labels["group_name"] = (
                "member",
                names[self.members // (self.num_members // len(names))],
            )
        arrays: dict[str, Any] = {}
        axes: dict[str, np.ndarray] = {}
        for name, values in self.frames.items():
            # Arrays that were recorded at the same times share an axis: xarray then aligns them.
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
        return xarray.Dataset(arrays, labels, attrs={"title": self._title})

    def columns(self) -> dict[str, np.ndarray]:
        """A table as columns, `[members]`: swept numbers, `ok`, results that are scalars or vectors, and the
        last frames of scalar series.
        """
        return member_columns(self)

    def to_pandas(self, *, frames: bool | slice = False) -> Any:
        """A `pandas.DataFrame` with a row for each member, of what `columns` has; index `member`.

        **Arguments:**

        - `frames`: True, or a slice of them, for a row per member and time instead (index `member`, `time`),
          of scalars and vectors. What was not recorded at a time is missing.

        **Errors:** `MissingExtraError` without the extra `physkit[pandas]`; `ParameterError` where no frames
        were kept.
        """
        return members_dataframe(self, frames)

    def require_complete(self) -> "Ensemble":
        """This ensemble, if all of its members are there.

        **Errors:** `ParameterError` where members are missing or failed.
        """
        if not self.complete or not np.all(self.ok):
            raise ParameterError(
                f"{self.num_members - len(self.members)} of {self.num_members} members are missing, "
                f"{np.sum(~self.ok)} failed"
            )
        return self

    def _repr_html_(self) -> str:
        about = f"{len(self.members)} of {self.num_members} members, {self.seconds:.3g} s"
        about += f", in {self.path}" if self.path is not None else ""
        failed = self.failed
        body = f"{span('kind', 'Ensemble')} {span('about', about)} "
        if self.missing:
            body += span("wrong", f"{len(self.missing)} chunks missing ")
        body += span("wrong", f"{len(failed)} failed") if failed else ""
        # Only what is in memory: members stay in their files.
        rows = [(n, describe_shape(x), describe_values(x)) for n, x in self.coordinates.items()]
        body += table(("coordinate", "shape", "range"), rows) if rows else ""
        recorded = [*self.frames.items(), *self.summary.items()]
        rows = [(name, describe_shape(x)) for name, x in recorded]
        body += table(("recorded", "shape"), rows) if rows else ""
        body += tree(self.reduced, "reduced") if self.reduced else ""
        if failed:
            shown = [(f.member, f.step, f.reason) for f in failed[:_MAX_ROWS]]
            body += expandable("failed members", table(("member", "by step", "why"), shown))
        return fragment(body)

    def __repr__(self) -> str:
        lines = [f"Ensemble of {len(self.members)} of {self.num_members} members"]
        if self.path is not None:
            lines[0] += f" in {self.path}"
        if self.stopped_by:
            lines[0] += f", stopped ({self.stopped_by})"
        if self.missing:
            lines.append(f"  {len(self.missing)} chunks missing: {format_first_few(self.missing)}")
        for name, values in self.coordinates.items():
            if name == "group" and self.groups:
                lines.append(f"  over group: {', '.join(self.groups)}")
            elif values.ndim == 1 and len(values):
                distinct = len(np.unique(values))
                low, high = (1.0 * f.reduce(values) for f in (np.fmin, np.fmax))
                lines.append(f"  over {name}: {low:.6g} … {high:.6g}, {distinct} values")
            else:
                lines.append(f"  over {name}: {values.dtype}{list(values.shape)}")
        for name, values in (*self.frames.items(), *self.summary.items()):
            lines.append(f"  {name}: {values.dtype}{list(values.shape)}")
        failed = self.failed
        of = f", of the {int(np.sum(self.ok))} members that did not fail" if failed else ""
        for title, values in self.reduced.items():
            shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in jax.tree.leaves(values))
            lines.append(f"  {title}: {shapes}{of}")
        if retried := int(np.sum(self.attempts > 1)):
            lines.append(f"  {retried} members were computed more than once")
        if failed:
            lines.append(f"  {len(failed)} members failed:")
            lines += [f"    {f.member} by step {f.step}: {f.reason}" for f in failed[:_MAX_ROWS]]
            if len(failed) > _MAX_ROWS:
                lines.append(f"    … and {len(failed) - _MAX_ROWS} more")
        return printable("\n".join(lines))


def describe_fault(bits: int) -> str:
    """The most specific one of some fault bits, in words."""
    # The table is ordered from the most specific fault to the most general one.
    for fault, (_, advice) in ADVICE.items():
        if bits & int(fault):
            if fault is Fault.OVERFLOW:
                return "a cache overflowed and growing it did not help: the density rises without bound"
            return advice
    return ""


def _concatenate_column(
    chunks: list[StoredChunk], name: str, order: np.ndarray | slice
) -> np.ndarray:
    """An entry that chunks have for each of their members, in the order of the members."""
    if not chunks:
        return np.zeros(0, int)
    return np.concatenate([np.asarray(getattr(c, name)) for c in chunks])[order]


def _member_arrays(
    chunks: list[StoredChunk], kind: str, chunk_and_row: np.ndarray, ok: np.ndarray
) -> dict[str, MemberArray]:
    """The `frames` or the `summary` of all chunks."""
    if not chunks:
        return {}
    names = getattr(chunks[0], kind)
    return {
        n: MemberArray(n, [getattr(c, kind)[n] for c in chunks], chunk_and_row, ok) for n in names
    }


def _merge_times(chunks: list[StoredChunk], name: str, order: np.ndarray | slice) -> np.ndarray:
    """`[times]` if they are those of all members, else `[members, times]`."""
    times = [np.asarray(c.times[name]) for c in chunks]
    if all(t.ndim == 1 and np.array_equal(t, times[0]) for t in times):
        return times[0]
    rows = [
        np.broadcast_to(t if t.ndim > 1 else t[None], (len(c.members), t.shape[-1]))
        for t, c in zip(times, chunks, strict=True)
    ]
    return np.concatenate(rows)[order]


def format_first_few(numbers: Sequence[int], limit: int = 8) -> str:
    """At most `limit` numbers as text, and whether there are more."""
    shown = ", ".join(map(str, numbers[:limit]))
    return shown + (", …" if len(numbers) > limit else "")
