"""The judgment of one derivative: automatic, against what the run does when a leaf is moved."""

import dataclasses
import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from ._audited_leaves import AuditedLeaf
from ._audited_run import AuditedRun

MIN_ORDER = 1.95  # of the Taylor remainder, at least
MAX_AMPLIFICATION = 1e3  # by how much the run may amplify what Taylor tests are to resolve


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


class FiniteDifferences:
    """A program, with the steps that its precision can resolve."""

    def __init__(self, program: AuditedRun, noise: float, double: bool):
        self.program, self.noise, self.double = program, noise, double
        count, first = (14, 1e-2) if double else (7, 0.1)
        self.steps = [first * 2.0**-k for k in range(count)]
        self.agree = 1e-11 if double else 2e-4  # of both modes

    def moved(self, number: int, direction: np.ndarray, h: float) -> list[Any]:
        """The leaves with one of them moved."""
        values = list(self.program.values)
        x = np.asarray(values[number])
        values[number] = jnp.asarray(x + h * direction, x.dtype)
        return values

    def change(self, number: int, direction: np.ndarray, h: float) -> float:
        """What the projection gains."""
        return self.program.change(self.moved(number, direction, h))


def judge_derivative(
    probe: FiniteDifferences,
    number: int,
    leaf: AuditedLeaf,
    gradient: Any,
    *,
    require_gradient: bool,
    seed: int,
) -> AuditRow:
    """The verdict on the derivative by one leaf."""
    direction = _direction(leaf.value, (seed, number))
    zero = [jnp.zeros_like(x) for x in probe.program.values]
    zero[number] = jnp.asarray(direction, leaf.value.dtype)
    made = {"name": leaf.name, "shape": tuple(leaf.value.shape)}
    try:
        forward = probe.program.tangent(zero)
    except (TypeError, ValueError, NotImplementedError):  # a rule for reverse mode only
        forward = None
    if gradient is None and forward is None:
        return AuditRow(**made, verdict="FAILS", note="neither mode works")
    slope, mismatch = _slope(probe, direction, forward, gradient)
    size = np.nan if gradient is None else float(np.max(np.abs(gradient), initial=0.0))
    made |= {"size": size, "mismatch": mismatch, "slope": slope}
    bad = 0 if gradient is None else int(np.sum(~np.isfinite(gradient)))
    if bad or not np.isfinite(slope):
        where = "" if gradient is None or not bad else _first(gradient, bad)
        return AuditRow(**made, verdict="NaN", note=where or "in forward mode")
    if slope == 0 and not (gradient is not None and np.any(gradient)):
        return _of_zero(probe, number, leaf, direction, made, require_gradient)
    row = _taylor(probe, number, direction, slope, made)
    if row.verdict == "right" and mismatch > probe.agree:
        return dataclasses.replace(
            row,
            verdict="MODES",
            note="forward and reverse mode disagree: a rule of its own is wrong",
        )
    return row


def _slope(
    probe: FiniteDifferences, direction: Any, forward: Any, gradient: Any
) -> tuple[float, float]:
    """⟨∇J, v⟩, and by how much the modes disagree, over the size of what is summed."""
    one = np.nan if forward is None else probe.program.dot(forward)
    if gradient is None:
        return one, np.nan
    backward = np.asarray(gradient) * direction
    two = float(np.sum(backward).real)
    if forward is None:
        return two, np.nan
    weights = probe.program.weights
    terms = sum(np.sum(np.abs(weights[n] * np.asarray(x))) for n, x in forward.items())
    size = float(terms + np.sum(np.abs(backward)))
    return two, abs(one - two) / size if size > 0 else 0.0


