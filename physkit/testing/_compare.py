"""Comparing trees of arrays leaf by leaf, with messages that name the leaf and the numbers."""

import contextlib
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import PyTree

from ._tolerances import tolerance


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Double precision for the time of a check, whatever the user's setting; also a decorator."""
    with jax.enable_x64(True):
        yield


def leaves_by_name(tree: PyTree, prefix: str = "") -> dict[str, Any]:
    """The leaves of `tree` by their path, e.g. `.potential.epsilon`."""
    pairs = jax.tree_util.tree_leaves_with_path(tree)
    return {prefix + jax.tree_util.keystr(path): leaf for path, leaf in pairs}


def is_key(x: ArrayLike) -> bool:
    """Whether `x` is a typed random key."""
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def to_numpy(leaf: PyTree) -> Any:
    """A leaf as numbers that can be compared; random keys by their words."""
    return np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)


def check_structure(computed: PyTree, expected: PyTree, what: str) -> None:
    """The same tree with the same shapes and types of numbers, so that a scan can carry it."""
    now, before = leaves_by_name(computed), leaves_by_name(expected)
    if list(now) != list(before):
        raise AssertionError(
            f"{what}: the structure differs; only in the result {sorted(set(now) - set(before))}, "
            f"only expected {sorted(set(before) - set(now))}"
        )
    for path, leaf in now.items():
        kind, wanted = _kind(leaf), _kind(before[path])
        if kind != wanted:
            raise AssertionError(
                f"{what}: {path or 'the value'} is {kind[0]}{list(kind[1])}, expected "
                f"{wanted[0]}{list(wanted[1])}"
            )
    if jax.tree.structure(computed) != jax.tree.structure(expected):
        raise AssertionError(
            f"{what}: the trees differ in a static field or a type; "
            f"got {jax.tree.structure(computed)}, expected {jax.tree.structure(expected)}"
        )


def _kind(leaf: PyTree) -> tuple[Any, tuple[int, ...]]:
    return getattr(leaf, "dtype", type(leaf).__name__), jnp.shape(leaf)


def check_finite(tree: PyTree, what: str) -> None:
    """No NaN and no infinity in any floating leaf."""
    for path, leaf in leaves_by_name(tree).items():
        if eqx.is_inexact_array(leaf) and not np.all(np.isfinite(np.asarray(leaf))):
            bad = ~np.isfinite(np.asarray(leaf))
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            raise AssertionError(
                f"{what}: {path or 'it'} is not finite ({np.asarray(leaf)[index]} at "
                f"{list(index)}; {int(bad.sum())} of {bad.size} elements)"
            )


def check_equal(
    computed: PyTree,
    expected: PyTree,
    what: str,
    kind: str = "sum",
    *,
    relative: float | None = None,
    floor: float | dict[str, float] = 0.0,
) -> None:
    """All leaves agree, relative to the largest number of each leaf.

    **Arguments:**

    - `kind`: a row of the tolerance table; `relative` replaces its number.
    - `floor`: absolute differences up to this one are round-off, for all leaves or by path.
    """
    check_shapes(computed, expected, what)
    wanted = leaves_by_name(expected)
    for path, leaf in leaves_by_name(computed).items():
        a, b = to_numpy(leaf), to_numpy(wanted[path])
        if not np.issubdtype(b.dtype, np.inexact):
            if not np.array_equal(a, b):
                raise AssertionError(f"{what}: {path or 'the value'} differs; {_worst(a, b)}")
            continue
        least = floor.get(path, 0.0) if isinstance(floor, dict) else floor
        rtol = tolerance(a.dtype, kind) if relative is None else relative
        size = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b)))
        allowed = rtol * size + least
        with np.errstate(invalid="ignore"):
            far = np.abs(a - b) > allowed
        if np.any(far | (np.isfinite(a) != np.isfinite(b))):
            raise AssertionError(
                f"{what}: {path or 'the value'} differs; {_worst(a, b)}, tolerance {allowed:.3g} "
                f"({kind}, relative {rtol:.3g})"
            )


def check_shapes(computed: PyTree, expected: PyTree, what: str) -> None:
    """The same leaves with the same shapes; precision may differ."""
    now, before = leaves_by_name(computed), leaves_by_name(expected)
    shape = lambda leaves: {path: jnp.shape(leaf) for path, leaf in leaves.items()}
    if shape(now) != shape(before):
        raise AssertionError(
            f"{what}: the shapes differ; computed {shape(now)}, expected {shape(before)}"
        )


def largest_magnitude(leaf: PyTree) -> float:
    """A typical size of a leaf's finite numbers; 1 where all are zero."""
    size = np.abs(np.asarray(leaf, dtype=np.complex128))
    return float(np.mean(size[np.isfinite(size)])) or 1.0 if np.any(np.isfinite(size)) else 1.0


def _worst(a: ArrayLike, b: ArrayLike) -> str:
    with np.errstate(invalid="ignore"):
        difference = np.abs(a.astype(complex) - b.astype(complex))
    broken = np.isfinite(a) != np.isfinite(b) if np.issubdtype(b.dtype, np.inexact) else a != b
    difference = np.where(broken, np.inf, np.nan_to_num(difference, nan=0.0))
    index = np.unravel_index(int(np.argmax(difference)), difference.shape)
    where = f" at {[int(i) for i in index]}" if index else ""
    return (
        f"computed {a[index]:.9g}, expected {b[index]:.9g}{where}, "
        f"difference {difference[index]:.3g}"
    )
