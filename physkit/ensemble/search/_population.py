"""The losses of a population: blocks of members side by side, on all devices, by one compiled program."""

import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import (
    CapacityError,
    Count,
    ParameterError,
    as_count,
    explain_exhausted_memory,
)
from physkit.fit import LossProgram
from physkit.simulate import StopRequest, compiled_bytes

from ..compute._batch_memory import MEMORY_FRACTION, available_bytes
from ..compute._batch_programs import map_over_devices
from ..compute._local_devices import as_local_devices

# Members side by side on a processor: more are not faster, since their numbers leave the cache.
_BLOCK_ON_CPU = 64
_BLOCK_ON_ACCELERATOR = 2**16
_MULTIPLE = 8  # so that vector units take whole rows
_CAREFUL_FRACTION = 1 / 16  # of free memory, above which the program is analyzed before it runs


class GenerationStopped(Exception):  # noqa: N818  no error: a stop was requested
    """The generation was left unfinished."""


class PopulationLoss:
    """Computes the losses of populations of one size.

    A population is cut into blocks of equal size, the last one padded with copies of the last member. The
    members of a block are computed side by side, the blocks of a device one after the other.

    Batched programs round differently by size. So on processors the size of a block follows from the population
    alone, and a loss has the same bits for any batch size and on any number of devices. On accelerators, which
    need all members at once, a block is what a device has to do.

    **Arguments:**

    - `loss`: of one vector. `members`: of a population. `dims`: numbers of a vector, `dtype` their kind.
    - `batch_size`: members that a device computes in one call of the program, rounded up to whole blocks.
      `devices`: of this process. As of `fit`.

    **Errors:** `ParameterError` for a batch size below 1 or what is no device, `CapacityError` where eight
    members do not fit on a device.
    """

    def __init__(
        self,
        loss: LossProgram,
        members: int,
        dims: int,
        dtype: np.dtype,
        batch_size: Count | None,
        devices: Sequence[jax.Device] | None,
    ):
        self._loss = loss
        self._devices = as_local_devices(devices, "which share a population")
        if self._devices[0].platform == "cpu":
            share, largest = members, _BLOCK_ON_CPU
        else:
            share, largest = -(-members // len(self._devices)), _BLOCK_ON_ACCELERATOR
        # Blocks of one size, so that none is much emptier than the others.
        block = _round_up(-(-share // -(-share // largest)))
        self._block = self._fitting_block(block, dims, dtype)
        blocks = -(-members // (self._block * len(self._devices)))  # of each device
        if batch_size is not None:
            batch_size = as_count(batch_size, "batch_size", ParameterError)
            blocks = min(blocks, -(-batch_size // self._block))
        # Of each device in one call. Never one: XLA would compile a loop over one block as no loop.
        self._blocks = max(2, blocks)

    def __call__(
        self, population: Float[Array, "m p"] | np.ndarray, stop: StopRequest | None = None
    ) -> np.ndarray:
        """The losses of these members, `[m]`; m may be smaller than that of a population.

        **Errors:** `GenerationStopped` when a stop was requested between two batches.
        """
        population = np.asarray(population)
        batch = len(self._devices) * self._blocks * self._block
        losses: list[np.ndarray] = []
        for first in range(0, len(population), batch):
            began = time.monotonic()
            losses.append(self._batch_losses(population[first : first + batch]))
            seconds = time.monotonic() - began
            if stop is not None and first + batch < len(population) and stop.check(seconds):
                raise GenerationStopped
        return np.concatenate(losses)

    def _batch_losses(self, population: np.ndarray) -> np.ndarray:
        """The losses of some members, by one call of the program."""
        members, devices, size = len(population), len(self._devices), self._blocks * self._block
        # Block after block is dealt to the devices in turn: none is idle while another has two.
        rows = np.minimum(np.arange(devices * size), members - 1)
        by_device = rows.reshape(self._blocks, devices, self._block).swapaxes(0, 1)
        blocks = jnp.asarray(population[by_device])
        # Blocks that hold padding only are not computed.
        filled = -(-members // self._block)
        count = jnp.asarray((filled - np.arange(devices) + devices - 1) // devices, jnp.int32)
        if devices == 1:
            blocks, count = blocks[0], count[0]
        program = map_over_devices(_losses, self._devices, (None, None, 0, 0), (4,))
        loss = self._loss
        with explain_exhausted_memory(
            lambda: (
                f"{self._block} members at a time do not fit on {self._devices[0]}: take smaller members, "
                "single precision, or more devices"
            )
        ):
            found = np.asarray(program(loss.constants, loss.arrays, blocks, count, loss.program))
        found = found.reshape(devices, self._blocks, self._block).swapaxes(0, 1)
        return found.reshape(-1)[:members]

    def _fitting_block(self, block: int, dims: int, dtype: np.dtype) -> int:
        """`block`, or as much of it as the memory of a device holds."""
        free = available_bytes(self._devices[0])
        each = _bytes_of_program(self._loss.program.closed.jaxpr)
        # Compiled and analyzed only where memory might matter: that takes seconds.
        while free is not None and block * each > _CAREFUL_FRACTION * free:
            shapes = jax.ShapeDtypeStruct((1, block, dims), dtype)
            count = jax.ShapeDtypeStruct((), np.int32)
            loss = self._loss
            program = jax.jit(_losses, static_argnums=4)
            compiled = program.lower(
                loss.constants, loss.arrays, shapes, count, loss.program
            ).compile()
            needed = compiled_bytes(compiled)[0]
            if needed <= MEMORY_FRACTION * free:
                return block
            if block == _MULTIPLE:
                raise CapacityError(
                    f"{block} members need {needed / 2**30:.3g} GiB and a device has {free / 2**30:.3g} GiB: "
                    "take smaller members, single precision, or a larger device"
                )
            block = _round_up(block // 2)
        return block


def _losses(
    constants: list[Array],
    arrays: list[Array],
    blocks: Float[Array, "b m p"],
    count: Int[Array, ""],
    program: Any,
) -> Float[Array, "b m"]:
    """The losses of the first `count` blocks."""

    def loss(z: Float[Array, " p"]) -> Float[Array, ""]:
        return program(constants, [z, *arrays])[0]

    def compute(k: Int[Array, ""], losses: Float[Array, "b m"]) -> Float[Array, "b m"]:
        return losses.at[k].set(jax.vmap(loss)(blocks[k]))

    # A number of blocks that is known only when it runs: one compiled body serves them all, alike.
    nothing = jnp.full(blocks.shape[:2], jnp.nan, blocks.dtype)
    return jax.lax.fori_loop(0, count, compute, nothing)


def _round_up(members: int) -> int:
    return max(_MULTIPLE, -(-members // _MULTIPLE) * _MULTIPLE)


def _bytes_of_program(jaxpr: Any) -> int:
    """An upper bound of the memory that one member takes: all that is computed on the way, loops once."""
    total = 0
    for eqn in jaxpr.eqns:
        total += sum(
            int(np.prod(v.aval.shape)) * np.dtype(v.aval.dtype).itemsize
            for v in eqn.outvars
            if hasattr(v.aval, "shape")
            and not jax.dtypes.issubdtype(v.aval.dtype, jax.dtypes.extended)
        )
        for inner in jax.tree.leaves(list(eqn.params.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(inner):
                total += _bytes_of_program(getattr(inner, "jaxpr", inner))
    return total


def _is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns")
