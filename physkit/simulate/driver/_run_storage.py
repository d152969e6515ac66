"""What of a run outlives its process: checkpoints and files, and where they let it go on."""

import contextlib
import time
import warnings
from pathlib import Path
from typing import Any

from physkit.core import FileError, MismatchError, ParameterError
from physkit.storage import Checkpoints, FolderLock, Output, RestoredCheckpoint, make_folder

from ..distributed._carry_template import carry_template
from ..distributed._consensus import broadcast_first
from ..distributed._domain import DistributedDomain
from ..distributed._sharded_carry import ShardedCarry
from ..distributed._whole_domain import recorded_shapes
from ..loop._carry import Carry
from . import _crash_record as crashes
from ._single_device import SingleDevice


class RunStorage:
    """The folders of one run, held by it alone from `with` to the end.

    - `output`: the files that frames go to, if any.
    - `carry`, `begin`: where the run goes on from, and the step that its steps count from.
    - `resumed`: the checkpoint that it goes on from, if any.
    """

    def __init__(
        self,
        host: SingleDevice | DistributedDomain,
        carry: Carry | ShardedCarry,
        to: Any,
        checkpoint: Any,
        resume: bool,
    ):
        self._host, self._sim, self._job = host, host.sim, host.job
        self.carry, self.begin = carry, int(carry.step)
        self._devices: tuple[int, ...] = getattr(carry, "devices", ())
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
        self.resumed: RestoredCheckpoint | None = None
        self.last: Path | None = None

    def __enter__(self) -> "RunStorage":
        try:
            folders = [self._folder, self._checkpoints and Path(self._checkpoints.folder)]
            for folder in dict.fromkeys(f for f in folders if f is not None):
                make_folder(folder)
                if self._job.is_first:
                    self._locks.append(FolderLock(folder))
            if self._checkpoints is not None:
                if self._job.is_first:
                    self._checkpoints.remove_leftovers()
                self._job.all_gather_object(None, "folders are ready")
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
            if kind is None:
                self._job.all_gather_object(None, "the end of a run")
        finally:
            self._release()

    def _release(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def _go_on(self) -> None:
        there = broadcast_first(self._job, len(self._checkpoints.paths()), "checkpoints there are")
        if there and not self._resume:
            raise FileError(
                f"{self._checkpoints.folder} holds {there} checkpoint(s) of a run: resume=True "
                "goes on with it; give a new one another folder"
            )
        like = lambda devices, shapes: carry_template(
            self._sim, self.carry, self._devices, devices, shapes
        )
        found = (
            self._checkpoints.restore(None, sim=self._sim, make_template=like, job=self._job)
            if there
            else None
        )
        if found is None:
            return
        if found.begin != self.begin or (found.step - found.begin) % self._sim.observation_period:
            raise MismatchError(
                f"{found.path} is of a run from step {found.begin}, at step {found.step}; this one "
                f"begins at step {self.begin} and goes in blocks of {self._sim.observation_period}"
            )
        if found.devices != self._devices and self._job.is_first:
            warnings.warn(
                f"{found.path} was written over {_over(found.devices)}, the run goes on over "
                f"{_over(self._devices)}: caches are built anew, and results agree with those of an "
                "uninterrupted run to rounding, not to the last bit",
                stacklevel=4,
            )
        if found.simulation_changes and self._job.is_first:
            more = (
                f" and {len(found.simulation_changes) - 5} more"
                if len(found.simulation_changes) > 5
                else ""
            )
            warnings.warn(
                f"{found.path}: the simulation has changed since: {'; '.join(found.simulation_changes[:5])}{more}. "
                "The run goes on with what it is now",
                stacklevel=4,
            )
        if found.environment_changes and self._job.is_first:
            warnings.warn(
                f"{found.path} was written elsewhere: {'; '.join(found.environment_changes)}. The run goes "
                "on, but need not equal an uninterrupted one to the last bit",
                stacklevel=4,
            )
        self.resumed, self.carry = found, self._host.as_carry(found.tree, None)

    def _open_output(self, folder: Path) -> None:
        sim, frames = self._sim, recorded_shapes(self._sim, self.carry)
        cutting = self._host.keep_frames_local(self.carry) if self._job.process_count > 1 else None
        self.output = Output(
            folder,
            sim.observers,
            self.carry.state,
            frames,
            float(sim.t0),
            float(sim.dt),
            sharding=cutting,
        )
        elsewhere = Path(self._checkpoints.folder).resolve().parent != folder.resolve()
        empty = broadcast_first(self._job, not self.output.exists, "whether there are files")
        if self.resumed is None or (elsewhere and empty):
            self.output.create()  # also where frames go on in a folder of their own
        else:
            self.output.rewind(self.resumed.outputs)

    # --- as the run goes ------------------------------------------------------------------------

    def blocks_to_checkpoint(self, done: int) -> int | None:
        """Blocks until the next checkpoint is due, where they are counted."""
        every = None if self._checkpoints is None else self._checkpoints.blocks
        return None if every is None else max(1, every - (done - self._saved_blocks))

    def save_if_due(self, carry: Carry | ShardedCarry, done: int) -> None:
        """After a good chunk: files and checkpoint, where they are due."""
        if self._checkpoints is not None:
            every = self._checkpoints.blocks
            late = time.monotonic() - self._saved_at >= self._checkpoints.seconds
            if every is None:
                late = broadcast_first(self._job, late, "whether a checkpoint is due")
            if done - self._saved_blocks >= every if every is not None else late:
                self.save(carry, done)
                return
        if self.output is not None:
            self.output.commit_if_due()

    def save(self, carry: Carry | ShardedCarry, done: int) -> None:
        """Write everything now."""
        lengths = None
        if self.output is not None:
            lengths = self.output.commit_everywhere()
        if self._checkpoints is not None:
            self.last = self._checkpoints.save(
                carry,
                int(carry.step),
                sim=self._sim,
                begin=self.begin,
                outputs=lengths,
                devices=self._devices,
                job=self._job,
            )
        self._saved_at, self._saved_blocks = time.monotonic(), done
        if self._home is not None and self._job.is_first:
            crashes.remove_crash_record(self._home)

    def crash(self, error: Exception, carry: Carry | ShardedCarry, done: int, steps: int) -> None:
        """Leave on disk what `diagnose` needs: the last good state, and what happened after it."""
        if self._home is None:
            return
        with contextlib.suppress(FileError):  # the error that is on its way says more
            self.save(carry, done)
            if self._job.is_first:
                crashes.write_crash_record(self._home, error, int(carry.step), steps)
            error.add_note(
                f"The last good state is in {self.last}: pk.diagnose(sim, state, folder={str(self._home)!r})"
            )

    @property
    def _home(self) -> Path | None:
        """Where everything about this run is, if anywhere."""
        beside = None if self._checkpoints is None else Path(self._checkpoints.folder)
        return beside if self._folder is None else self._folder


def _over(devices: tuple[int, ...]) -> str:
    return " × ".join(map(str, devices)) + " devices" if devices else "one device"
