"""A look at an array that costs little however large it is: nothing is computed on a device."""

import numpy as np

_MAX_SAMPLE = 20_000  # numbers that are looked at
_MAX_BYTES = 2**22  # that are fetched from a device for it
_MAX_SHOWN = 6  # numbers that are written out


def read(array: object) -> np.ndarray | None:
    """The numbers of an array of NumPy or JAX; None where they are traced, gone, or too many to fetch."""
    if not hasattr(array, "dtype") or not hasattr(array, "shape"):
        return None
    try:
        if not isinstance(array, np.ndarray | np.generic):
            devices = getattr(array, "devices", tuple)()
            # The memory of one CPU device is that of the host: nothing is copied.
            is_here = len(devices) == 1 and all(d.platform == "cpu" for d in devices)
            if not is_here and array.nbytes > _MAX_BYTES:
                return None
        found = np.asarray(array)
        return found if found.dtype.kind in "biufc" else found.astype(np.float32)
    # Traced, donated, sharded over other processes, or a random key: there is nothing to show.
    except Exception:
        return None


def sample(values: np.ndarray, count: int = _MAX_SAMPLE) -> np.ndarray:
    """At most `count` of the numbers, evenly spaced in memory."""
    # Of each axis only every so many, from the first on: no copy of a large array is made.
    while values.size > count:
        axis = int(np.argmax(values.shape))
        step = min(-(-values.size // count), max(values.shape[axis], 2))
        values = values[(slice(None),) * axis + (slice(None, None, step),)]
    return values


def describe_shape(array: object) -> str:
    """The type of an array and its shape, as `float32[100 3]`."""
    return f"{array.dtype}[{' '.join(map(str, array.shape))}]"


def show_number(value: object) -> str:
    """A number as one types it: 0.1 of single precision is 0.1."""
    return np.array2string(np.asarray(value), precision=6, separator=", ", threshold=_MAX_SHOWN)


def describe_values(array: object) -> str:
    """The numbers of an array in a few words: all of a few, the range of many."""
    values = read(array)
    if values is None or not values.size:
        return ""
    if values.size <= _MAX_SHOWN:
        return show_number(values).replace("\n", " ")
    looked_at = sample(values)
    about = "" if looked_at.size == values.size else "about "
    if values.dtype.kind == "b":
        return f"{about}{100 * looked_at.mean():.3g} % true"
    kind = values.dtype.kind
    magnitudes = np.abs(looked_at) if kind == "c" else looked_at
    finite = magnitudes[np.isfinite(magnitudes)]
    wrong = magnitudes.size - finite.size
    note = f", {about}{wrong} of {magnitudes.size} not finite" if wrong else ""
    if not finite.size:
        return note.removeprefix(", ")
    low, high = finite.min(), finite.max()
    if low == high:
        return f"{'|z| = ' if kind == 'c' else ''}{show_number(low)} everywhere{note}"
    mean = f", mean {show_number(np.float64(finite.mean(dtype=np.float64)))}" if kind == "f" else ""
    mark = "|z| " if kind == "c" else ""
    return f"{mark}{about}{show_number(low)} … {show_number(high)}{mean}{note}"
