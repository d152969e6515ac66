"""`check_gradient`: derivatives against finite differences, along each leaf and along all."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import Module, ParameterError, PyTree, cast_floats, explain_call

from ._compare import (
    check_equal,
    check_finite,
    double_precision,
    leaves_by_name,
    tolerance,
    typical_magnitude,
)
from ._trees import (
    as_array_like,
    first_line,
    flatten_floats,
    parameter_paths,
    random_direction,
    random_like,
    require_traceable,
)

# Relative to a leaf's size. Fourth-order differences err by h⁴ and by ε/h: in float64 least near
# ε^(1/5) = 7e-4, and a smaller step keeps away from kinks and cutoffs nearby.
_STEP = 1e-4
# Where the second derivative jumps, as that of a shifted force at its cutoff, differences err by h times the
# jump, if a pair passes it within h: another try with this part of the step nearly never meets one.
_NEARER = 0.1
# From where the h² term leads the higher ones, down to where round-off hides it: points below the
# noise are left out, and the smallest four that remain are fitted.
_TAYLOR_STEPS = [1e-3 * 2.0**-k for k in range(10)]
_TAYLOR_ORDER = 1.95  # of 2: what h³ does to the slope over a factor of 8 in h


@explain_call
@double_precision()
def check_gradient(
    function: Callable[[Any], Any],
    tree: PyTree,
    *,
    ignore: Sequence[str] = (),
    require_gradient: Iterable[str] | None = None,
    modes: Sequence[str] = ("forward", "reverse"),
    directions: int = 2,
    kind: str = "finite difference",
    relative: float | None = None,
    noise: float = float(np.finfo(np.float64).eps),
    seed: int = 0,
    what: str = "check_gradient",
) -> None:
    """The derivative of `function` by every floating leaf of `tree` is right, in double precision.

        check_gradient(lambda force: force.energy(clock, state), force)

    Along random directions within each leaf, `jvp` must equal fourth-order central differences;
    along one direction through all leaves the Taylor remainder |f(x + hv) − f(x) − h Jv| must fall
    as h² (fitted order ≥ 1.95); and ⟨Jv, w⟩ = ⟨v, Jᵀw⟩ to 1e-12, which ties `vjp` to `jvp`. A
    derivative that is NaN, or zero where the function does change, fails with the leaf's name.

    **Arguments:**

    - `function`: from a tree like `tree` to any tree of arrays, smooth near `tree`.
    - `ignore`: leaves (parts of their paths) that may have no effect at all. Every other leaf that a
      Module declares with `param()`, and every array outside of Modules, must have one: a
      parameter without any was usually consumed when the Module was built.
    - `require_gradient`: the paths that must have an effect, instead of those.
    - `modes`: leave out `"forward"` for a function with a rule for reverse mode only.
    - `directions`, `seed`: how many random directions per leaf, and which.
    - `kind`, `relative`: row of the tolerance table for differences, or a number instead.
    - `noise`: relative round-off of the function's values, where it is more than that of float64.

    **Errors:** `AssertionError` that names the leaf, both values and the tolerance; `ParameterError` for
    paths and modes that there are not.
    """
    tree = cast_floats(tree, jnp.float64)
    if require_gradient is None:
        require_gradient = parameter_names(tree)
    strict = {p for p in require_gradient if not any(name in p for name in ignore)}
    paths, leaves, join = flatten_floats(tree)
    if not leaves:
        raise AssertionError(f"{what}: there is no floating leaf to differentiate by")
    _check_names(strict, paths, modes)
    call = require_traceable(lambda values: _outputs(function(join(values))), what)
    value = call(leaves)
    check_finite(value, f"{what}: the value")
    if not value:
        raise AssertionError(f"{what}: the function returns no floating numbers")
    for path, x in value.items():
        if jnp.finfo(x.dtype).bits < 64:
            raise AssertionError(
                f"{what}: {path or 'the value'} is {x.dtype} where all that goes in is float64: a "
                "cast, or a constant of another precision, loses digits"
            )
    derivatives = _Derivatives(call, leaves, value, modes, noise, what)

    for path, gradient in zip(paths, derivatives.gradient or (), strict=False):
        check_finite(gradient, f"{what}: the derivative by {path or 'the argument'} (reverse mode)")
    for number, path in enumerate(paths):
        effect = 0.0
        for sample in range(directions):
            direction = [np.zeros(x.shape, x.dtype) for x in leaves]
            direction[number] = random_direction(leaves[number], (seed, number, sample))
            name = f"{what}: the derivative by {path or 'the argument'}"
            effect = max(effect, derivatives.check_along(direction, name, kind, relative))
        # A leaf of infinities (no limit set) cannot be displaced, so it may be without effect.
        if path in strict and effect == 0.0 and np.any(np.isfinite(leaves[number])):
            raise AssertionError(
                f"{what}: {path} has no effect: its derivative is 0 and so is the finite "
                "difference. Was it consumed in __init__ (what depends on parameters belongs into "
                "prepare, or into the call)? If it may be without effect here, name it in ignore=…"
            )
    # Along all leaves at once, mixed second derivatives count, too.
    everywhere = [random_direction(x, (seed, i)) for i, x in enumerate(leaves)]
    derivatives.check_taylor(everywhere)
    if set(modes) >= {"forward", "reverse"}:
        derivatives.check_dot(everywhere)


def _check_names(required: Iterable[str], paths: Sequence[str], modes: Sequence[str]) -> None:
    """Of a misspelled name nothing would be examined."""
    if unknown := sorted(set(required) - set(paths)):
        raise ParameterError(
            f"require_gradient names {unknown}, which are no floating leaves; these are: {paths}"
        )
    if not modes or not set(modes) <= {"forward", "reverse"}:
        raise ParameterError(f'modes are of "forward" and "reverse"; got {modes!r}')


def parameter_names(tree: PyTree) -> set[str]:
    """Leaves that ought to matter: those declared with `param()`, and arrays outside of Modules."""
    nodes = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda x: isinstance(x, Module))
    outside = {jax.tree_util.keystr(p) for p, x in nodes if eqx.is_inexact_array(x)}
    return parameter_paths(tree) | outside


def _outputs(result: PyTree) -> dict[str, Any]:
    return {path: x for path, x in leaves_by_name(result).items() if eqx.is_inexact_array(x)}


class _Derivatives:
    """One function at one point, with its compiled derivatives."""

    def __init__(self, call, leaves, value, modes, noise, what):
        self.call, self.leaves, self.value, self.what = call, leaves, value, what
        self.noise = noise
        # One weight per output element: ⟨w, f⟩ is what reverse mode differentiates.
        self.weights = {
            path: random_like(x, (17, i)) / typical_magnitude(x)
            for i, (path, x) in enumerate(value.items())
        }
        self.by_forward = "forward" in modes

        def push_forward(tangents):
            return jax.jvp(call, (leaves,), (tangents,))[1]

        def pull_back(cotangents):
            return jax.vjp(call, leaves)[1](cotangents)[0]

        self._jvp = eqx.filter_jit(push_forward)
        self._vjp = eqx.filter_jit(pull_back)
        self.gradient = None
        if "reverse" in modes:
            self.gradient = self._or_fail(self._vjp, self.weights, "reverse")

    def _or_fail(self, derivative, argument, mode):
        try:
            return derivative(argument)
        except Exception as error:
            raise AssertionError(
                f"{self.what}: {mode}-mode differentiation fails: {first_line(error)}"
            ) from error

    def check_along(self, direction, name, kind, relative) -> float:
        """AD against differences along one direction; the size of the effect."""
        try:
            return self._check_along(direction, _STEP, name, kind, relative)
        except AssertionError as error:
            try:  # a wrong derivative is as wrong there
                return self._check_along(direction, _NEARER * _STEP, name, kind, relative)
            except AssertionError:
                raise error from None

    def _check_along(self, direction, h, name, kind, relative) -> float:
        expected, floor = self._difference(direction, h)
        if self.by_forward:
            computed = self._or_fail(self._jvp, direction, "forward")
        else:
            computed = {"": self._dot(self.gradient, direction)}
            expected = {"": _pair(self.weights, expected)}
            floor = {"": sum(_total(self.weights[p]) * floor[p] for p in floor)}
        for path, x in computed.items():
            check_finite(x, f"{name}{_of(path)}")
        # Exactly 0 is a fault of its own: a wrong derivative is nearly never 0, a severed one always.
        is_visible = any(np.any(np.abs(expected[p]) > 10 * floor[p]) for p in expected)
        largest_computed = max(_largest(x) for x in computed.values())
        largest_expected = max(_largest(x) for x in expected.values())
        if is_visible and largest_computed == 0.0:
            raise AssertionError(
                f"{name} is exactly 0, but the finite difference is {largest_expected:.6g} (tolerance "
                f"{tolerance(jnp.float64, kind):.3g}): the gradient is cut off, by stop_gradient, "
                "a cast to integers, or a rule of its own"
            )
        for path, x in computed.items():
            about = f"{name}{_of(path)}, along a random direction (automatic against differences)"
            check_equal(x, expected[path], about, kind, relative=relative, floor=floor[path])
        return max(largest_computed, largest_expected)

    def check_taylor(self, direction) -> None:
        """|f(x + hv) − f(x) − h Jv| falls as h²."""
        if self.by_forward:
            measure = self._scaled_vector
            slope = measure(self._jvp(direction))
        else:  # without a forward mode only ⟨w, f⟩ has a known slope
            measure = self._weighted_sum
            slope = np.atleast_1d(self._dot(self.gradient, direction))
        start = measure(self.value)
        # A remainder that is only some digits above round-off bends the fit.
        noise = 1e4 * self.noise * np.linalg.norm(start)
        points = []
        for h in _TAYLOR_STEPS:
            displaced = measure(self.call(self._displace(direction, h)))
            remainder = float(np.linalg.norm(displaced - start - h * slope))
            if np.isfinite(remainder) and remainder > noise:
                points.append((np.log(h), np.log(remainder)))
        if len(points) < 3:
            return  # linear, as far as one can tell above round-off
        order = float(np.polyfit(*zip(*points[-4:], strict=True), 1)[0])
        if order < _TAYLOR_ORDER:
            raise AssertionError(
                f"{self.what}: the Taylor remainder along a direction through all leaves has order "
                f"{order:.3f}, expected at least {_TAYLOR_ORDER}: the derivative is wrong, or the "
                "function is not smooth here"
            )

    def check_dot(self, direction) -> None:
        """⟨Jv, w⟩ = ⟨v, Jᵀw⟩."""
        tangent = self._jvp(direction)
        forward, reverse = _pair(self.weights, tangent), self._dot(self.gradient, direction)
        # The terms of both sums, by magnitude: what their round-off is relative to.
        magnitude = sum(_total(self.weights[p] * np.asarray(tangent[p])) for p in tangent)
        magnitude += sum(
            _total(np.asarray(g) * v) for g, v in zip(self.gradient, direction, strict=True)
        )
        allowed = tolerance(jnp.float64, "dot product") * magnitude
        if not abs(forward - reverse) <= allowed:
            raise AssertionError(
                f"{self.what}: forward and reverse mode disagree: ⟨Jv, w⟩ = {forward:.15g}, "
                f"⟨v, Jᵀw⟩ = {reverse:.15g}, tolerance {allowed:.3g}"
            )

    def _difference(self, direction, h):
        """Fourth-order central difference of step h, and the round-off in it, by output."""
        near = [self.call(self._displace(direction, s)) for s in (h, -h)]
        wide = [self.call(self._displace(direction, s)) for s in (2 * h, -2 * h)]
        slope, floor = {}, {}
        for path, x in self.value.items():
            near_change = np.asarray(near[0][path]) - np.asarray(near[1][path])
            wide_change = np.asarray(wide[0][path]) - np.asarray(wide[1][path])
            slope[path] = (8 * near_change - wide_change) / (12 * h)
            # Round-off of the values over the step; 50 for functions of many operations.
            floor[path] = 50 * self.noise * _largest(x) / h
        return slope, floor

    def _scaled_vector(self, tree):
        parts = [
            np.ravel(np.asarray(x)) / typical_magnitude(self.value[p]) for p, x in tree.items()
        ]
        return np.concatenate(parts)

    def _weighted_sum(self, tree):
        return np.atleast_1d(_pair(self.weights, tree))

    def _displace(self, direction, h):
        # On the host: on the device each shape of leaf would compile a program of its own.
        pairs = zip(self.leaves, direction, strict=True)
        return [as_array_like(x, np.asarray(x) + h * v) for x, v in pairs]

    def _dot(self, gradient, direction) -> float:
        pairs = zip(gradient, direction, strict=True)
        return float(sum(float(np.sum(np.asarray(g) * v).real) for g, v in pairs))


def _of(path: str) -> str:
    return f" of {path}" if path else ""


def _pair(weights, tree) -> float:
    return float(
        sum(float(np.sum(np.asarray(weights[p]) * np.asarray(tree[p])).real) for p in tree)
    )


def _largest(x) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def _total(x) -> float:
    return float(np.sum(np.abs(np.asarray(x))))
