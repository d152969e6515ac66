"""What the processes of a job compare before a run: they must begin with the same, and go equally far."""

import re
import zlib
from typing import Any

import jax
import numpy as np

from physkit.core import ClusterError, Key, PyTree, State
from physkit.parallel import ProcessGroup

from ..distributed._sharded_carry import ShardedCarry
from ..loop._carry import Carry
from ..loop._simulation import Simulation

_SHOWN = 3  # differences in the message
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # of functions, which differ from process to process


def require_same_start(
    process_group: ProcessGroup,
    sim: Simulation,
    carry_or_state: State | Carry | ShardedCarry,
    key: Key | None,
    arguments: dict[str, Any],
) -> None:
    """Check that all processes begin with the same simulation, state and arguments. Collective.

    Otherwise a process with fewer steps would leave the others waiting for ever, and of different states each
    device would compute its part: a patchwork.

    - `arguments`: those of the run, by name.

    **Errors:** `ClusterError` names what differs, on every process.
    """
    if process_group.process_count == 1:
        return
    mine = {name: repr(value) for name, value in arguments.items()}
    mine |= _digests("the simulation", sim)
    mine |= _digests("the state", carry_or_state)
    mine |= _digests("the key", key)
    every = process_group.all_gather_object(mine, "what a run begins with")
    differences = []
    for name in dict.fromkeys(name for one in every for name in one):
        values = [one.get(name, "missing") for one in every]
        k = next((k for k, value in enumerate(values) if value != values[0]), None)
        if k is not None:
            differences.append(
                f"{name} is {values[0]} on {process_group.names[0]} and {values[k]} on "
                f"{process_group.names[k]}"
            )
    if differences:
        more = f"\n  … and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        raise ClusterError(
            "the processes of this job do not run the same:\n  "
            + "\n  ".join(differences[:_SHOWN])
            + more
            + "\nAll must make the same simulation and state (from one file, or one seed) and pass the same "
            "arguments"
        )


def _digests(what: str, tree: PyTree) -> dict[str, str]:
    """A digest of each leaf of a tree, and of its structure, by name."""
    flat, structure = jax.tree_util.tree_flatten_with_path(tree)
    found = {f"the structure of {what}": _hash(_ADDRESS.sub("", str(structure)).encode())}
    for path, x in flat:
        found[f"{what}{jax.tree_util.keystr(path)}"] = _digest(x)
    return found


def _digest(x: Any) -> str:
    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return f"{jax.random.key_impl(x)} {_digest(jax.random.key_data(x))}"
    if isinstance(x, jax.Array) and not x.is_fully_addressable:
        # In device layout over processes: each holds rows of its own.
        return f"{x.dtype}{list(x.shape)}"
    if isinstance(x, jax.Array | np.ndarray | np.generic | float | int | complex):
        array = np.asarray(x)
        if array.ndim == 0:
            return f"{array[()]!r}"
        return f"{array.dtype}{list(array.shape)} {_hash(np.ascontiguousarray(array).tobytes())}"
    return _ADDRESS.sub("", repr(x))


def _hash(content: bytes) -> str:
    return f"{zlib.crc32(content):08x}"
