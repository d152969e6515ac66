"""What the processes of a job compare before a run: they must begin with the same, and go equally far."""

from typing import Any

import jax

from physkit.core import ClusterError, Key, PyTree, State
from physkit.parallel import ProcessGroup
from physkit.storage import fingerprint

from ..distributed._sharded_carry import ShardedCarry
from ..loop._carry import Carry
from ..loop._simulation import Simulation

_SHOWN = 3  # differences in the message


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
    mine |= _describe("the simulation", sim)
    mine |= _describe("the state", carry_or_state)
    mine |= _describe("the key", key)
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


def _describe(what: str, tree: PyTree) -> dict[str, str]:
    """A line for each number, array (by checksum) and function (by its code) of a tree, by name."""
    # In device layout over processes each holds rows of its own: of these only the shape is the same.
    tree = jax.tree.map(
        lambda x: x if _is_whole(x) else jax.ShapeDtypeStruct(x.shape, x.dtype), tree
    )
    return {f"{what}{path}": text for path, text in fingerprint(tree).items()}


def _is_whole(x: Any) -> bool:
    return not isinstance(x, jax.Array) or x.is_fully_addressable
