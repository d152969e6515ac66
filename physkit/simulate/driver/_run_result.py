"""`Run`, the result of `run`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from physkit.core import (
    EXIT_INTERRUPTED,
    EXIT_TRY_AGAIN,
    ComponentError,
    FileError,
    ParameterError,
    PyTree,
    State,
    explain_attribute,
)
from physkit.html import fragment, series_table, span, tree
from physkit.storage import (
    LabeledArray,
    Recording,
    as_names,
    named_leaves,
    open as open_file,
    to_dataframe,
    to_dataset,
)

from ..distributed._sharded_carry import ShardedCarry
from ..loop._carry import Carry


@dataclasses.dataclass(frozen=True)
class Growth:
    """A cache that was too small: at which step, and what was grown."""

    step: int
    what: str


@dataclasses.dataclass(frozen=True)
class Run:
    """The result of `run`, on the host.

    - `carry` continues the run, `state` is its state.
    - `frames`, `times`: recorded NumPy arrays and their times by name; `run["energy"]` for short.
    - `summary`: results of accumulating observers by name.
    - `growths`: caches that were grown on the way, each a replayed chunk and a compilation.
    - `stopped_by`: None, or the signal or limit that ended it early.
    - `to`: the folder that the frames went to, if any; `recording` reads them.
    - `checkpoint`: the last one written; `resumed_from`: the step that the run was resumed at.
    """

    carry: Carry | ShardedCarry
    frames: dict[str, PyTree]
    times: dict[str, np.ndarray]
    summary: dict[str, PyTree]
    steps: int
    seconds: float
    compile_seconds: float
    compilations: int
    growths: tuple[Growth, ...] = ()
    stopped_by: str | None = None
    to: Path | None = None
    checkpoint: Path | None = None
    resumed_from: int | None = None

    @property
    def exit_status(self) -> int:
        """For `sys.exit`: 0 when all is done, 130 after Ctrl-C, 75 when a scheduler should requeue."""
        if self.stopped_by is None:
            return 0
        return EXIT_INTERRUPTED if self.stopped_by == "SIGINT" else EXIT_TRY_AGAIN

    @property
    def recording(self) -> Recording:
        """The frames in the run's files, all of them, also from before it was resumed.

        **Errors:** `FileError` when the run has none.
        """
        if self.to is None:
            raise FileError("this run has no files: its frames are in memory, as run.frames")
        return open_file(self.to)

    @property
    def state(self) -> State:
        """The last state."""
        return self.carry.state

    @property
    def steps_per_second(self) -> float:
        """Speed without compilation."""
        return self.steps / max(self.seconds - self.compile_seconds, 1e-9)

    def to_xarray(self) -> Any:
        """The frames as a labeled `xarray.Dataset`, in memory or, where there are, from the run's files.

        Quantities of one interval share the axis `time`; others have `time_1`, `time_2` … Files know the names
        of all axes and the coordinates of fields; axes in memory are numbered.

        **Errors:** `MissingExtraError` without the extra `physkit[xarray]`.
        """
        if self.to is not None:
            return self.recording.to_xarray()
        return to_dataset(self._labeled(self.frames), {})

    def to_pandas(self, names: str | Sequence[str] | None = None) -> Any:
        """A `pandas.DataFrame` with the index `time`, and a column for each number: `energy`, `momentum[0]` …

        Quantities of different intervals are joined; what was not recorded at a time is missing there.

        **Arguments:** `names`: which quantities; all scalars and vectors if left out.

        **Errors:** `ParameterError` where one that is named is larger than a vector; `MissingExtraError`
        without the extra `physkit[pandas]`.
        """
        if self.to is not None:
            return self.recording.to_pandas(names)
        asked = as_names(self.frames if names is None else names)
        if unknown := [name for name in asked if name not in self.frames]:
            raise ParameterError(
                f"no frames of {', '.join(unknown)}; available: {', '.join(self.frames)}"
            )
        chosen = {name: self.frames[name] for name in asked}
        return to_dataframe(self._labeled(chosen), names is None)

    def _labeled(self, frames: dict[str, PyTree]) -> list[LabeledArray]:
        """Every array of the frames, with its times."""
        return [
            LabeledArray(
                leaf_name,
                np.asarray(leaf),
                ("time", *(f"axis_{k}" for k in range(np.ndim(leaf) - 1))),
                self.times[name],
            )
            for name, frame in frames.items()
            for leaf_name, leaf in named_leaves(name, frame)
        ]

    def __getitem__(self, name: str) -> PyTree:
        for recorded in (self.frames, self.summary):
            if name in recorded:
                return recorded[name]
        if self.to is not None:
            return self.recording[name]
        raise ComponentError(
            f"nothing recorded as {name!r}; available: {sorted(self.frames | self.summary)}"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        recorded = self.frames | self.summary
        advice = f"; it is run[{name!r}]" if name in recorded else None
        raise AttributeError(
            f"Run has no {name!r}{advice}" if advice else explain_attribute(self, name)
        )

    def _repr_html_(self) -> str:
        title = f"Run of {self.steps} steps to step {int(self.carry.step)}"
        notes = [
            f"{self.seconds:.3g} s, {self.steps_per_second:.4g} steps/s, "
            f"{self.compilations} compilation(s) {self.compile_seconds:.1f} s"
        ]
        if self.resumed_from is not None:
            notes.append(f"resumed at step {self.resumed_from}")
        notes += [f"grew at step {g.step}: {g.what}" for g in self.growths]
        if self.to is not None:
            notes.append(f"frames in {self.to}")
        body = span("kind", title)
        if self.stopped_by is not None:
            body += " " + span("wrong", f"stopped by {self.stopped_by}")
        body += "".join(f'<div class="leaf">{span("about", note)}</div>' for note in notes)
        if self.frames:
            body += series_table(self.frames, self.times)
        if self.summary:
            body += tree(self.summary, "summary", open_depth=1)
        return fragment(body + tree(self.state, "state", open_depth=0))

    def __repr__(self) -> str:
        size = sum(x.nbytes for x in jax.tree.leaves(self.frames))
        lines = [
            f"Run of {self.steps} steps to step {int(self.carry.step)}"
            + (f", stopped by {self.stopped_by}" if self.stopped_by else ""),
            f"  {self.seconds:.1f} s, {self.steps_per_second:.4g} steps/s, "
            f"{self.compilations} compilation(s) {self.compile_seconds:.1f} s",
        ]
        for name, frame in self.frames.items():
            shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in jax.tree.leaves(frame))
            lines.append(f"  {name}: {shapes}")
        if self.summary:
            lines.append(f"  summary: {', '.join(self.summary)}")
        if self.resumed_from is not None:
            lines.append(f"  resumed at step {self.resumed_from}")
        lines.append(f"  frames in {self.to}" if self.to else f"  {size / 2**20:.3g} MiB of frames")
        lines += [f"  grew at step {g.step}: {g.what}" for g in self.growths]
        return "\n".join(lines)
