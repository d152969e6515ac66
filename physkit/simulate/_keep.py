"""What of a run outlives its process: checkpoints and files, and where they let it go on."""

import contextlib
import time
import warnings
from pathlib import Path
from typing import Any

from physkit.core import FileError, MismatchError, ParameterError
from physkit.storage import Checkpoints, FolderLock, Output, Restored, make_folder

from . import _crash as crashes
from ._carry import Carry
from ._devices import recorded_shapes
from ._simulation import Simulation


class Keeper:
    """The folders of one run, held by it alone from `with` to the end.

    - `output`: the files that frames go to, if any.
    - `carry`, `begin`: where the run goes on from, and the step that its steps count from.
    - `resumed`: the checkpoint that it goes on from, if any.
    """

    def __init__(self, sim: Simulation, carry: Carry, to: Any, checkpoint: Any, resume: bool):
        self._sim, self.carry, self.begin = sim, carry, int(carry.step)
        folder = None if to is None else Path(to)
        if checkpoint is None and folder is not None:
            checkpoint = folder / "checkpoints"
        if checkpoint is not None and not isinstance(checkpoint, Checkpoints):
            checkpoint = Checkpoints(checkpoint)
        if resume and checkpoint is None:
            raise ParameterError("resume=True needs checkpoint=… (or to=…) to go on from")
        self._folder, self._checkpoints, self._resume = folder, checkpoint, resume
        self._locks: list[FolderLock] = []
        self._saved_at = time.monotonic()
        self._saved_blocks = 0
        self.output: Output | None = None
        self.resumed: Restored | None = None
        self.last: Path | None = None

    def __enter__(self) -> "Keeper":
        try:
            folders = [self._folder, self._checkpoints and Path(self._checkpoints.folder)]
            for folder in dict.fromkeys(f for f in folders if f is not None):
                make_folder(folder)
                self._locks.append(FolderLock(folder))
            if self._checkpoints is not None:
                self._checkpoints.tidy()
                self._go_on()
            if self._folder is not None:
                self._open_output(self._folder)
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, kind, *_) -> None:
        try:
            if kind is not None and self.output is not None:
                with contextlib.suppress(FileError):  # the error that is on its way says more
                    self.output.commit()
        finally:
            self._release()

    def _release(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def _go_on(self) -> None:
        there = self._checkpoints.paths()
        if there and not self._resume:
            raise FileError(
                f"{self._checkpoints.folder} holds {len(there)} checkpoint(s) of a run: resume=True "
                "goes on with it; give a new one another folder"
            )
        template = self.carry.replace(fresh=False)
        found = self._checkpoints.restore(template, sim=self._sim) if there else None
        if found is None:
            return
        if found.begin != self.begin or (found.step - found.begin) % self._sim.block:
            raise MismatchError(
                f"{found.path} is of a run from step {found.begin}, at step {found.step}; this one "
                f"begins at step {self.begin} and goes in blocks of {self._sim.block}"
            )
        if found.changes:
            more = f" and {len(found.changes) - 5} more" if len(found.changes) > 5 else ""
            warnings.warn(
                f"{found.path}: the simulation has changed since: {'; '.join(found.changes[:5])}{more}. "
                "The run goes on with what it is now",
                stacklevel=4,
            )
        if found.surroundings:
            warnings.warn(
                f"{found.path} was written elsewhere: {'; '.join(found.surroundings)}. The run goes "
                "on, but need not equal an uninterrupted one to the last bit",
                stacklevel=4,
            )
        self.resumed, self.carry = found, found.tree

    def _open_output(self, folder: Path) -> None:
        sim, frames = self._sim, recorded_shapes(self._sim, self.carry)
        self.output = Output(
            folder, sim.observers, self.carry.state, frames, float(sim.t0), float(sim.dt)
        )
        if self.resumed is not None:
            self.output.rewind(self.resumed.outputs)
        else:
            self.output.create()

    # --- as the run goes ------------------------------------------------------------------------

    def blocks_left(self, done: int) -> int | None:
        """Blocks until the next checkpoint is due, where they are counted."""
        every = None if self._checkpoints is None else self._checkpoints.blocks
        return None if every is None else max(1, every - (done - self._saved_blocks))

    def look(self, carry: Carry, done: int) -> None:
        """After a good chunk: files and checkpoint, where they are due."""
        if self._checkpoints is not None:
            every = self._checkpoints.blocks
            late = time.monotonic() - self._saved_at >= self._checkpoints.seconds
            if done - self._saved_blocks >= every if every is not None else late:
                self.save(carry, done)
                return
        if self.output is not None:
            self.output.commit_if_due()

    def save(self, carry: Carry, done: int) -> None:
        """Write everything now."""
        lengths = None
        if self.output is not None:
            lengths = self.output.commit()
        if self._checkpoints is not None:
            self.last = self._checkpoints.save(
                carry, int(carry.step), sim=self._sim, begin=self.begin, outputs=lengths
            )
        self._saved_at, self._saved_blocks = time.monotonic(), done
        if self._home is not None:
            crashes.forget(self._home)

    def crash(self, error: Exception, carry: Carry, done: int, steps: int) -> None:
        """Leave on disk what `diagnose` needs: the last good state, and what happened after it."""
        if self._home is None:
            return
        with contextlib.suppress(FileError):  # the error that is on its way says more
            self.save(carry, done)
            crashes.record(self._home, error, int(carry.step), steps)
            error.add_note(
                f"The last good state is in {self.last}: pk.diagnose(sim, state, folder={str(self._home)!r})"
            )

    @property
    def _home(self) -> Path | None:
        """Where everything about this run is, if anywhere."""
        beside = None if self._checkpoints is None else Path(self._checkpoints.folder)
        return beside if self._folder is None else self._folder
