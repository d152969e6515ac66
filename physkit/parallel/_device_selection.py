"""`devices=`: what a script may write, and which JAX devices it selects."""

import math
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from physkit.core import DeviceError

# What a script may write as `devices=`.
DevicesLike: TypeAlias = int | str | Sequence[Any] | np.ndarray


def resolve_devices(devices: Any) -> tuple[tuple[int, ...], tuple[Any, ...] | None]:
    """How many devices `devices=` asks for per axis of space, and which ones; None: the first of JAX's own.

    Trailing axes with one device are left out: 2, (2, 1) and (2, 1, 1) are the same.

    **Arguments:**

    - `devices`: a number (along the first axis) or a tuple of numbers, one per axis; `"cpu"` or
      `"gpu"`, all of that platform along the first axis; `"gpu:4"`, `"cpu:2x2"`; or JAX devices
      themselves, in a list (first axis) or in lists of lists, one level per axis.

    **Errors:** `DeviceError` for anything else, and for fewer devices than asked for.
    """
    if isinstance(devices, str):
        return _from_text(devices)
    if _is_number(devices):
        return _check_shape((int(devices),), devices), None
    if isinstance(devices, jax.Device):
        return (1,), (devices,)
    given = np.asarray(devices if isinstance(devices, Sequence | np.ndarray) else [], object)
    if given.size:
        if all(map(_is_number, given.flat)) and given.ndim == 1:
            return _check_shape(tuple(map(int, given)), devices), None
        if all(isinstance(x, jax.Device) for x in given.flat):
            if len(set(given.flat)) < given.size:
                raise DeviceError(f"devices={devices!r} names a device twice")
            return _check_shape(given.shape, devices), tuple(given.flat)
    raise DeviceError(
        f"devices={devices!r} is not understood: give numbers per axis as in (2, 2), 'cpu' or 'gpu', "
        "'gpu:2x2', or JAX devices in (nested) lists of equal length"
    )


def _is_number(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def _from_text(text: str) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    words = re.fullmatch(r"([a-z]+)(?::(\d+(?:x\d+)*))?", text)
    if words is None:
        raise DeviceError(f"devices={text!r} is not understood: 'cpu', 'gpu', 'gpu:4' or 'cpu:2x2'")
    try:
        available = tuple(jax.devices(words[1]))
    except RuntimeError as error:
        kinds = sorted({d.platform for d in jax.devices()})
        raise DeviceError(
            f"devices={text!r}: JAX finds no {words[1]} here, only {', '.join(kinds)}. `physkit doctor` "
            "says what there is"
        ) from error
    if words[2] is None:
        return (len(available),), available
    shape = _check_shape(tuple(int(n) for n in words[2].split("x")), text)
    require_devices(shape, available)
    return shape, available[: math.prod(shape)]


def _check_shape(shape: tuple[int, ...], devices: DevicesLike) -> tuple[int, ...]:
    if len(shape) > 3 or any(n < 1 for n in shape):
        raise DeviceError(
            f"devices={devices!r}: one number from 1 per axis of space, three axes at most"
        )
    sharded_axes = [k for k, n in enumerate(shape) if n > 1]
    return tuple(shape[: sharded_axes[-1] + 1]) if sharded_axes else (1,)


def require_devices(shape: Sequence[int], devices: Sequence[Any]) -> None:
    """**Errors:** `DeviceError` if there are fewer devices than `shape` asks for."""
    size = math.prod(shape)
    if len(devices) >= size:
        return
    available = f"there are {len(devices)} ({devices[0].platform if devices else 'none'})"
    if jax.process_count() > 1:
        raise DeviceError(
            f"devices={tuple(shape)} asks for {size} devices; in all {jax.process_count()} processes "
            f"{available}: start more processes, or give each more devices"
        )
    raise DeviceError(
        f"devices={tuple(shape)} asks for {size} devices; {available}. To emulate them on CPU, start Python "
        f"with XLA_FLAGS=--xla_force_host_platform_device_count={size}, or say "
        f"jax.config.update('jax_num_cpu_devices', {size}) before anything else uses JAX; on one device, "
        "slowly, PHYSKIT_SPMD=vmap"
    )


def spans_processes(devices: Sequence[Any]) -> bool:
    """Whether devices belong to all processes of a job, rather than to this one alone.

    **Errors:** `DeviceError` if they belong to some of the processes, but not to all.
    """
    count = jax.process_count()
    owners = {device.process_index for device in devices}
    if count == 1 or owners == {jax.process_index()}:
        return False
    if len(owners) < count:
        raise DeviceError(
            f"the {len(devices)} devices asked for belong to {len(owners)} of {count} processes: ask for "
            f"all {jax.device_count()}, start fewer processes, or give jax.local_devices() for a run of "
            "each process's own"
        )
    return True
