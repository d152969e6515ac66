"""Products that are summed at once: half as many instructions, rounded once."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import jax
import jax.numpy as jnp

from ._tile_functions import Tile
from ._tiles import Operation

# x, y, z, signs of x·y and z → ± x y ± z
MultiplyAdd = Callable[[Tile, Tile, Tile, int, int], Tile]
_SIGNS = {"add": (1, 1), "add_any": (1, 1), "sub": (1, -1)}


def fuse_products(
    operations: Sequence[Operation], multiply_add: MultiplyAdd, results: Iterable[str] = ()
) -> list[Operation]:
    """The same operations, where products that are only used in one sum, and no results, are a part of it."""
    uses = Counter(name for operation in operations for name in operation.operands)
    uses.update(results)
    products: dict[str, Operation] = {}
    fused: dict[str, Operation] = {}
    for operation in operations:
        fused[operation.name] = operation
        if operation.kind in ("mul", "square"):
            products[operation.name] = operation
        if operation.kind not in _SIGNS:
            continue
        signs = _SIGNS[operation.kind]
        for place in (1, 0):  # what is written last is mostly the product
            name, other = operation.operands[place], operation.operands[1 - place]
            if name in products and uses[name] == 1:
                x, y = (products[name].operands * 2)[:2]
                both = signs[place], signs[1 - place]

                def add(x: Tile, y: Tile, z: Tile, both: tuple[int, int] = both) -> Tile:
                    return multiply_add(x, y, z, *both)

                del fused[name]
                fused[operation.name] = Operation(operation.name, add, (x, y, other))
                break
    return list(fused.values())


def multiply_add_in_two(x: Tile, y: Tile, z: Tile, of_product: int, of_rest: int) -> Tile:
    """The same for interpreters, which know no instructions."""
    product = x * y if of_product > 0 else -(x * y)
    return product + z if of_rest > 0 else product - z


def multiply_add(x: Tile, y: Tile, z: Tile, of_product: int, of_rest: int) -> Tile:
    """By the instruction, into which Triton makes none."""
    from jax.experimental.pallas import triton

    kind, letter = ("f32", "f") if x.dtype == jnp.float32 else ("f64", "d")
    negate = {(-1, 1): "$1", (1, -1): "$3"}.get((of_product, of_rest))
    code = f"fma.rn.{kind} $0, $1, $2, $3;"
    if negate is not None:
        code = f"neg.{kind} t, {negate}; {code.replace(negate, 't')}"
        code = f"{{ .reg .{kind} t; {code} }}"
    (out,) = triton.elementwise_inline_asm(
        code,
        args=[x, y, z],
        constraints=",".join([f"={letter}", *[letter] * 3]),
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(x.shape, x.dtype)],
    )
    return out
