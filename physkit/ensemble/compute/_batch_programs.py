"""The compiled programs of a batch: one for each kind of work, set of devices and layout of arguments."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import jax
from jaxtyping import Array, Bool, Int

from physkit.core import Frame, Key, PyTree, StaticPart, gpu_compiler_options

from ._member_batch import (
    MemberBatch,
    advance_batch,
    init_batch,
    summarize_batch,
)

# What is compiled, of the arrays of a `MemberGroup` and the rest of it. `jit` and `pmap` find a compiled
# program by the identity of the function, hence functions of the module and not closures. What is static comes
# last.


def _init(
    arrays: PyTree, values: tuple[Any, ...], keys: Key | None, static: StaticPart, size: int
) -> tuple[MemberBatch, Frame]:
    return init_batch(static.combine(arrays), values, keys, size)


def _advance(
    arrays: PyTree,
    batch: MemberBatch,
    blocks: Int[Array, ""],
    static: StaticPart,
    max_blocks: int,
) -> tuple[MemberBatch, Frame, Bool[Array, " b"]]:
    return advance_batch(static.combine(arrays), batch, blocks, max_blocks)


def _summarize(arrays: PyTree, batch: MemberBatch, static: StaticPart) -> Frame:
    return summarize_batch(static.combine(arrays), batch)


def init_program(devices: Sequence[jax.Device]) -> Callable:
    """`(arrays, values, keys, static, size) → batch, first frames`."""
    return map_over_devices(_init, devices, (None, 0, 0), (3, 4))


def advance_program(devices: Sequence[jax.Device], compiler_options: Mapping[str, Any]) -> Callable:
    """`(arrays, batch, blocks, static, max_blocks) → batch, frames, which members overflowed`."""
    return map_over_devices(_advance, devices, (None, 0, None), (3, 4), compiler_options)


def summarize_program(devices: Sequence[jax.Device]) -> Callable:
    """`(arrays, batch, static) → results of accumulating observers`."""
    return map_over_devices(_summarize, devices, (None, 0), (2,))


def compile_advance(devices: Sequence[jax.Device], *arguments: Any) -> Any:
    """`advance_program` compiled for arguments, of which shapes are enough; nothing is run."""
    # The jitted function itself: `map_over_devices` may wrap it in a function that cannot be lowered.
    program = _make_program(_advance, tuple(devices), (None, 0, None), (3, 4), ())
    return program.lower(*arguments).compile()


def map_over_devices(
    work: Callable,
    devices: Sequence[jax.Device],
    axes: tuple[int | None, ...],
    static: tuple[int, ...],
    compiler_options: Mapping[str, Any] | None = None,
) -> Callable:
    """`work`, a function of a module, compiled for devices that each have a row of the arguments with axis 0.

    On one device these have no axis of devices. `static`: numbers of the last arguments, which are hashable.
    """
    options = tuple((compiler_options or {}).items())
    program = _make_program(work, tuple(devices), axes, static, options)
    # One device needs no pmap: jit has no axis of devices, and no copies to them.
    return program if len(devices) > 1 else partial(_call_on, devices[0], program)


@cache  # the same jitted object each time, so that JAX finds its compiled programs again
def _make_program(
    work: Callable,
    devices: tuple[jax.Device, ...],
    axes: tuple[int | None, ...],
    static: tuple[int, ...],
    compiler_options: tuple[tuple[str, Any], ...],
) -> Any:
    if len(devices) == 1:
        on_cpu = devices[0].platform == "cpu"
        options = dict(compiler_options) if on_cpu else gpu_compiler_options()
        return jax.jit(work, static_argnums=static, compiler_options=options)
    in_axes = (*axes, *([None] * len(static)))
    # pmap rather than jit over a mesh: each device runs a loop of its own, without collectives, and may end it
    # early where all of its members have failed.
    return jax.pmap(work, in_axes=in_axes, static_broadcasted_argnums=static, devices=devices)


def _call_on(device: jax.Device, program: Callable, *arguments: Any) -> Any:
    with jax.default_device(device):
        return program(*arguments)
