"""How kernels are made by Triton, and what they read."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import vary_alike

from .._formulas import NotTranslatableError
from ._tile_functions import Tile
from ._tiles import TileTranslation


def require_compiler() -> None:
    """**Errors:** `NotTranslatableError` where this JAX makes no kernels for the GPU that programs are for."""
    try:
        from jax.experimental.pallas import triton
    except ImportError as error:
        raise NotTranslatableError("no kernels by Triton in this JAX") from error
    if hasattr(triton, "get_gpu_info"):  # from JAX 0.11 on it is asked while programs are lowered
        try:
            triton.get_gpu_info()
        except ValueError as error:
            raise NotTranslatableError(str(error)) from error


def _flatten(a: Array) -> Array:
    """What a kernel gets of an array: a pointer to its numbers."""
    # Pointers to bits are none: bits are numbers in memory.
    a = jnp.reshape(a, -1)
    return a.astype(jnp.int32) if a.dtype.kind == "b" else a


def launch(
    name: str,
    kernel: Callable[..., None],
    out: Sequence[jax.ShapeDtypeStruct],
    operands: Sequence[Array],
    num_blocks: int,
    warps: int,
    interpret: bool,
) -> Sequence[Array]:
    """Run `kernel` in `num_blocks` blocks of `warps` warps, on arrays made flat.

    - `interpret`: evaluate it by XLA, on any platform: for tests.
    """
    # Here, because it takes a while, and a CPU needs it never.
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    operands = vary_alike([_flatten(a) for a in operands])
    # Within a user's `jax.shard_map`, along which axes of its mesh the results differ.
    kind = getattr(jax.typeof(operands[0]), "manual_axis_type", None)
    if kind is not None:
        out = [jax.ShapeDtypeStruct(x.shape, x.dtype, manual_axis_type=kind) for x in out]
    params = None if interpret else triton.CompilerParams(num_warps=warps, num_stages=1)
    return pallas.pallas_call(
        kernel,
        list(out),
        grid=(num_blocks,),
        interpret=interpret,
        compiler_params=params,
        name=name,
    )(*operands)


def look_up_in(
    translation: TileTranslation, references: Sequence[Any]
) -> Callable[[int, Tile], Tile]:
    """Elements of the constants of a translation, which lie in `references`."""
    from jax.experimental.pallas import triton

    def look_up(constant: int, places: Tile) -> Tile:
        dtype = translation.constants[constant].dtype
        return as_type(dtype, triton.load(references[constant].at[places]))

    return look_up


def known_numbers(
    translation: TileTranslation, results: set[str], look_up: Callable[[int, Tile], Tile]
) -> dict[str, Tile]:
    """Numbers of the program, and those elements of constants that operations or `results` use, by name."""
    operations = [*translation.row_statements, *translation.statements]
    used = results.union(*(operation.operands for operation in operations))
    known: dict[str, Tile] = dict(translation.literals)
    # Not in the order of a set, which differs from process to process, and with it the program.
    for name, (constant, k) in translation.elements.items():
        if name in used:
            known[name] = look_up(constant, jnp.int32(k))
    return known


def as_type(dtype: np.dtype, x: Array) -> Array:
    """What was read as a number of `dtype`."""
    return x != 0 if dtype.kind == "b" else x


def split(references: Sequence[Any], counts: Sequence[int]) -> list[Sequence[Any]]:
    """Groups of references, of so many each."""
    ends = np.cumsum(counts)
    return [references[end - count : end] for end, count in zip(ends, counts, strict=True)]