def _taylor(
    probe: FiniteDifferences, number: int, direction: np.ndarray, slope: float, made: dict
) -> AuditRow:
    gains = [(h, probe.change(number, direction, h)) for h in probe.steps]
    seen = [(h, d) for h, d in gains if np.isfinite(d)]
    left = [(h, abs(d - h * slope)) for h, d in seen]
    left = [(h, r) for h, r in left if r > 10 * probe.noise]
    best = max(seen, key=lambda p: -abs(abs(p[1]) - 1e4 * probe.noise), default=(np.nan, np.nan))
    made = {**made, "difference": best[1] / best[0]}
    if not seen:
        return AuditRow(**made, verdict="WRONG", note="no run nearby is finite")
    if len(left) < 3:
        return AuditRow(**made, verdict="right", note="linear, as far as rounding lets one see")
    orders = [
        float(np.polyfit(*np.log(np.asarray(left[k : k + 3])).T, 1)[0])
        for k in range(max(0, len(left) - 5), len(left) - 2)
    ]
    made["order"] = order = orders[-1] if orders[-1] >= MIN_ORDER else max(orders[-2:])
    if order >= MIN_ORDER:
        return AuditRow(**made, verdict="right")
    return _why_not(probe, number, direction, slope, made, left)


def _why_not(probe, number, direction, slope, made, left) -> AuditRow:
    """A kink, a run that amplifies too much, or a wrong derivative."""
    pairs = []
    for h in probe.steps[-6:]:
        up = probe.change(number, direction, h) / h
        down = -probe.change(number, direction, -h) / h
        if np.isfinite(up - down) and abs(up - down) * h > 10 * probe.noise:
            pairs.append((h, up, down))
    share = left[-1][1] / left[-1][0]  # what is missing of the slope, at the smallest step
    if len(pairs) >= 3:
        jump, before = abs(pairs[-1][1] - pairs[-1][2]), abs(pairs[0][1] - pairs[0][2])
        low, high = sorted(pairs[-1][1:])
        # Where several kinks meet, a derivative along v may lie a little outside of both slopes.
        if jump > 0.5 * before and abs(slope - (low + high) / 2) <= 2 * jump:
            note = f"one-sided slopes {low:.4g} and {high:.4g}: limiters, contacts or clips at work"
            return AuditRow(**made, verdict="kink", note=note)
    growth = abs(made["size"])
    relative = share / max(abs(slope), abs(made["difference"]), 1e-300)
    if growth > MAX_AMPLIFICATION and relative < 0.1:
        note = f"sensitivities grow to {growth:.1e}: take fewer steps"
        return AuditRow(**made, verdict="chaotic", note=note)
    if growth > 1e3 * MAX_AMPLIFICATION:
        note = f"sensitivities grow to {growth:.1e}: no Taylor test can hold, take fewer steps"
        return AuditRow(**made, verdict="chaotic", note=note)
    note = f"derivative {slope:.6g}, finite difference {made['difference']:.6g}"
    return AuditRow(**made, verdict="WRONG", note=note)


def _of_zero(probe, number, leaf, direction, made, require_gradient) -> AuditRow:
    """A derivative that is exactly 0: is the number without effect, or cut off?"""
    gains = _falling(probe, number, direction)
    if gains is None:
        return _without_effect(probe, number, leaf, made, require_gradient)
    if not gains:
        return AuditRow(**made, verdict="WRONG", note="no run nearby is finite")
    clear = [(h, d) for h, d in gains if d > 10 * probe.noise]
    if not clear:
        note = ONLY_ROUNDING if any(d for _, d in gains) else NO_EFFECT
        return AuditRow(**made, verdict="zero", note=note)
    made = {**made, "difference": clear[-1][1] / clear[-1][0]}
    orders = _orders(clear)
    # What falls to nothing at once has jumped, unless it fell as a power over many steps before.
    many = 4 if _drops(gains, probe.noise) else 2
    if len(orders) >= many and min(orders[-many:]) >= 1.5 and np.mean(orders[-2:]) >= 1.8:
        order = float(np.mean(orders[-2:]))
        return AuditRow(**made, verdict="zero", order=order, note="stationary here")
    if many > 2 or (orders and orders[-1] < 0.5):
        return AuditRow(**made, verdict="JUMPS" if require_gradient else "jumps", note=_JUMPS)
    if clear[0][0] > probe.steps[0] and clear[-1][0] >= probe.steps[0]:
        return AuditRow(**made, verdict="zero", note=ONLY_ROUNDING)  # nothing but far away
    return AuditRow(**made, verdict="CUT", note=_CUT)


