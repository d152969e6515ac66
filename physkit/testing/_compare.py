"""Comparing trees of arrays leaf by leaf, with messages that name the leaf and the numbers."""

import contextlib
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import PyTree, is_random_key

# How closely numbers must agree, by kind of comparison and precision: one table for all checks.
# kind: (float32, float64), relative to the largest number that is compared
TOLERANCES: dict[str, tuple[float, float]] = {
    "same": (0.0, 0.0),  # bit for bit
    "round-off": (2e-6, 4e-15),  # the same few operations in another order
    "sum": (2e-5, 1e-12),  # long sums in another order
    "solve": (1e-4, 1e-10),  # linear solves, a few steps, transforms there and back
    "gradient": (1e-4, 1e-10),  # two ways to the same derivative, both exact
    "dot product": (1e-5, 1e-12),  # ⟨Jv, w⟩ against ⟨v, Jᵀw⟩
    "finite difference": (3e-2, 1e-6),  # a derivative against central differences
    "precision": (1e-3, 1e-3),  # a result in float32 against the same in float64
}


def tolerance(dtype, kind: str) -> float:
    """The relative tolerance for comparisons of `kind` in `dtype`."""
    single, double = TOLERANCES[kind]
    return single if jnp.finfo(dtype).bits == 32 else double


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Double precision for the time of a check, whatever the user's setting; also a decorator."""
    with jax.enable_x64(True):
        yield


def leaves_by_name(tree: PyTree, prefix: str = "") -> dict[str, Any]:
    """The leaves of `tree` by their path, e.g. `.potential.epsilon`."""
    pairs = jax.tree_util.tree_leaves_with_path(tree)
    return {prefix + jax.tree_util.keystr(path): leaf for path, leaf in pairs}


def to_numpy(leaf: PyTree) -> Any:
    """A leaf as numbers that can be compared; random keys by their words."""
    return np.asarray(jax.random.key_data(leaf) if is_random_key(leaf) else leaf)


def check_structure(computed: PyTree, expected: PyTree, what: str) -> None:
    """The same tree with the same shapes and types of numbers, so that a scan can carry it."""
    found, wanted = leaves_by_name(computed), leaves_by_name(expected)
    if list(found) != list(wanted):
        raise AssertionError(
            f"{what}: the structure differs; only in the result {sorted(set(found) - set(wanted))}, "
            f"only expected {sorted(set(wanted) - set(found))}"
        )
    for path, leaf in found.items():
        dtype, shape = _dtype_and_shape(leaf)
        wanted_dtype, wanted_shape = _dtype_and_shape(wanted[path])
        if (dtype, shape) != (wanted_dtype, wanted_shape):
            raise AssertionError(
                f"{what}: {path or 'the value'} is {dtype}{list(shape)}, expected "
                f"{wanted_dtype}{list(wanted_shape)}"
            )
    # Equal leaves do not make equal trees: a static field is part of the structure, and a scan
    # rejects a carry whose structure changes.
    if jax.tree.structure(computed) != jax.tree.structure(expected):
        raise AssertionError(
            f"{what}: the trees differ in a static field or a type; "
            f"got {jax.tree.structure(computed)}, expected {jax.tree.structure(expected)}"
        )


def _dtype_and_shape(leaf: PyTree) -> tuple[Any, tuple[int, ...]]:
    return getattr(leaf, "dtype", type(leaf).__name__), jnp.shape(leaf)


def check_finite(tree: PyTree, what: str) -> None:
    """No NaN and no infinity in any floating leaf."""
    for path, leaf in leaves_by_name(tree).items():
        if eqx.is_inexact_array(leaf) and not np.all(np.isfinite(np.asarray(leaf))):
            not_finite = ~np.isfinite(np.asarray(leaf))
            index = tuple(int(i) for i in np.argwhere(not_finite)[0])
            raise AssertionError(
                f"{what}: {path or 'it'} is not finite ({np.asarray(leaf)[index]} at "
                f"{list(index)}; {int(not_finite.sum())} of {not_finite.size} elements)"
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
                raise AssertionError(
                    f"{what}: {path or 'the value'} differs; {_describe_largest_difference(a, b)}"
                )
            continue
        round_off = floor.get(path, 0.0) if isinstance(floor, dict) else floor
        rtol = tolerance(a.dtype, kind) if relative is None else relative
        # Relative to the leaf's largest number, not element by element: a force that cancels to
        # nearly zero carries the round-off of its large terms.
        largest = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b)))
        allowed = rtol * largest + round_off
        with np.errstate(invalid="ignore"):
            too_far = np.abs(a - b) > allowed
        # ∞ − ∞ is NaN, which exceeds nothing: the same ∞ or NaN on both sides counts as equal, on one as wrong.
        if np.any(too_far | _differ_in_kind(a, b)):
            raise AssertionError(
                f"{what}: {path or 'the value'} differs; {_describe_largest_difference(a, b)}, "
                f"tolerance {allowed:.3g} ({kind}, relative {rtol:.3g})"
            )


def _differ_in_kind(a: ArrayLike, b: ArrayLike) -> Any:
    """Where one number is finite, infinite or NaN, and the other is not."""
    return (np.isfinite(a) != np.isfinite(b)) | (np.isnan(a) != np.isnan(b))


def check_shapes(computed: PyTree, expected: PyTree, what: str) -> None:
    """The same leaves with the same shapes; precision may differ."""
    found, wanted = _shapes_by_name(computed), _shapes_by_name(expected)
    if found != wanted:
        raise AssertionError(f"{what}: the shapes differ; computed {found}, expected {wanted}")


def _shapes_by_name(tree: PyTree) -> dict[str, tuple[int, ...]]:
    return {path: jnp.shape(leaf) for path, leaf in leaves_by_name(tree).items()}


def typical_magnitude(leaf: PyTree) -> float:
    """A typical size of a leaf's finite numbers; 1 where all are zero."""
    # Complex, so that real, complex and integer leaves take one path.
    magnitudes = np.abs(np.asarray(leaf, dtype=np.complex128))
    finite = magnitudes[np.isfinite(magnitudes)]
    return float(np.mean(finite)) or 1.0 if finite.size else 1.0


def _describe_largest_difference(a: ArrayLike, b: ArrayLike) -> str:
    with np.errstate(invalid="ignore"):
        difference = np.abs(a.astype(complex) - b.astype(complex))
    # What is finite on one side only is the worst of all, whatever the other elements differ by.
    is_inexact = np.issubdtype(b.dtype, np.inexact)
    mismatched = _differ_in_kind(a, b) if is_inexact else a != b
    difference = np.where(mismatched, np.inf, np.nan_to_num(difference, nan=0.0))
    index = np.unravel_index(int(np.argmax(difference)), difference.shape)
    where = f" at {[int(i) for i in index]}" if index else ""
    return (
        f"computed {a[index]:.9g}, expected {b[index]:.9g}{where}, "
        f"difference {difference[index]:.3g}"
    )
