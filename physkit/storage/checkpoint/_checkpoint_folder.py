"""A folder with the last few checkpoints of a run, of which the newest sound one is restored."""

import dataclasses
import secrets
from pathlib import Path
from typing import Any

from physkit.core import DamagedFileError, FileError, PyTree, explain_class
from physkit.parallel import ProcessGroup, single_process

from .._atomic import make_folder, remove_temporaries, to_path
from .._untrusted_hdf5 import set_aside
from ._checkpoint import MakeTemplate, RestoredCheckpoint, load_checkpoint, save_checkpoint
from ._checkpoint_shards import part_name, remove_orphaned_parts
from ._identity import Identity


@explain_class
@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """A folder of checkpoints, and how often `run` writes one.

    **Arguments:**

    - `folder`: of the files; made if it is not there.
    - `seconds`: wall-clock time between two checkpoints.
    - `blocks`: number of the longest observer intervals between two of them; overrides `seconds`.
    - `keep`: number of checkpoints that are kept, the newest ones.

    **Good values:** `seconds` as much work as you accept to lose in a kill; `keep=3`, so that one damaged file
    costs one checkpoint.
    """

    folder: str | Path
    seconds: float = 300.0
    blocks: int | None = None
    keep: int = 3

    def __post_init__(self):
        object.__setattr__(self, "folder", to_path(self.folder))  # the dataclass is frozen
        if self.keep < 1 or self.seconds < 0 or (self.blocks is not None and self.blocks < 1):
            raise FileError(f"checkpoints need keep, blocks ≥ 1 and seconds ≥ 0; got {self}")

    def paths(self) -> list[Path]:
        """The checkpoints in the folder, newest first."""
        # Names have steps of fixed width: sorted by name they are sorted by step.
        return sorted(Path(self.folder).glob("checkpoint-*.h5"), reverse=True)

    def save(
        self,
        tree: PyTree,
        step: int,
        *,
        sim: PyTree = None,
        begin: int = 0,
        outputs: dict[str, Any] | None = None,
        devices: tuple[int, ...] = (),
        process_group: ProcessGroup | None = None,
        identity: Identity | None = None,
    ) -> Path:
        """Write one more checkpoint, then remove the oldest beyond `keep`.

        In a job of several processes each writes the rows of its own devices; the first process then writes the
        file that names all others. All processes must call it.

        **Arguments:** as of `save_checkpoint`; `process_group`: the processes of the run, one if left out.

        **Errors:** `DiskFullError`, `FileError`.
        """
        folder = Path(self.folder)
        process_group = single_process() if process_group is None else process_group
        make_folder(folder)
        path = folder / f"checkpoint-{step:015d}.h5"
        metadata = {
            "step": step, "sim": sim, "begin": begin, "outputs": outputs, "devices": devices,
            "identity": identity,
        }  # fmt: skip
        if process_group.process_count > 1:
            set_id = process_group.all_gather_object(
                secrets.token_hex(8), "a set of checkpoint files"
            )[0]
            names = [
                part_name(step, k, process_group.process_count)
                for k in range(1, process_group.process_count)
            ]
            if not process_group.is_first:
                part = folder / names[process_group.process_index - 1]
                save_checkpoint(part, tree, **metadata, set_id=set_id)
            # Barrier. A checkpoint exists once its first file does: the others must be there before.
            process_group.all_gather_object(None, "checkpoint files written")
            metadata |= {"set_id": set_id, "parts": names}
        if process_group.is_first:
            save_checkpoint(path, tree, **metadata)
            # Only after the new one is complete: a kill at any moment leaves a checkpoint.
            for old in self.paths()[self.keep :]:
                old.unlink(missing_ok=True)
            remove_orphaned_parts(folder)
        # Barrier. Nobody goes on, and perhaps ends, before the checkpoint is there.
        process_group.all_gather_object(None, "checkpoint written")
        return path

    def restore(
        self,
        template: PyTree,
        *,
        sim: PyTree = None,
        make_template: MakeTemplate | None = None,
        process_group: ProcessGroup | None = None,
    ) -> RestoredCheckpoint | None:
        """Load the newest sound checkpoint into `template`; None where there is none at all.

        A damaged one is renamed, with a warning, and the one before it is loaded. In a job of several processes
        all must call it.

        **Arguments:** `sim` and `make_template` as of `load_checkpoint`; `process_group` as of `save`.

        **Errors:** `DamagedFileError` when all are damaged, `MismatchError` for another structure.
        """
        process_group = single_process() if process_group is None else process_group
        # Only the first process searches: each might find another one sound, or rename it under the others.
        if process_group.process_count > 1 and not process_group.is_first:
            newest = process_group.all_gather_object(None, "the newest sound checkpoint")[0]
            if newest is None:
                return None
            path = Path(self.folder) / Path(newest).name
            return load_checkpoint(path, template, sim=sim, make_template=make_template)
        found = self._newest_sound(template, sim, make_template)
        process_group.all_gather_object(
            None if found is None else found.path.name, "the newest sound checkpoint"
        )
        return found

    def _newest_sound(
        self, template: PyTree, sim: PyTree, make_template: MakeTemplate | None
    ) -> RestoredCheckpoint | None:
        """The newest checkpoint that is not damaged; those that are get the suffix `.damaged`."""
        faults = []
        for path in self.paths():
            try:
                return load_checkpoint(path, template, sim=sim, make_template=make_template)
            except DamagedFileError as error:
                faults.append(str(error))
                set_aside(path, error, "going back to the one before")
        if faults:
            raise DamagedFileError("no checkpoint is sound:\n  " + "\n  ".join(faults))
        return None

    def remove_leftovers(self) -> None:
        """Remove the incomplete files of a killed run. Only the holder of the folder's lock may call it."""
        remove_temporaries(Path(self.folder))
        remove_orphaned_parts(Path(self.folder))
