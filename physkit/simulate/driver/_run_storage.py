"""What of a run outlives its process: checkpoints and files, and where they let it go on."""

import contextlib
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from physkit.core import FileError, MismatchError, ParameterError, PyTree
from physkit.storage import Checkpoints, FolderLock, Output, RestoredCheckpoint, make_folder

from ..distributed._carry_template import carry_template
from ..distributed._consensus import broadcast_first
from ..distributed._domain import DistributedDomain
from ..distributed._sharded_carry import ShardedCarry
from ..distributed._whole_domain import recorded_shapes
from ..loop._carry import Carry
from ._crash_record import remove_crash_record, write_crash_record
from ._single_device import SingleDevice

Devices: TypeAlias = tuple[int, ...]


class RunStorage:
    """The folders of one run, locked by it from `with` to the end.

    - `output`: the files that frames go to, if any.
    - `carry`, `begin`: where the run goes on from, and the step that its steps count from.
    - `resumed`: the checkpoint that it goes on from, if any.
    """

    def __init__(
        self,
        host: SingleDevice | DistributedDomain,
        carry: Carry | ShardedCarry,
        to: str | Path | None,
        checkpoint: str | Path | Checkpoints | None,
        resume: bool,
    ):
        self._host, self._sim, self._process_group = host, host.sim, host.process_group
        self.carry, self.begin = carry, int(carry.step)
        self._devices: Devices = getattr(carry, "devices", ())
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
                if self._process_group.is_first:
                    self._locks.append(FolderLock(folder))
            if self._checkpoints is not None:
                if self._process_group.is_first:
                    self._checkpoints.remove_leftovers()
                self._process_group.all_gather_object(None, "folders are ready")
                self._restore(self._checkpoints)
            if self._folder is not None:
                self._open_output(self._folder)
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None and self.output is not None:
                with contextlib.suppress(FileError):  # the error that is on its way says more
                    self.output.commit()
            if kind is None:
                self._process_group.all_gather_object(None, "the end of a run")
        finally:
            self._release()

    def _release(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def _restore(self, checkpoints: Checkpoints) -> None:
        """Go on from the newest sound checkpoint, where there is one."""
        count = broadcast_first(
            self._process_group, len(checkpoints.paths()), "checkpoints there are"
        )
        if count and not self._resume:
            raise FileError(
                f"{checkpoints.folder} holds {count} checkpoint(s) of a run: resume=True "
                "goes on with it; give a new one another folder"
            )
        if not count:
            return

        def make_template(devices: Devices, shapes: dict[str, tuple[int, ...]]) -> PyTree:
            return carry_template(self._sim, self.carry, self._devices, devices, shapes)

        found = checkpoints.restore(
            None, sim=self._sim, make_template=make_template, process_group=self._process_group
        )
        if found is None:
            return
        period = self._sim.observation_period
        if found.begin != self.begin or (found.step - found.begin) % period:
            raise MismatchError(
                f"{found.path} is of a run from step {found.begin}, at step {found.step}; this one "
                f"begins at step {self.begin} and goes in blocks of {period}"
            )
        if self._process_group.is_first:
            for difference in self._differences(found):
                warnings.warn(difference, stacklevel=4)
        self.resumed, self.carry = found, self._host.as_carry(found.tree, None)

    def _differences(self, found: RestoredCheckpoint) -> Iterator[str]:
        """Why the run may not equal an uninterrupted one to the last bit."""
        if found.devices != self._devices:
            yield (
                f"{found.path} was written over {_over(found.devices)}, the run goes on over "
                f"{_over(self._devices)}: caches are built anew, and results agree with those of an "
                "uninterrupted run to rounding, not to the last bit"
            )
        if changes := found.simulation_changes:
            more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
            yield (
                f"{found.path}: the simulation has changed since: {'; '.join(changes[:5])}{more}. "
                "The run goes on with what it is now"
            )
        if found.environment_changes:
            yield (
                f"{found.path} was written elsewhere: {'; '.join(found.environment_changes)}. The run goes "
                "on, but need not equal an uninterrupted one to the last bit"
            )

    def _open_output(self, folder: Path) -> None:
        sim, frames = self._sim, recorded_shapes(self._sim, self.carry)
        several = self._process_group.process_count > 1
        sharding = self._host.keep_frames_local(self.carry) if several else None
        self.output = Output(
            folder,
            sim.observers,
            self.carry.state,
            frames,
            float(sim.t0),
            float(sim.dt),
            sharding=sharding,
        )
        elsewhere = Path(self._checkpoints.folder).resolve().parent != folder.resolve()
        empty = broadcast_first(
            self._process_group, not self.output.exists, "whether there are files"
        )
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
        """After a good chunk: write files and a checkpoint, where they are due."""
        if self._checkpoints is not None:
            every = self._checkpoints.blocks
            late = time.monotonic() - self._saved_at >= self._checkpoints.seconds
            if every is None:
                late = broadcast_first(self._process_group, late, "whether a checkpoint is due")
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
                process_group=self._process_group,
            )
        self._saved_at, self._saved_blocks = time.monotonic(), done
        if self._home is not None and self._process_group.is_first:
            remove_crash_record(self._home)

    def crash(self, error: Exception, carry: Carry | ShardedCarry, done: int, steps: int) -> None:
        """Leave on disk what `diagnose` needs: the last good state, and what happened after it."""
        if self._home is None:
            return
        with contextlib.suppress(FileError):  # the error that is on its way says more
            self.save(carry, done)
            if self._process_group.is_first:
                write_crash_record(self._home, error, int(carry.step), steps)
            error.add_note(
                f"The last good state is in {self.last}: pk.diagnose(sim, state, folder={str(self._home)!r})"
            )

    @property
    def _home(self) -> Path | None:
        """The folder of everything about this run, if there is one."""
        beside = None if self._checkpoints is None else Path(self._checkpoints.folder)
        return beside if self._folder is None else self._folder


def _over(devices: Devices) -> str:
    return " × ".join(map(str, devices)) + " devices" if devices else "one device"
