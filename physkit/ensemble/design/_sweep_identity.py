"""What a sweep is: model, values, key, statistics and code, noted in its folder and compared by its workers."""

import sys
from collections.abc import Sequence

import numpy as np

from physkit.core import Key, State, read_outside
from physkit.simulate import Simulation, member_code_digest
from physkit.storage import Identity, describe_array, describe_numbers, digest, fingerprint

from ..statistics._reductions import AbstractReduction
from ._swept_leaves import SweptLeaf


def sweep_identity(
    models: Sequence[tuple[Simulation, State]],
    swept: Sequence[tuple[SweptLeaf, ...]],
    key: Key | None,
    first_keys: Sequence[Key | None],
    reductions: Sequence[AbstractReduction],
    arrays: dict[str, np.ndarray],
    options: dict[str, str],
) -> Identity:
    """The identity of a sweep; one member of each group is traced, so that no size of chunks is in it.

    - `models`, `swept`, `first_keys`: of each group, the last those of its first member.
    - `arrays`, `options`: what else decides which member has which numbers.
    """
    sections: dict[str, dict[str, str]] = {}
    code: dict[str, str] = {}
    for number, (model, leaves, first_key) in enumerate(
        zip(models, swept, first_keys, strict=True)
    ):
        of_group = f" of group {number}" if len(models) > 1 else ""
        for title, part in zip(("the simulation", "the state"), model, strict=True):
            sections[f"{title}{of_group}"] = describe_numbers(part)
        sections[f"the values{of_group}"] = {
            leaf.name: f"{leaf.leaf}{leaf.index}: {describe_array(leaf.values)}" for leaf in leaves
        }
        if (found := member_code_digest(*model, first_key)) is not None:
            code[f"the simulation{of_group}"] = found
    sections["the random key"] = {"": "none" if key is None else describe_array(key)}
    sections["the design"] = {name: describe_array(x) for name, x in arrays.items()} | options
    sections["the statistics"] = {"": repr(reductions)}
    # Statistics run on the host: their functions are known by their bytecode, which depends on the Python, and
    # by what they read from outside.
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    code[f"the statistics (Python {python})"] = digest(
        fingerprint(reductions) | read_outside(reductions)
    )
    return Identity(sections, code)
