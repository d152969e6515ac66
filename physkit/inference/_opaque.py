"""A tree whose parts nobody finds: what is inside of it acts on other states than the simulation's."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from physkit.core import Module, PyTree, data, static


class Opaque(Module):
    """The arrays of a tree, and its form as a static field.

    Terms of a model inside of a chain or a filter act on the model's state: `init`, quantities and checks,
    which look for terms, must not take them for those of the simulation that holds it. A simulation casts its
    parameters to the precision of its state: here they come out in their own again.
    """

    arrays: tuple[Array, ...] = data()
    form: Any = static()
    rest: tuple[Any, ...] = static()
    dtypes: tuple[Any, ...] = static()

    @staticmethod
    def of(tree: PyTree) -> "Opaque":
        """`tree`, closed."""
        leaves, form = jax.tree.flatten(tree)
        arrays = tuple(x for x in leaves if eqx.is_array(x))
        # Functions and the like keep their places; arrays leave a gap.
        rest = tuple(_GAP if eqx.is_array(x) else x for x in leaves)
        # NumPy's double precision is none here without x64: as a cast to it would warn.
        dtypes = [jax.dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True) for x in arrays]
        return Opaque(arrays, form, rest, tuple(dtypes))

    def open(self) -> PyTree:
        """The tree."""
        pairs = zip(self.arrays, self.dtypes, strict=True)
        arrays = iter([x if x.dtype == dtype else x.astype(dtype) for x, dtype in pairs])
        leaves = [next(arrays) if x is _GAP else x for x in self.rest]
        return jax.tree.unflatten(self.form, leaves)


class _Gap:
    """Where an array was."""

    def __repr__(self) -> str:
        return "array"


_GAP = _Gap()
