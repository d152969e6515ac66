"""The record of a crash, which a run that went wrong leaves in its folder for `diagnose`."""

import json
from pathlib import Path
from typing import Any

import jax

from physkit.core import DamagedFileError, FileError, PyTree, State
from physkit.storage import load_checkpoint, read_checkpoint_table, read_regular, write_atomically

from ..distributed._carry_template import carry_template
from ..loop._carry import Carry
from ..loop._init import init
from ..loop._simulation import Simulation
from ._single_device import SingleDevice

RECORD = "crash.json"


def write_crash_record(folder: Path, error: Exception, step: int, steps: int) -> None:
    """Write that `error` came in the `steps` after the checkpoint of `step`."""
    record = {
        "error": type(error).__name__,
        "message": str(error),
        "step": step,
        "steps": steps,
        "checkpoint": f"checkpoint-{step:015d}.h5",
    }
    write_atomically(folder / RECORD, json.dumps(record, indent=1).encode())


def remove_crash_record(folder: Path) -> None:
    """Remove the record, if there is one: the run has passed the step at which it once went wrong."""
    (folder / RECORD).unlink(missing_ok=True)


def read_crash_record(folder: str | Path) -> dict[str, Any] | None:
    """What went wrong with the run in `folder`; None if nothing did.

    **Errors:** `DamagedFileError`.
    """
    path = Path(folder) / RECORD
    kinds = {"error": str, "message": str, "step": int, "steps": int, "checkpoint": str}
    try:
        # Files are not trusted: a bounded size, and only entries of the expected types (a bool is no int).
        record = json.loads(read_regular(path, 100_000))
        if any(type(record[name]) is not kind for name, kind in kinds.items()):
            raise ValueError("an entry is of another kind")
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedFileError(f"{path} cannot be read ({error}); remove it") from error
    return {name: record[name] for name in kinds}


def load_last_good_carry(folder: str | Path, sim: Simulation, state: State) -> tuple[Carry, int]:
    """The last good carry of a run that went wrong, and within how many steps of it the fault appeared.

    **Errors:** `FileError` when the run did not go wrong, or its checkpoint is gone; `MismatchError` when
    it was another simulation.
    """
    folder = Path(folder)
    record = read_crash_record(folder)
    if record is None:
        raise FileError(
            f"{folder} holds no {RECORD}: no run there went wrong, or it was killed before it could say so"
        )
    name = Path(record["checkpoint"]).name  # never a path out of the folder
    places = [folder / "checkpoints" / name, folder / name]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise FileError(f"{folder}: the checkpoint {name}, which {RECORD} names, is gone")
    # The template must have a key of the kind that the run had, or none.
    leaves = read_checkpoint_table(path)["leaves"]
    row = leaves.get(".key") or leaves.get(".carry.key")  # of one device, or of several
    key = jax.random.key(0, impl=row["key"]) if row else None  # its number is in the checkpoint
    start = init(sim, state, key=key).replace(is_initial=False)

    def make_template(devices: tuple[int, ...], shapes: dict[str, tuple[int, ...]]) -> PyTree:
        return carry_template(sim, start, (), devices, shapes)

    carry = load_checkpoint(path, None, make_template=make_template).tree
    # Over emulated devices: those of the run need not be here.
    return SingleDevice(sim).as_carry(carry, None), record["steps"]
