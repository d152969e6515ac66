"""Statistics over members made on the way, so that no member's frames need be kept."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from physkit.core import Module, ParameterError, static

Partial = dict[str, np.ndarray]


class AbstractReduction(Module):
    """A statistic over members, from parts: of the members of one chunk each, merged in order.

    Only members that went well count. Works on NumPy arrays, on the host.
    """

    name: eqx.AbstractVar[str]
    title: eqx.AbstractVar[str]  # what the result is called

    @abc.abstractmethod
    def part(self, values: np.ndarray) -> Partial:
        """What there is to know of some members' values, `[members, …]`, at least one."""

    @abc.abstractmethod
    def merged(self, first: Partial, second: Partial) -> Partial:
        """What there is to know of both."""

    @abc.abstractmethod
    def result(self, whole: Partial) -> np.ndarray:
        """The statistic."""


class Mean(AbstractReduction):
    """Mean over members.

    **Arguments:**

    - `name`: a frame or summary, as its observer calls it.
    """

    name: str = static()

    @property
    def title(self) -> str:
        return f"mean {self.name}"

    def part(self, values: np.ndarray) -> Partial:
        return _moments(values)

    def merged(self, first: Partial, second: Partial) -> Partial:
        return _joined(first, second)

    def result(self, whole: Partial) -> np.ndarray:
        return whole["mean"]


class Variance(AbstractReduction):
    """Variance over members, Σ (x − mean)² / (members − 1); NaN for one member.

    **Reference:** Chan, Golub & LeVeque, Am. Stat. 37, 242 (1983), eq. 1.5 (merging).
    """

    name: str = static()

    @property
    def title(self) -> str:
        return f"variance {self.name}"

    def part(self, values: np.ndarray) -> Partial:
        return _moments(values)

    def merged(self, first: Partial, second: Partial) -> Partial:
        return _joined(first, second)

    def result(self, whole: Partial) -> np.ndarray:
        count = float(whole["count"])
        return whole["squares"] / (count - 1) if count > 1 else np.full_like(whole["mean"], np.nan)


class Quantiles(AbstractReduction):
    """Quantiles over members.

    Each chunk of members keeps at most `points` of its order statistics, evenly spaced: exact while
    chunks are not larger, else right to a share 1/(2·points) of the members.

    **Arguments:**

    - `shares`: of the members that lie below, between 0 and 1.

    **Errors:** `ParameterError` for other shares.
    """

    name: str = static()
    levels: tuple[float, ...] = static(default=(0.05, 0.5, 0.95), converter=tuple)
    points: int = static(default=256)

    def __check_init__(self):
        if not self.levels or not all(0 <= q <= 1 for q in self.levels) or self.points < 2:
            raise ParameterError(f"quantiles are at shares from 0 to 1; got {self.levels}")

    @property
    def title(self) -> str:
        return f"quantiles {self.name}"

    def part(self, values: np.ndarray) -> Partial:
        values = np.sort(values.astype(float), axis=0)
        count = len(values)
        if count <= self.points:
            return {"values": values, "weights": np.ones(count)}
        ranks = (np.arange(self.points) + 0.5) * count / self.points
        weights = np.full(self.points, count / self.points)
        return {"values": values[ranks.astype(int)], "weights": weights}

    def merged(self, first: Partial, second: Partial) -> Partial:
        return {name: np.concatenate([first[name], second[name]]) for name in first}

    def result(self, whole: Partial) -> np.ndarray:
        values, weights = whole["values"], whole["weights"]
        flat = values.reshape(len(values), -1)
        order = np.argsort(flat, axis=0, kind="stable")
        flat = np.take_along_axis(flat, order, axis=0)
        # The middle of each value's share, stretched so that first and last are minimum and maximum.
        middles = np.cumsum(weights[order], axis=0) - weights[order] / 2
        low, high = middles[:1], middles[-1:]
        middles = (middles - low) / np.where(high > low, high - low, 1)
        out = [np.interp(self.levels, m, v) for m, v in zip(middles.T, flat.T, strict=True)]
        return np.stack(out, axis=1).reshape(len(self.levels), *values.shape[1:])


