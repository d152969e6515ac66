"""`devices=`: the values that a script may give, and the JAX devices that they select."""

import math
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from physkit.core import DeviceError

# What a script may write as `devices=`.
DevicesLike: TypeAlias = int | str | Sequence[Any] | np.ndarray


def resolve_devices(devices: Any) -> tuple[tuple[int, ...], tuple[jax.Device, ...] | None]:
    """Resolve `devices=` to a number of devices per axis of space, and to devices; None: JAX's first ones.

    Trailing axes with one device are dropped: 2, (2, 1) and (2, 1, 1) are the same.

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
    # As objects, so that NumPy turns neither bools into numbers nor devices into text. Empty for what is no
    # sequence, which the error below names.
    array = np.asarray(devices if isinstance(devices, Sequence | np.ndarray) else [], object)
    if array.size:
        if all(map(_is_number, array.flat)) and array.ndim == 1:
            return _check_shape(tuple(map(int, array)), devices), None
        if all(isinstance(x, jax.Device) for x in array.flat):
            if len(set(array.flat)) < array.size:
                raise DeviceError(f"devices={devices!r} names a device twice")
            return _check_shape(array.shape, devices), tuple(array.flat)
    raise DeviceError(
        f"devices={devices!r} is not understood: give numbers per axis as in (2, 2), 'cpu' or 'gpu', "
        "'gpu:2x2', or JAX devices in (nested) lists of equal length"
    )


def _is_number(x: Any) -> bool:
    # To Python a bool is an integer; `devices=True` is a mistake all the same.
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def _from_text(text: str) -> tuple[tuple[int, ...], tuple[jax.Device, ...]]:
    """`"gpu"`, `"gpu:4"` or `"cpu:2x2"`: a platform, and a number per axis."""
    match = re.fullmatch(r"([a-z]+)(?::(\d+(?:x\d+)*))?", text)
    if match is None:
        raise DeviceError(f"devices={text!r} is not understood: 'cpu', 'gpu', 'gpu:4' or 'cpu:2x2'")
    platform, numbers = match.groups()
    try:
        available = tuple(jax.devices(platform))
    except RuntimeError as error:
        kinds = sorted({d.platform for d in jax.devices()})
        raise DeviceError(
            f"devices={text!r}: JAX finds no {platform} here, only {', '.join(kinds)}. `physkit doctor` "
            "lists what there is"
        ) from error
    if numbers is None:
        return (len(available),), available
    shape = _check_shape(tuple(int(n) for n in numbers.split("x")), text)
    require_devices(shape, available)
    return shape, available[: math.prod(shape)]


def _check_shape(shape: tuple[int, ...], devices: DevicesLike) -> tuple[int, ...]:
    """`shape` without trailing ones, so that equal grids of devices share compiled programs."""
    if len(shape) > 3 or any(n < 1 for n in shape):
        raise DeviceError(
            f"devices={devices!r}: one number from 1 per axis of space, three axes at most"
        )
    sharded_axes = [k for k, n in enumerate(shape) if n > 1]
    return tuple(shape[: sharded_axes[-1] + 1]) if sharded_axes else (1,)


def require_devices(shape: Sequence[int], devices: Sequence[jax.Device]) -> None:
    """Check that `devices` are enough for a grid of this `shape`.

    **Errors:** `DeviceError` if they are not, with advice on how to get more or emulate them.
    """
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
        f"with XLA_FLAGS=--xla_force_host_platform_device_count={size}, or call "
        f"jax.config.update('jax_num_cpu_devices', {size}) before anything else uses JAX; on one device, "
        "slowly, PHYSKIT_SPMD=vmap"
    )


def spans_processes(devices: Sequence[jax.Device]) -> bool:
    """Whether devices belong to all processes of a job, rather than to this one alone.

    **Errors:** `DeviceError` if they belong to some of the processes, but not to all.
    """
    count = jax.process_count()
    owners = {device.process_index for device in devices}
    if count == 1 or owners == {jax.process_index()}:
        return False
    # A process without a device would never enter the program, and the control channel would wait for it.
    if len(owners) < count:
        raise DeviceError(
            f"the {len(devices)} devices asked for belong to {len(owners)} of {count} processes: ask for "
            f"all {jax.device_count()}, start fewer processes, or give jax.local_devices() for a run of "
            "each process's own"
        )
    return True
