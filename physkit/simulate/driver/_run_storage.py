"""What a run keeps on disk: checkpoints and files of frames, and where a later run continues from them."""

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from physkit.core import FileError, MismatchError, ParameterError, PyTree, State, warn
from physkit.storage import (
    Checkpoints,
    FolderLock,
    Identity,
    Output,
    RestoredCheckpoint,
    compare_identities,
    make_folder,
    remove_temporaries,
    to_path,
)

from ..distributed._carry_template import carry_template
from ..distributed._consensus import broadcast_first
from ..distributed._domain import DistributedDomain
from ..distributed._sharded_carry import ShardedCarry
from ..distributed._whole_domain import recorded_shapes
from ..loop._carry import Carry
from ._crash_record import remove_crash_record, write_crash_record
from ._run_identity import run_identity
from ._single_device import SingleDevice

Devices: TypeAlias = tuple[int, ...]
Resume: TypeAlias = bool | Literal["changed"]


class RunStorage:
    """The folders of one run, locked from `with` to the end.

    - `output`: the files that frames go to, if any.
    - `carry`, `begin`: what the run continues from, and the step that its steps count from.
    - `resumed`: the checkpoint that it continues from, if any.
    - `last_checkpoint`: the one written last, if any.
    """

    def __init__(
        self,
        host: SingleDevice | DistributedDomain,
        carry: Carry | ShardedCarry,
        to: str | Path | None,
        checkpoint: str | Path | Checkpoints | None,
        resume: Resume,
        start: State | Carry | ShardedCarry,
    ):
        self._host, self._sim, self._process_group = host, host.sim, host.process_group
        self.carry, self.begin = carry, int(carry.step)
        self._start, self._first_carry = start, carry
        self._identity: Identity | None = None  # of this run; made when it is first needed
        self._devices: Devices = getattr(carry, "devices", ())
        folder = None if to is None else to_path(to)
        if checkpoint is None and folder is not None:
            checkpoint = folder / "checkpoints"
        if checkpoint is not None and not isinstance(checkpoint, Checkpoints):
            checkpoint = Checkpoints(checkpoint)
        if resume not in (True, False, "changed"):
            raise ParameterError(
                f'resume is True, False or "changed" (go on although something differs); got {resume!r}'
            )
        if resume and checkpoint is None:
            raise ParameterError("resume=True needs checkpoint=… (or to=…) to continue from")
        self._folder, self._checkpoints, self._resume = folder, checkpoint, resume
        self._locks: list[FolderLock] = []
        self._saved_at = time.monotonic()
        self._saved_blocks = 0
        self.output: Output | None = None
        self.resumed: RestoredCheckpoint | None = None
        self.last_checkpoint: Path | None = None

    def __enter__(self) -> "RunStorage":
        try:
            # Each folder once, also where `to` and `checkpoint` are the same: its lock cannot be taken twice.
            folders = [self._folder, self._checkpoints and Path(self._checkpoints.folder)]
            for folder in dict.fromkeys(f for f in folders if f is not None):
                make_folder(folder)
                # Process 0 locks for all; another process cannot take what its own group has locked.
                if self._process_group.is_first:
                    self._locks.append(FolderLock(folder))
                    remove_temporaries(folder)
            if self._checkpoints is not None:
                if self._process_group.is_first:
                    self._checkpoints.remove_leftovers()
                # A barrier: nobody reads checkpoints while process 0 removes leftovers of a killed run.
                self._process_group.all_gather_object(None, "folders are ready")
                self._restore(self._checkpoints)
            if self._folder is not None:
                self._open_output(self._folder)
        # Also KeyboardInterrupt: `__exit__` is not called for an error raised in here.
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None and self.output is not None:
                # `commit`, not `commit_everywhere`: after an error the other processes may not come here.
                # Its own error is dropped, since the one that is being raised says more.
                with contextlib.suppress(FileError):
                    self.output.commit()
            if kind is None:
                # A barrier: the locks may go only when all processes have written.
                self._process_group.all_gather_object(None, "the end of a run")
        finally:
            self._release()

    def _release(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def _restore(self, checkpoints: Checkpoints) -> None:
        """Continue from the newest sound checkpoint, if there is one."""
        # Counted by process 0 for all: on a network file system others may not see the files yet.
        count = broadcast_first(
            self._process_group, len(checkpoints.paths()), "checkpoints there are"
        )
        if count and not self._resume:
            raise FileError(
                f"{checkpoints.folder} holds {count} checkpoint(s) of a run: resume=True "
                "continues it; give a new one another folder"
            )
        if not count:
            return

        def make_template(devices: Devices, shapes: dict[str, tuple[int, ...]]) -> PyTree:
            return carry_template(self._sim, self.carry, self._devices, devices, shapes)

        restored = checkpoints.restore(
            None, sim=self._sim, make_template=make_template, process_group=self._process_group
        )
        if restored is None:
            return
        period, done = self._sim.observation_period, restored.step - restored.begin
        if restored.begin != self.begin or done % period:
            raise MismatchError(
                f"{restored.path} is of a run from step {restored.begin}, at step {restored.step}; this one "
                f"begins at step {self.begin} and goes in blocks of {period}"
            )
        self._identity = run_identity(self._host, self._start, self._first_carry, restored.identity)
        differences = list(self._differences(restored, self._identity))
        if self._process_group.is_first:
            for difference in differences:
                warn(difference)
        # The checkpoint may be of other devices than the run: `as_carry` reshards it.
        self.resumed, self.carry = restored, self._host.as_carry(restored.tree, None)
        if differences and self._resume == "changed":
            # Lists of another cutoff, forces of other parameters: none of them is that of what is here now.
            # So is the key, of which noise is drawn.
            self.carry = self._host.rebuild_caches(
                self.carry.replace(key=self._first_carry.carry.key)
                if isinstance(self._first_carry, ShardedCarry)
                else self.carry.replace(key=self._first_carry.key)
            )

    def _differences(self, restored: RestoredCheckpoint, here: Identity) -> Iterator[str]:
        """Why the run may not equal an uninterrupted one to the last bit.

        **Errors:** `MismatchError` where it cannot, since it is another run.
        """
        if restored.identity is None:
            yield (
                f"{restored.path} was written by physkit {restored.version}, which did not note the start, "
                "the key and the code of a run: whether they are those of this one cannot be checked"
            )
            if changes := restored.simulation_changes:
                yield self._went_on(restored, list(changes))
        else:
            yield from self._identity_differences(restored, restored.identity, here)
        if restored.devices != self._devices:
            yield (
                f"{restored.path} was written over {_device_grid(restored.devices)}, the run goes on over "
                f"{_device_grid(self._devices)}: caches are built anew, and results agree with those of an "
                "uninterrupted run to rounding, not to the last bit"
            )
        if restored.environment_changes:
            yield (
                f"{restored.path} was written elsewhere: {'; '.join(restored.environment_changes)}. The run "
                "goes on, but need not equal an uninterrupted one to the last bit"
            )

    def _identity_differences(
        self, restored: RestoredCheckpoint, there: Identity, here: Identity
    ) -> Iterator[str]:
        """How the run differs from that of a checkpoint.

        **Errors:** `MismatchError`, unless it is to go on although something has changed.
        """
        changes = compare_identities(here, there)
        guards = changes.sections.get("the guards", [])  # they change no number
        lines = changes.describe()
        harmless = len(guards) > 0 and set(changes.sections) == {"the guards"} and not changes.code
        if lines and self._resume != "changed" and not harmless:
            raise MismatchError(
                "\n  ".join(
                    [
                        f"{restored.path} is of another run. What differs:",
                        *lines,
                        "To begin this run, give it another folder, or remove this one. To go on from step "
                        f'{restored.step} of the old one with what is here now: resume="changed", or '
                        "--changed of `physkit run`",
                    ]
                )
            )
        if lines:
            yield self._went_on(restored, lines)
        if changes.rounded:
            yield (
                f"{restored.path}: {', '.join(changes.rounded[:5])} differ from those here, by no more than "
                "rounding; the run goes on from the checkpoint"
            )
        if changes.unchecked:
            yield (
                f"{restored.path}: what cannot be compared with this run: {'; '.join(changes.unchecked)}"
            )

    def _went_on(self, restored: RestoredCheckpoint, changes: list[str]) -> str:
        more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
        text = (
            f"{restored.path}: the simulation has changed since: {'; '.join(changes[:5])}{more}. "
            "The run goes on with what it is now"
        )
        if not any(re.search(r"\.(dt|t0)\b", line) for line in changes):
            return text
        time = float(self._sim.t0) + restored.step * float(self._sim.dt)
        return (
            f"{text}: at t = t0 + n·dt = {time:.6g}, which may not be the time that it had come to. For time "
            "to go on, start a run from the state of the checkpoint at Simulation(…, t0=…) of that time"
        )

    def _open_output(self, folder: Path) -> None:
        sim, frames = self._sim, recorded_shapes(self._sim, self.carry)
        # Of several processes each writes the frames of its own devices; none could hold them all.
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
        has_other_parent = Path(self._checkpoints.folder).resolve().parent != folder.resolve()
        has_no_files = broadcast_first(
            self._process_group, not self.output.exists, "whether there are files"
        )
        # A resumed run may also begin new files, in a folder that is not that of its checkpoints.
        if self.resumed is None or (has_other_parent and has_no_files):
            self.output.create()
        else:
            self.output.rewind(self.resumed.outputs)

    # --- as the run goes ------------------------------------------------------------------------

    def blocks_to_checkpoint(self, done: int) -> int | None:
        """Blocks until the next checkpoint is due, where they are counted: from the beginning of the run."""
        interval = None if self._checkpoints is None else self._checkpoints.blocks
        return None if interval is None else interval - done % interval

    def save_if_due(self, carry: Carry | ShardedCarry, done: int) -> None:
        """After a good chunk: write files and a checkpoint, where they are due."""
        if self._checkpoints is not None:
            interval = self._checkpoints.blocks
            if interval is not None:
                is_due = done // interval > self._saved_blocks // interval
            else:
                # Clocks differ, but `save` is collective: process 0 decides for all.
                is_due = time.monotonic() - self._saved_at >= self._checkpoints.seconds
                is_due = broadcast_first(self._process_group, is_due, "whether a checkpoint is due")
            if is_due:
                self.save(carry, done)
                return
        if self.output is not None:
            self.output.commit_if_due()

    def save(self, carry: Carry | ShardedCarry, done: int) -> None:
        """Write everything now."""
        # Frames first: the checkpoint names the lengths of the files. A kill between the two leaves longer
        # files, which resuming cuts back to those lengths.
        lengths = None
        if self.output is not None:
            lengths = self.output.commit_everywhere()
        if self._checkpoints is not None:
            if self._identity is None:
                self._identity = run_identity(self._host, self._start, self._first_carry)
            self.last_checkpoint = self._checkpoints.save(
                carry,
                int(carry.step),
                sim=self._sim,
                begin=self.begin,
                outputs=lengths,
                devices=self._devices,
                process_group=self._process_group,
                identity=self._identity,
            )
        self._saved_at, self._saved_blocks = time.monotonic(), done
        if self._record_folder is not None and self._process_group.is_first:
            # The run has passed the place of an earlier crash. `crash` writes its record after this.
            remove_crash_record(self._record_folder)

    def crash(self, error: Exception, carry: Carry | ShardedCarry, done: int, steps: int) -> None:
        """Leave on disk what `diagnose` needs: the last good state, and what happened after it."""
        if self._record_folder is None:
            return
        # Saving may fail, too (the disk is full, say), but the error that is being raised says more.
        with contextlib.suppress(FileError):
            self.save(carry, done)
            if self._process_group.is_first:
                write_crash_record(self._record_folder, error, int(carry.step), steps)
            error.add_note(
                f"The last good state is in {self.last_checkpoint}: "
                f"pk.diagnose(sim, state, folder={str(self._record_folder)!r})"
            )

    @property
    def _record_folder(self) -> Path | None:
        """The folder for the record of a crash: that of the frames, else that of the checkpoints."""
        checkpoints = None if self._checkpoints is None else Path(self._checkpoints.folder)
        return checkpoints if self._folder is None else self._folder


def _device_grid(devices: Devices) -> str:
    return " × ".join(map(str, devices)) + " devices" if devices else "one device"