class Histogram(AbstractReduction):
    """How many members lie in each bin, `[…, bins]`; members outside of all bins are not counted.

    **Arguments:**

    - `edges`: of the bins, rising; one more than bins.

    **Errors:** `ParameterError` for edges that do not rise.
    """

    name: str = static()
    edges: tuple[float, ...] = static(converter=lambda e: tuple(map(float, e)))

    def __check_init__(self):
        if len(self.edges) < 2 or not np.all(np.diff(self.edges) > 0):
            raise ParameterError(f"edges of bins must rise; got {self.edges}")

    @property
    def title(self) -> str:
        return f"histogram {self.name}"

    def part(self, values: np.ndarray) -> Partial:
        bins = len(self.edges) - 1
        flat = values.reshape(len(values), -1)
        place = np.searchsorted(self.edges, flat, side="right") - 1
        place[flat == self.edges[-1]] = bins - 1
        inside = (place >= 0) & (place < bins) & np.isfinite(flat)
        counts = np.zeros((flat.shape[1], bins), np.int64)
        column = np.broadcast_to(np.arange(flat.shape[1])[None], flat.shape)
        np.add.at(counts, (column[inside], place[inside]), 1)
        return {"counts": counts.reshape(*values.shape[1:], bins)}

    def merged(self, first: Partial, second: Partial) -> Partial:
        return {"counts": first["counts"] + second["counts"]}

    def result(self, whole: Partial) -> np.ndarray:
        return whole["counts"]


class Reduction(AbstractReduction):
    """A statistic of one's own.

        Reduction("energy", "maximum energy", lambda x: {"max": x.max(0)},
                  lambda a, b: {"max": np.maximum(a["max"], b["max"])}, lambda whole: whole["max"])

    **Arguments:**

    - `first(values)`: a dict of arrays from `[members, …]`.
    - `merge(a, b)`: one from two such dicts.
    - `finish(whole)`: the result.
    """

    name: str = static()
    title: str = static()
    first: Callable[[np.ndarray], Partial] = static()
    merge: Callable[[Partial, Partial], Partial] = static()
    finish: Callable[[Partial], Any] = static()

    def part(self, values: np.ndarray) -> Partial:
        return {name: np.asarray(x) for name, x in self.first(values).items()}

    def merged(self, first: Partial, second: Partial) -> Partial:
        return {name: np.asarray(x) for name, x in self.merge(first, second).items()}

    def result(self, whole: Partial) -> np.ndarray:
        return np.asarray(self.finish(whole))


def _moments(values: np.ndarray) -> Partial:
    values = values.astype(complex if values.dtype.kind == "c" else float)
    mean = values.mean(axis=0)
    off = values - mean[None]
    squares = np.sum((off * off.conj()).real, axis=0)
    return {"count": np.asarray(len(values)), "mean": mean, "squares": squares}


def _joined(a: Partial, b: Partial) -> Partial:
    total = a["count"] + b["count"]
    step = b["mean"] - a["mean"]
    weight = a["count"] * b["count"] / total
    return {
        "count": np.asarray(total),
        "mean": a["mean"] + step * (b["count"] / total),
        "squares": a["squares"] + b["squares"] + (step * np.conj(step)).real * weight,
    }


_NAMES_OF_0_1 = {"shares": "levels"}  # fields as sweeps of version 0.1 name them, and today's names
_SHIPPED = (Mean, Variance, Quantiles, Histogram)


def describe_reductions(reductions: tuple[AbstractReduction, ...]) -> list[dict[str, Any]]:
    """Reductions as JSON takes them; of one's own only the title."""
    out = []
    for reduction in reductions:
        row: dict[str, Any] = {"kind": type(reduction).__name__, "title": reduction.title}
        if isinstance(reduction, _SHIPPED):
            fields = dataclasses.fields(reduction)
            row["fields"] = {f.name: getattr(reduction, f.name) for f in fields}
        out.append(row)
    return out


def restore_reductions(rows: Any) -> tuple[AbstractReduction, ...]:
    """The shipped ones among what `described` said."""
    shipped = {cls.__name__: cls for cls in _SHIPPED}
    restored = []
    for row in rows:
        if row.get("kind") in shipped:
            fields = {_NAMES_OF_0_1.get(name, name): x for name, x in row["fields"].items()}
            restored.append(shipped[row["kind"]](**fields))
    return tuple(restored)
