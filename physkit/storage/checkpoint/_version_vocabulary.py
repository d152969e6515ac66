"""Names of classes and fields by the version of physkit that wrote a file.

A checkpoint names its leaves by path in the tree (`.state.position`) and its nodes by class. Both follow the
names in the code, which may change, while a file keeps those of its version. So the template is described with
the vocabulary of the version that wrote the file, and then compared with the file.
"""

import dataclasses
import re
from collections.abc import Mapping

import jax

from physkit.core import PyTree

from . import _names_0_1 as names_0_1

NEW_FIELD = ".(new)"  # stands in paths for a field that the file's version did not have


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Names of one version of physkit, by today's names.

    - `classes`: of classes. `everywhere`: of fields, whatever their class.
    - `fields`: by class, of its fields; None for a field that the version did not have.
    - `state_paths`: of fields in the paths of leaves of a state.
    """

    classes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    everywhere: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fields: Mapping[str, Mapping[str, str | None]] = dataclasses.field(default_factory=dict)
    state_paths: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def class_name(self, cls: type) -> str:
        """The name of a class."""
        return self.classes.get(cls.__qualname__, cls.__qualname__)

    def field_name(self, cls: type, name: str) -> str | None:
        """The name of a field of a class; None where the version has no such field."""
        own = self.fields.get(cls.__qualname__, {})
        return own[name] if name in own else self.everywhere.get(name, name)

    def text(self, description: str) -> str:
        """The description of a static value, with the names of the classes in it replaced."""
        if not self.classes:
            return description
        # A class's name in a `repr` stands before its arguments: `Box(periodic=…)`.
        return re.sub(
            r"\b[A-Z]\w*(?=\()",
            lambda match: self.classes.get(match[0], match[0]),
            description,
        )

    def path(self, tree: PyTree, keys: tuple[object, ...]) -> str:
        """The path of a leaf or node of `tree`, from JAX's keys to it; `NEW_FIELD` for later ones."""
        if self is TODAY:
            # Nothing is renamed: no need to know the nodes on the way.
            return jax.tree_util.keystr(keys)
        # JAX's keys name fields but no classes: go down the tree with them, and ask each node for its own.
        parts, node = [], tree
        for key in keys:
            if isinstance(key, jax.tree_util.GetAttrKey):
                name = self.field_name(type(node), key.name)
                parts.append(NEW_FIELD if name is None else f".{name}")
                node = getattr(node, key.name)
            elif isinstance(key, jax.tree_util.DictKey):
                parts.append(jax.tree_util.keystr((key,)))
                node = node[key.key]
            elif isinstance(key, jax.tree_util.SequenceKey):
                parts.append(jax.tree_util.keystr((key,)))
                node = node[key.idx]
            else:  # a foreign kind of node, inside of which nothing is renamed
                return "".join(parts) + jax.tree_util.keystr(keys[len(parts) :])
        return "".join(parts)

    def state_path_today(self, path: str) -> str:
        """Today's path of a leaf of a state, from that in the file."""
        return re.sub(
            r"\.(\w+)", lambda match: f".{self.state_paths.get(match[1], match[1])}", path
        )


TODAY = Vocabulary()
VERSION_0_1 = Vocabulary(
    names_0_1.CLASSES, names_0_1.EVERYWHERE, names_0_1.FIELDS, names_0_1.STATE_PATHS
)
VERSION_0_2 = Vocabulary(
    fields={
        "Gas": {"gamma": None, "scalars": None},
        "ListedPairs": {"reverse": None},
        "Moments": {"unit": None},
        "PairCache": {"current": None},
        "Pairwise": {"plan": None, "switch_start": None},
        "Particles": {"species_names": None, "constraints": None},
        "Positions": {"sites": None},
        "ShardedNeighborList": {"reverse": None},
        "Velocities": {"sites": None},
    }
)


def vocabulary_of(provenance: Mapping[str, object]) -> Vocabulary:
    """The vocabulary of the version that wrote a file, from what the file says of its origin."""
    version = str(provenance.get("physkit", ""))
    known = {"0.1.": VERSION_0_1, "0.2.": VERSION_0_2}
    return next((words for start, words in known.items() if version.startswith(start)), TODAY)