def _falling(
    probe: FiniteDifferences, number: int, direction: np.ndarray
) -> list[tuple[float, float]] | None:
    """(h, |change|) for ever smaller h, where finite; None if no bit of any run is another."""
    far = [h for k in range(8, 0, -1) if (h := probe.steps[0] * 2.0**k) < 3]
    coarse = {*far[::2], probe.steps[0], probe.steps[3]}
    if not any(probe.program.differs(probe.moved(number, direction, h)) for h in coarse):
        return None
    gains: list[tuple[float, float]] = []
    for sign in (1.0, -1.0):  # the other side, where one is outside of the domain
        gains = [(h, abs(probe.change(number, direction, sign * h))) for h in probe.steps]
        if sum(d > 10 * probe.noise for _, d in gains) < 3:  # NaN counts as unseen
            gains = [(h, abs(probe.change(number, direction, sign * h))) for h in far] + gains
        gains = [(h, d) for h, d in gains if np.isfinite(d)]
        if len(gains) >= 3:
            break
    return gains


def _orders(gains: list[tuple[float, float]]) -> list[float]:
    """The power of h from each to the next."""
    pairs = itertools.pairwise(gains)
    return [float(np.log(d / e) / np.log(h / k)) for (h, d), (k, e) in pairs]


def _drops(gains: list[tuple[float, float]], noise: float) -> bool:
    """Whether a change above the noise is gone at the next step, where a power of h would be seen."""
    power = 2.0
    for (h, d), (k, e) in itertools.pairwise(gains):
        expected = d * (k / h) ** power
        if d > 10 * noise and expected > 2 * noise and e < expected / 64:
            return True
        power = float(np.clip(np.log(d / e) / np.log(h / k), 2, 12)) if d > 0 and e > 0 else 2.0
    return False


def _without_effect(probe, number, leaf, made, require_gradient) -> AuditRow:
    """No other value changes one bit: is the number read at all?"""
    poison = list(probe.program.values)
    poison[number] = jnp.full_like(leaf.value, jnp.nan)
    made = {**made, "difference": 0.0}
    if probe.program.differs(poison):
        return AuditRow(**made, verdict="zero", note=NO_EFFECT)
    if require_gradient and not leaf.of_state:
        return AuditRow(**made, verdict="UNREAD", note=_UNREAD)
    return AuditRow(**made, verdict="unused", note="the run never reads it")


NO_EFFECT = "read, without effect on the result here"
ONLY_ROUNDING = "only rounding changes"
_CUT = "exactly 0, but the run changes smoothly: stop_gradient, a cast to integers, or a rule of its own"
_JUMPS = "exactly 0, and the run changes in jumps: behind a rounding, an integer or a comparison"
_UNREAD = "the run never reads it: consumed in __init__, or a parameter without use"


def _direction(x: Any, seed: tuple[int, ...]) -> np.ndarray:
    """Random; entries of a leaf without signs (masses, depths) in proportion, so that they stay so.

    Of others each as large as the leaf's root mean square, 1 for a leaf of zeros.
    """
    rng, x = np.random.default_rng(seed), np.asarray(x)
    finite = np.where(np.isfinite(x), x, 0)
    scale = np.sqrt(np.mean(np.abs(finite) ** 2)) or 1.0
    if np.isrealobj(x) and np.all(x >= 0) and np.any(x):
        scale = x
    out = rng.uniform(0.5, 1.0, x.shape) * rng.choice([-1.0, 1.0], x.shape)
    if np.iscomplexobj(x):
        out = out * np.exp(2j * np.pi * rng.random(x.shape))
    return np.asarray(scale * out)


def _first(gradient: Any, bad: int) -> str:
    flat = int(np.argmax(~np.isfinite(np.ravel(gradient))))
    index = tuple(int(i) for i in np.unravel_index(flat, np.shape(gradient)))
    return f"{bad} of {np.size(gradient)} not finite, first at {index}" if index else "not finite"
