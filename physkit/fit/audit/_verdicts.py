"""The verdict on one derivative: automatic differentiation against what the run does when a leaf changes."""

import dataclasses

import numpy as np
from jaxtyping import Array

from ._audited_leaves import AuditedLeaf
from ._audited_run import AuditedRun, Outputs
from ._finite_differences import (
    FiniteDifferences,
    Increments,
    drops_at_once,
    local_orders,
    random_direction,
)

MIN_ORDER = 1.95  # of the Taylor remainder, which is 2 for a right derivative
MAX_AMPLIFICATION = 1e3  # by how much the run may amplify what Taylor tests are to resolve
_MIN_RESOLUTION = 1e3  # an increment over its rounding, where it alone is to show a slope

NO_EFFECT = "read, without effect on the result here"
ONLY_ROUNDING = "only rounding changes"
_CUT = "exactly 0, but the run changes smoothly: stop_gradient, a cast to integers, or a rule of its own"
_JUMPS = "exactly 0, and the run changes in jumps: behind a rounding, an integer or a comparison"
_UNREAD = "the run never reads it: consumed in __init__, or a parameter without use"


@dataclasses.dataclass(frozen=True)
class AuditRow:
    """One line of an audit.

    - `verdict`: one word, see `GradientAudit`; `note` says more.
    - `order`: of the Taylor remainder; NaN where all of it is rounding.
    - `mismatch`: |⟨Jv, w⟩ − ⟨v, Jᵀw⟩| over the size of both.
    - `size`: the largest entry of the gradient; `slope` and `difference`: along the direction tried.
    """

    name: str
    shape: tuple[int, ...]
    verdict: str
    note: str = ""
    order: float = float("nan")
    mismatch: float = float("nan")
    size: float = float("nan")
    slope: float = float("nan")
    difference: float = float("nan")

    @property
    def has_no_effect(self) -> bool:
        """Whether no other value of this leaf changed one bit."""
        return self.verdict in ("unused", "UNREAD") or self.note == NO_EFFECT


def judge_derivative(
    run: AuditedRun,
    leaf_index: int,
    leaf: AuditedLeaf,
    gradient: np.ndarray | None,
    *,
    noise: float,
    double: bool,
    require_gradient: bool,
    is_ignored: bool,
    seed: int,
) -> AuditRow:
    """The verdict on the derivative by one leaf, along a random direction."""
    direction = random_direction(leaf.value, (seed, leaf_index))
    differences = FiniteDifferences(run, leaf_index, direction, noise, double)
    row = AuditRow(leaf.name, tuple(leaf.value.shape), verdict="right")
    try:
        tangents_out = run.jvp(differences.tangents())
    except (TypeError, ValueError, NotImplementedError):  # a rule for reverse mode only
        tangents_out = None
    if gradient is None and tangents_out is None:
        return _with(row, "FAILS", "neither mode works")
    slope, mismatch = _slope(run, direction, tangents_out, gradient)
    # From the gravest fault down: a NaN, a derivative of exactly 0, a wrong one, modes that disagree.
    size = np.nan if gradient is None else float(np.max(np.abs(gradient), initial=0.0))
    row = dataclasses.replace(row, size=size, mismatch=mismatch, slope=slope)
    not_finite = 0 if gradient is None else int(np.sum(~np.isfinite(gradient)))
    if gradient is not None and not_finite:
        return _with(row, "NaN", _first_not_finite(gradient, not_finite))
    if not np.isfinite(slope):
        return _with(row, "NaN", "in forward mode")
    # Along one direction a derivative may vanish by chance: all of the gradient must be 0.
    if slope == 0 and not (gradient is not None and np.any(gradient)):
        row = _judge_zero(differences, leaf, row, require_gradient)
        return (
            dataclasses.replace(row, verdict="cut") if row.verdict == "CUT" and is_ignored else row
        )
    row = _taylor_test(differences, row)
    if row.verdict == "right" and mismatch > differences.mode_tolerance:
        return _with(row, "MODES", "forward and reverse mode disagree: a custom rule is wrong")
    return row


def _with(row: AuditRow, verdict: str, note: str = "") -> AuditRow:
    return dataclasses.replace(row, verdict=verdict, note=note)


def _slope(
    run: AuditedRun,
    direction: np.ndarray,
    tangents_out: Outputs | None,
    gradient: np.ndarray | None,
) -> tuple[float, float]:
    """⟨∇J, v⟩, and by how much the modes disagree, over the size of what is summed."""
    forward = np.nan if tangents_out is None else run.project(tangents_out)
    if gradient is None:
        return forward, np.nan
    terms = np.asarray(gradient) * direction
    reverse = float(np.sum(terms).real)
    if tangents_out is None:
        return reverse, np.nan
    forward_terms = sum(
        np.sum(np.abs(run.weights[name] * np.asarray(x))) for name, x in tangents_out.items()
    )
    size = float(forward_terms + np.sum(np.abs(terms)))
    return reverse, abs(forward - reverse) / size if size > 0 else 0.0


