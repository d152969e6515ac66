"""Numbers that the host can see, and those that a trace hides."""

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from .._errors import DeclarationError


def concrete_value(x: Any) -> np.ndarray | None:
    """The numbers in `x`; None where `x` is a tracer or None, or has something else than numbers in it."""
    if x is None or isinstance(x, jax.core.Tracer):
        return None
    numbers = np.asarray(x)
    # Arrays of objects have tracers in them, or placeholders such as shapes.
    return None if numbers.dtype == object else numbers


def concrete_primal(x: Any) -> np.ndarray | None:
    """The numbers in `x`, also where a derivative by them is under way; None inside of `jit` and `vmap`."""
    return concrete_value(jax.lax.stop_gradient(x) if isinstance(x, jax.core.Tracer) else x)


def is_tracing() -> bool:
    """Whether a trace is under way: it takes up all operations, those on numbers that it closes over, too."""
    # Of all operations this one needs no program of its own where there is no trace.
    key = jax.random.wrap_key_data(np.zeros(2, np.uint32), impl="threefry2x32")
    return isinstance(key, jax.core.Tracer)


def refuse_inside_traces(what: str) -> None:
    """**Errors:** `DeclarationError` where a loop of the host is called inside of `jit`, `grad` or `vmap`."""
    if is_tracing():
        raise DeclarationError(
            f"{what} is a loop of the host, and cannot be part of jit, grad or vmap: call it outside of them"
        )


def evaluate_now() -> contextlib.AbstractContextManager:
    """Operations on numbers that can be seen are carried out at once, inside a trace, too."""
    # Not `ensure_compile_time_eval`, which is passed on to programs that are traced inside of it: their
    # constants would be computed operation by operation.
    return jax.core.eval_context() if is_tracing() else contextlib.nullcontext()


def is_concrete(tree: Any) -> bool:
    """Whether no leaf of `tree` is a tracer, so that the host can read every number."""
    # Not through `concrete_value`: random keys have no NumPy array, and nothing needs to be copied.
    return not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(tree))


def as_device_array(numbers: Any, dtype: DTypeLike | None = None) -> jax.Array:
    """Numbers of the host as a JAX array, strongly typed; without a dtype in JAX's form of their own.

    Converted on the host: JAX would compile a program for each shape and pair of dtypes.
    """
    host = np.asarray(numbers)
    # Without a warning of precision: callers say it once.
    canonical = jax.dtypes.canonicalize_dtype(host.dtype if dtype is None else dtype)
    cast = host.astype(canonical)
    are_integers = host.dtype.kind in "iu" and canonical.kind in "iu"
    if are_integers and host.dtype != canonical and np.any(cast != host):
        raise OverflowError(f"whole numbers up to {np.max(np.abs(host))} do not fit {canonical}")
    return jnp.asarray(cast, canonical)
