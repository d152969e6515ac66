"""What scripts give to verbs: states, keys and numbers of steps, converted once at the entry."""

import operator
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._errors import (
    ComponentError,
    DeclarationError,
    ObserverError,
    ParameterError,
    PhyskitWarning,
    ShapeError,
)
from .._types import Key, State
from ._concrete import is_concrete
from ._explain import describe

KeyLike: TypeAlias = Any  # a JAX random key, or a whole number from which one is made
Count: TypeAlias = Any  # a whole number: of Python, of NumPy, or a float such as 1e4

_A_STATE = (
    "a state is a component such as Particles(…) or Field(…), a number, an array, or a dict (list, tuple) of "
    "such"
)


def as_key(key: KeyLike | None) -> Key | None:
    """A JAX random key: a whole number becomes `jax.random.key(number)`; None stays None.

    **Errors:** `ParameterError` for what is neither, and for an array of keys.
    """
    if key is None:
        return None
    if isinstance(key, bool) or not isinstance(key, int | np.integer | np.ndarray | jax.Array):
        raise ParameterError(
            f"key is a whole number or a JAX random key, e.g. key=0 or key=jax.random.key(0); got "
            f"{describe(key)}"
        )
    if isinstance(key, int | np.integer):
        return _key_from_seed(int(key))
    if is_random_key(key):
        shape = key.shape
    elif key.dtype == jnp.uint32 and key.ndim:  # as `jax.random.PRNGKey` makes them
        shape = key.shape[:-1]
    elif jnp.issubdtype(key.dtype, jnp.integer) and key.ndim == 0:
        return jax.random.key(key)
    else:
        raise ParameterError(
            f"key is a whole number or a JAX random key, e.g. key=0; got {describe(key)}"
        )
    if shape:
        raise ShapeError(
            f"one key is needed, got an array of {list(shape)} keys: take one, keys[0], or use jax.vmap"
        )
    return jnp.asarray(key)


def as_generator(*seeds: KeyLike) -> np.random.Generator:
    """NumPy's generator of random numbers, for what is drawn on the host.

    - `seeds`: whole numbers from 0, or JAX random keys.

    **Errors:** `ParameterError` for anything else; `DeclarationError` for a traced key.
    """
    words: list[int] = []
    for seed in seeds:
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
            if seed < 0:
                raise ParameterError(f"a seed is a whole number from 0; got {seed}")
            words.append(int(seed))
            continue
        key = as_key(seed)
        if key is None:
            raise ParameterError("a seed is a whole number from 0 or a JAX random key; got None")
        if not is_concrete(key):
            raise DeclarationError(
                "these random numbers are drawn before the program is compiled: not inside of jit, grad or vmap"
            )
        words += np.ravel(jax.random.key_data(key) if is_random_key(key) else key).tolist()
    return np.random.default_rng(words)


def is_random_key(x: object) -> bool:
    """Whether `x` is a typed random key, or an array of them."""
    return isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def _key_from_seed(seed: int) -> Key:
    """`jax.random.key(seed)` of both words of a seed, which JAX cuts to one while doubles are off.

    No program is compiled for it where they are plain to see.
    """
    if jax.config.jax_default_prng_impl != "threefry2x32" or not 0 <= seed < 2**63:
        return jax.random.key(seed)
    words = np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def as_count(value: Count, what: str = "steps", error: type[Exception] = ObserverError) -> int:
    """A whole number from 1: of Python or NumPy, or a float without a fraction such as 1e4.

    **Errors:** `error`, an `ObserverError` if left out, for anything else.
    """
    if isinstance(value, jax.core.Tracer):
        raise error(
            f"{what} must be a whole number from 1 that is known before the program is compiled; got a traced "
            "value: pass it by jax.jit(…, static_argnums=…), or close over it"
        )
    if not isinstance(value, bool | np.bool_):
        try:
            number = operator.index(value)
        except TypeError:
            is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
            number = int(value) if is_whole else 0
        if number >= 1:
            return number
    raise error(f"{what} must be a whole number from 1; got {describe(value)}")


def count_of(what: str, error: type[Exception] = ParameterError) -> Callable[[Count], int]:
    """`as_count` as a converter of the field of a component: `static(converter=count_of("steps"))`."""
    return partial(as_count, what=what, error=error)


def as_state(state: State) -> State:
    """A state whose numbers are JAX arrays: components as they are, Python's numbers as floats.

    A list or tuple of plain numbers becomes one array; in dicts, lists and tuples of anything else, each entry
    is converted. Arrays keep their kind; doubles become single precision while JAX's double precision is off,
    which is said once.

    **Errors:** `ParameterError` for what cannot be a state, `ComponentError` for an empty one.
    """
    if isinstance(state, dict | list | tuple) and not state:
        raise ComponentError(f"the state is empty: {_A_STATE}")
    if state is None:
        raise ParameterError(f"the state is None: {_A_STATE}")
    return _convert(state)


def as_arrays(tree: Any) -> Any:
    """A pytree of arrays: nested lists of plain numbers become one array each, NumPy arrays JAX's."""
    if isinstance(tree, dict):
        return {name: as_arrays(part) for name, part in tree.items()}
    if isinstance(tree, list | tuple) and is_rectangular(tree):
        return jnp.asarray(tree, _float_dtype(tree))
    if type(tree) in (list, tuple):
        return type(tree)(as_arrays(part) for part in tree)

    def convert(leaf: Any) -> Any:
        return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf

    return jax.tree.map(convert, tree)


def note_precision(value: Any) -> None:
    """Warn, once per process, that double precision is off, where a NumPy array of doubles is given."""
    if (
        isinstance(value, np.ndarray)
        and value.dtype in (np.float64, np.complex128)
        and not jax.config.read("jax_enable_x64")
    ):
        # Python shows a text once for each place that it is of: this one, unlike `warn`, which points at the
        # user's line, of which there are many.
        warnings.warn(
            "an array of doubles (float64) is computed with in single precision (float32), as JAX does unless "
            'told otherwise: call jax.config.update("jax_enable_x64", True) before anything else for doubles, '
            "or give float32 arrays",
            PhyskitWarning,
            stacklevel=1,
        )


def _convert(value: Any) -> Any:
    if isinstance(value, eqx.Module | jax.Array | jax.ShapeDtypeStruct) or value is None:
        return value
    if isinstance(value, dict):
        return {name: _convert(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        if is_rectangular(value):
            return jnp.asarray(value, _float_dtype(value))
        parts = [_convert(part) for part in value]
        # Named tuples take their fields one by one.
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if _is_number(value):
        return jnp.asarray(value, _float_dtype(value))
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc":
        note_precision(value)
        return jnp.asarray(value)
    if (
        isinstance(value, type | str | bytes)
        or callable(value)
        or jax.tree.leaves(value) == [value]
    ):
        raise ParameterError(f"{_A_STATE}; got {describe(value)}")
    return value


def _is_number(value: Any) -> bool:
    # Doubles of NumPy are Python floats, too.
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


def is_rectangular(value: Any) -> bool:
    """Whether nested lists hold nothing but numbers, in rows of equal length."""
    if not isinstance(value, list | tuple) or hasattr(value, "_fields") or not value:
        return False
    if all(_is_number(part) for part in value):
        return True
    return all(is_rectangular(part) for part in value) and len({np.shape(p) for p in value}) == 1


def _float_dtype(value: Any) -> np.dtype:
    default = jnp.zeros(()).dtype
    return np.result_type(default, np.complex64) if np.iscomplexobj(value) else default
