"""What `devices=` may be, and the devices that it means."""

import math
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from physkit.core import DeviceError

# What a script may write as `devices=`.
DevicesLike = int | str | Sequence[Any] | np.ndarray


def resolve_devices(devices: Any) -> tuple[tuple[int, ...], tuple[Any, ...] | None]:
    """How many devices there are per axis of space, and which ones; None: the first of JAX's own.

    Axes at the end that are not cut are left out: 2, (2, 1) and (2, 1, 1) are the same.

    **Arguments:**

    - `devices`: a number (along the first axis) or a tuple of numbers, one per axis; `"cpu"` or
      `"gpu"`, all of that platform along the first axis; `"gpu:4"`, `"cpu:2x2"`; or JAX devices
      themselves, in a list (first axis) or in lists of lists, one level per axis.

    **Errors:** `DeviceError` for anything else, and for fewer devices than asked for.
    """
    if isinstance(devices, str):
        return _of_platform(devices)
    if _is_number(devices):
        return _checked((int(devices),), devices), None
    if isinstance(devices, jax.Device):
        return (1,), (devices,)
    given = np.asarray(devices if isinstance(devices, Sequence | np.ndarray) else [], object)
    if given.size:
        if all(map(_is_number, given.flat)) and given.ndim == 1:
            return _checked(tuple(map(int, given)), devices), None
        if all(isinstance(x, jax.Device) for x in given.flat):
            if len(set(given.flat)) < given.size:
                raise DeviceError(f"devices={devices!r} names a device twice")
            return _checked(given.shape, devices), tuple(given.flat)
    raise DeviceError(
        f"devices={devices!r} is not understood: give numbers per axis as in (2, 2), 'cpu' or 'gpu', "
        "'gpu:2x2', or JAX devices in (nested) lists of equal length"
    )


def _is_number(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def _of_platform(said: str) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    words = re.fullmatch(r"([a-z]+)(?::(\d+(?:x\d+)*))?", said)
    if words is None:
        raise DeviceError(f"devices={said!r} is not understood: 'cpu', 'gpu', 'gpu:4' or 'cpu:2x2'")
    try:
        there = tuple(jax.devices(words[1]))
    except RuntimeError as error:
        kinds = sorted({d.platform for d in jax.devices()})
        raise DeviceError(
            f"devices={said!r}: JAX finds no {words[1]} here, only {', '.join(kinds)}. `physkit doctor` "
            "says what there is"
        ) from error
    if words[2] is None:
        return (len(there),), there
    shape = _checked(tuple(int(n) for n in words[2].split("x")), said)
    require_devices(shape, there)
    return shape, there[: math.prod(shape)]


def _checked(shape: tuple[int, ...], devices: Any) -> tuple[int, ...]:
    if len(shape) > 3 or any(n < 1 for n in shape):
        raise DeviceError(
            f"devices={devices!r}: one number from 1 per axis of space, three axes at most"
        )
    cut = [k for k, n in enumerate(shape) if n > 1]
    return tuple(shape[: cut[-1] + 1]) if cut else (1,)


def require_devices(shape: Sequence[int], devices: Sequence[Any]) -> None:
    """**Errors:** `DeviceError` where there are fewer devices than `shape` asks for."""
    size = math.prod(shape)
    if len(devices) >= size:
        return
    there = f"there are {len(devices)} ({devices[0].platform if devices else 'none'})"
    if jax.process_count() > 1:
        raise DeviceError(
            f"devices={tuple(shape)} asks for {size} devices; in all {jax.process_count()} processes "
            f"{there}: start more processes, or give each more devices"
        )
    raise DeviceError(
        f"devices={tuple(shape)} asks for {size} devices; {there}. To emulate them on CPU, start Python "
        f"with XLA_FLAGS=--xla_force_host_platform_device_count={size}, or say "
        f"jax.config.update('jax_num_cpu_devices', {size}) before anything else uses JAX; on one device, "
        "slowly, PHYSKIT_SPMD=vmap"
    )


def spans_processes(devices: Sequence[Any]) -> bool:
    """Whether devices belong to all processes of a job, rather than to this one alone.

    **Errors:** `DeviceError` where they belong to some of several.
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
