"""From a function of the cells around a face, as a JAX function, to expressions for each of its numbers."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import PyTree

from ._formulas import NotTranslatableError
from ._translate import Symbolic, Translation, first_that_can

# For each array its cells around a face, and what all faces depend on → what there is at the face, for each
# array of the result in each of its cells; what is summed over all faces.
AtFace = Callable[[list[list[Array]], PyTree], tuple[list[list[Array]], list[Array]]]
# Such a function, arrays `[outer, n + cells − 1, inner]`, how many cells of each are around a face, and what
# all faces depend on → results `[outer, n + cells − 1, inner]`, and the sums.
MapStencil = Callable[
    [AtFace, Sequence[Array], Sequence[int], PyTree], tuple[list[Array], list[Array]]
]

_MAX_NUMBERS = 256  # that are read and written at a face


class TranslatedStencil(NamedTuple):
    """A function of the cells around one face.

    - `cells`: their names, by array, then by cell. `translation`: what computes the results from them.
    - `outs`: the results, by array, then by cell. `sums`: what is summed over all faces.
    """

    cells: list[list[str]]
    translation: Translation
    outs: list[list[Symbolic]]
    sums: list[Symbolic]


def translate_stencil(
    kinds: Sequence[Callable[[list[Symbolic]], Translation]],
    function: AtFace,
    num_cells: Sequence[int],
    dtype: np.dtype,
    context: PyTree,
) -> TranslatedStencil:
    """Trace `function` for one face, and translate it.

    - `kinds`: make a translation, given what changes from face to face. The first one that can is taken.

    **Errors:** `NotTranslatableError`.
    """
    number = jax.ShapeDtypeStruct((), dtype)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), x.dtype), context)
    traced, out = jax.make_jaxpr(function, return_shape=True)(
        [[number] * count for count in num_cells], shapes
    )
    cells = [[f"x{k}_{j}" for j in range(count)] for k, count in enumerate(num_cells)]
    symbols = [Symbolic(np.array(name, object), dtype) for names in cells for name in names]

    def translate(kind: Callable[[list[Symbolic]], Translation]) -> tuple[Translation, list[Any]]:
        translation = kind(symbols)
        known = [translation.known(leaf) for leaf in jax.tree.leaves(context)]
        values = translation.call(traced.jaxpr, traced.consts, [*symbols, *known])
        results = [
            translation.symbolic(value, variable.aval.dtype)
            for value, variable in zip(values, traced.jaxpr.outvars, strict=True)
        ]
        return translation, results

    translation, results = first_that_can(kinds, translate)
    outs, sums = jax.tree.unflatten(jax.tree.structure(out), results)
    written = [symbol for parts in outs for symbol in parts]
    if any(s.elements.shape for s in written) or any(s.dtype != dtype for s in results):
        raise NotTranslatableError("results that are no numbers of a face")
    if len(symbols) + len(results) > _MAX_NUMBERS:
        raise NotTranslatableError("many numbers of a face")
    return TranslatedStencil(cells, translation, outs, sums)