def _taylor_test(differences: FiniteDifferences, row: AuditRow) -> AuditRow:
    """R(h) = |J(x + h v) − J(x) − h ⟨∇J, v⟩| falls as h² where the derivative is right."""
    noise = differences.noise
    finite: Increments = []
    for steps in (differences.steps, differences.tiny_steps):
        increments = [(h, differences.increment(h)) for h in steps]
        # Of tiny steps those that rounding leaves digits of.
        least = 0.0 if steps is differences.steps else _MIN_RESOLUTION * noise
        finite = [(h, d) for h, d in increments if np.isfinite(d) and abs(d) >= least]
        if finite:
            break
    if not finite:
        return _with(row, "WRONG", "no run nearby is finite")
    # The difference to print is that of the step least troubled by curvature and by rounding.
    h, d = max(finite, key=lambda pair: -abs(abs(pair[1]) - 1e4 * noise))
    row = dataclasses.replace(row, difference=d / h)
    remainders = [(h, abs(d - h * row.slope), differences.noise_of(d)) for h, d in finite]
    # Rounding of a remainder has no order.
    remainders = [(h, r) for h, r, rounding in remainders if r > 10 * rounding]
    if len(remainders) < 3:
        return _with(row, "right", "linear, as far as rounding lets one see")
    orders = [
        float(np.polyfit(*np.log(np.asarray(remainders[k : k + 3])).T, 1)[0])
        for k in range(max(0, len(remainders) - 5), len(remainders) - 2)
    ]
    # The smallest steps are closest to the limit; the last ones may already touch the noise.
    order = orders[-1] if orders[-1] >= MIN_ORDER else max(orders[-2:])
    row = dataclasses.replace(row, order=order)
    if order >= MIN_ORDER:
        return _with(row, "right")
    return _explain_low_order(differences, row, remainders)


def _explain_low_order(
    differences: FiniteDifferences, row: AuditRow, remainders: Increments
) -> AuditRow:
    """A kink, a run that amplifies too much, or a wrong derivative."""
    # A kink: the slopes from above and from below stay apart as h → 0.
    one_sided = []
    for h in differences.steps[-6:]:
        up = differences.increment(h) / h
        down = -differences.increment(-h) / h
        if np.isfinite(up - down) and abs(up - down) * h > 10 * differences.noise:
            one_sided.append((h, up, down))
    missing_slope = remainders[-1][1] / remainders[-1][0]  # at the smallest step
    if len(one_sided) >= 3:
        (_, first_up, first_down), (_, up, down) = one_sided[0], one_sided[-1]
        jump, first_jump = abs(up - down), abs(first_up - first_down)
        low, high = sorted((up, down))
        # Where several kinks meet, a derivative along v may lie a little outside of both slopes.
        if jump > 0.5 * first_jump and abs(row.slope - (low + high) / 2) <= 2 * jump:
            note = f"one-sided slopes {low:.4g} and {high:.4g}: limiters, contacts or clips at work"
            return _with(row, "kink", note)
    growth = abs(row.size)
    relative = missing_slope / max(abs(row.slope), abs(row.difference), 1e-300)
    if growth > MAX_AMPLIFICATION and relative < 0.1:
        return _with(row, "chaotic", f"sensitivities grow to {growth:.1e}: take fewer steps")
    if growth > 1e3 * MAX_AMPLIFICATION:
        note = f"sensitivities grow to {growth:.1e}: no Taylor test can hold, take fewer steps"
        return _with(row, "chaotic", note)
    return _with(
        row, "WRONG", f"derivative {row.slope:.6g}, finite difference {row.difference:.6g}"
    )


def _judge_zero(
    differences: FiniteDifferences, leaf: AuditedLeaf, row: AuditRow, require_gradient: bool
) -> AuditRow:
    """A derivative that is exactly 0: is the number without effect, or is its derivative cut off?"""
    increments = differences.decreasing_increments()
    if increments is None:
        row = dataclasses.replace(row, difference=0.0)
        if differences.is_read():
            return _with(row, "zero", NO_EFFECT)
        if require_gradient and not leaf.of_state:
            return _with(row, "UNREAD", _UNREAD)
        return _with(row, "unused", "the run never reads it")
    if not increments:
        return _with(row, "WRONG", "no run nearby is finite")
    resolved = [(h, d) for h, d in increments if d > 10 * differences.noise]
    if not resolved:
        return _with(row, "zero", ONLY_ROUNDING if any(d for _, d in increments) else NO_EFFECT)
    row = dataclasses.replace(row, difference=resolved[-1][1] / resolved[-1][0])
    # Order 2 and more: stationary. Order 1: a slope that the derivative lacks. Order 0: a jump.
    orders = local_orders(resolved)
    # An increment that vanishes at once has jumped, unless it fell as a power over many steps before.
    drops = drops_at_once(increments, differences.noise)
    needed = 4 if drops else 2
    if len(orders) >= needed and min(orders[-needed:]) >= 1.5 and np.mean(orders[-2:]) >= 1.8:
        row = dataclasses.replace(row, order=float(np.mean(orders[-2:])))
        return _with(row, "zero", "stationary here")
    if drops or (orders and orders[-1] < 0.5):
        return _with(row, "JUMPS" if require_gradient else "jumps", _JUMPS)
    first_step = differences.steps[0]
    if resolved[0][0] > first_step and resolved[-1][0] >= first_step:
        return _with(row, "zero", ONLY_ROUNDING)  # changes with steps beyond the Taylor test's only
    return _with(row, "CUT", _CUT)


def _first_not_finite(gradient: np.ndarray | Array, count: int) -> str:
    flat = int(np.argmax(~np.isfinite(np.ravel(gradient))))
    index = tuple(int(i) for i in np.unravel_index(flat, np.shape(gradient)))
    return f"{count} of {np.size(gradient)} not finite, first at {index}" if index else "not finite"
