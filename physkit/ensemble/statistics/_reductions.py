"""Reductions: statistics over members, updated chunk by chunk, so that no member's frames need be kept."""

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import numpy as np

from physkit.core import Module, ParameterError, static

from ._edges import as_edges

# What a reduction keeps of some members: arrays by name, which is also the form in which it is stored.
Partial: TypeAlias = dict[str, np.ndarray]


class AbstractReduction(Module):
    """A statistic over members, computed from partial results: one for each chunk, combined in order.

    Members that failed do not count. Works on NumPy arrays, on the host.
    """

    name: eqx.AbstractVar[str]
    title: eqx.AbstractVar[str]  # what the result is called

    @abc.abstractmethod
    def summarize(self, values: np.ndarray) -> Partial:
        """The partial result of the values of one member or more, `[members, …]`."""

    @abc.abstractmethod
    def combine(self, first: Partial, second: Partial) -> Partial:
        """The partial result of the members of both."""

    @abc.abstractmethod
    def result(self, partial: Partial) -> np.ndarray:
        """The statistic, from the partial result of all members."""


class Mean(AbstractReduction):
    """Mean over members.

    **Arguments:**

    - `name`: a frame or summary, as its observer calls it.
    """

    name: str = static()

    @property
    def title(self) -> str:
        return f"mean {self.name}"

    def summarize(self, values: np.ndarray) -> Partial:
        return _moments(values)

    def combine(self, first: Partial, second: Partial) -> Partial:
        return _combine_moments(first, second)

    def result(self, partial: Partial) -> np.ndarray:
        return partial["mean"]


class Variance(AbstractReduction):
    """Variance over members, Σ (x − mean)² / (members − 1); NaN for one member.

    **Reference:** Chan, Golub & LeVeque, Am. Stat. 37, 242 (1983), eq. 1.5 (merging).
    """

    name: str = static()

    @property
    def title(self) -> str:
        return f"variance {self.name}"

    def summarize(self, values: np.ndarray) -> Partial:
        return _moments(values)

    def combine(self, first: Partial, second: Partial) -> Partial:
        return _combine_moments(first, second)

    def result(self, partial: Partial) -> np.ndarray:
        count = float(partial["count"])
        if count < 2:
            return np.full_like(partial["mean"], np.nan)
        return partial["squares"] / (count - 1)


class Quantiles(AbstractReduction):
    """Quantiles over members.

    Each chunk of members keeps at most `points` of its order statistics, evenly spaced: exact while
    chunks are not larger, else the level is right to 1/(2·points). NaN where a member has NaN.

    **Arguments:**

    - `levels`: fractions of the members that lie below, between 0 and 1.

    **Errors:** `ParameterError` for other levels.
    """

    name: str = static()
    levels: tuple[float, ...] = static(default=(0.05, 0.5, 0.95), converter=tuple)
    points: int = static(default=256)

    def __check_init__(self):
        if not self.levels or not all(0 <= q <= 1 for q in self.levels) or self.points < 2:
            raise ParameterError(f"quantile levels lie between 0 and 1; got {self.levels}")

    @property
    def title(self) -> str:
        return f"quantiles {self.name}"

    def summarize(self, values: np.ndarray) -> Partial:
        values = np.sort(values.astype(float), axis=0)
        count = len(values)
        # Sorted last, NaN would count as the largest number, and of many members be dropped: it has no rank.
        values[:, np.isnan(values[-1])] = np.nan
        if count <= self.points:
            return {"values": values, "weights": np.ones(count)}
        # One order statistic from the middle of each of `points` equal groups stands for all of its group.
        ranks = (np.arange(self.points) + 0.5) * count / self.points
        weights = np.full(self.points, count / self.points)
        return {"values": values[ranks.astype(int)], "weights": weights}

    def combine(self, first: Partial, second: Partial) -> Partial:
        return {name: np.concatenate([first[name], second[name]]) for name in first}

    def result(self, partial: Partial) -> np.ndarray:
        values, weights = partial["values"], partial["weights"]
        flat = values.reshape(len(values), -1)
        order = np.argsort(flat, axis=0, kind="stable")
        flat = np.take_along_axis(flat, order, axis=0)
        # Each value stands for an interval of levels, and is placed at its middle; stretched, so that levels
        # 0 and 1 give the minimum and the maximum.
        middles = np.cumsum(weights[order], axis=0) - weights[order] / 2
        low, high = middles[:1], middles[-1:]
        middles = (middles - low) / np.where(high > low, high - low, 1)
        columns = [np.interp(self.levels, m, v) for m, v in zip(middles.T, flat.T, strict=True)]
        columns = [
            np.where(np.isnan(v[-1]), np.nan, c) for c, v in zip(columns, flat.T, strict=True)
        ]
        return np.stack(columns, axis=1).reshape(len(self.levels), *values.shape[1:])


class Histogram(AbstractReduction):
    """How many members lie in each bin, `[…, bins]`; members outside of all bins are not counted.

    **Arguments:**

    - `edges`: of the bins, rising; one more than bins.

    **Errors:** `ParameterError` for edges that do not rise.
    """

    name: str = static()
    edges: tuple[float, ...] = static(converter=lambda edges: tuple(as_edges(edges).tolist()))

    @property
    def title(self) -> str:
        return f"histogram {self.name}"

    def summarize(self, values: np.ndarray) -> Partial:
        bins = len(self.edges) - 1
        flat = values.reshape(len(values), -1)
        bin_of = np.searchsorted(self.edges, flat, side="right") - 1
        # The last bin includes its upper edge, as in NumPy.
        bin_of[flat == self.edges[-1]] = bins - 1
        inside = (bin_of >= 0) & (bin_of < bins) & np.isfinite(flat)
        counts = np.zeros((flat.shape[1], bins), np.int64)
        column = np.broadcast_to(np.arange(flat.shape[1])[None], flat.shape)
        # `add.at` and not `+=`, which would count several members in one bin once.
        np.add.at(counts, (column[inside], bin_of[inside]), 1)
        return {"counts": counts.reshape(*values.shape[1:], bins)}

    def combine(self, first: Partial, second: Partial) -> Partial:
        return {"counts": first["counts"] + second["counts"]}

    def result(self, partial: Partial) -> np.ndarray:
        return partial["counts"]


class Reduction(AbstractReduction):
    """A user's own statistic.

        Reduction("energy", "maximum energy", lambda x: {"max": x.max(0)},
                  lambda a, b: {"max": np.maximum(a["max"], b["max"])}, lambda whole: whole["max"])

    **Arguments:**

    - `per_chunk(values)`: a dict of arrays from `[members, …]`, the members of one chunk.
    - `merge(a, b)`: one such dict from two.
    - `finish(partial)`: the result.
    """

    name: str = static()
    title: str = static()
    per_chunk: Callable[[np.ndarray], Partial] = static()
    merge: Callable[[Partial, Partial], Partial] = static()
    finish: Callable[[Partial], Any] = static()

    def summarize(self, values: np.ndarray) -> Partial:
        return {name: np.asarray(x) for name, x in self.per_chunk(values).items()}

    def combine(self, first: Partial, second: Partial) -> Partial:
        return {name: np.asarray(x) for name, x in self.merge(first, second).items()}

    def result(self, partial: Partial) -> np.ndarray:
        return np.asarray(self.finish(partial))


def _moments(values: np.ndarray) -> Partial:
    # In double precision, whatever the members' precision is; two passes, so that no digits cancel.
    values = values.astype(complex if values.dtype.kind == "c" else float)
    mean = values.mean(axis=0)
    deviation = values - mean[None]
    squares = np.sum((deviation * deviation.conj()).real, axis=0)
    return {"count": np.asarray(len(values)), "mean": mean, "squares": squares}


def _combine_moments(a: Partial, b: Partial) -> Partial:
    # Chan, Golub & LeVeque (1983), eq. 1.5: no sum of squares of the values themselves, which would cancel.
    total = a["count"] + b["count"]
    shift = b["mean"] - a["mean"]
    weight = a["count"] * b["count"] / total
    return {
        "count": np.asarray(total),
        "mean": a["mean"] + shift * (b["count"] / total),
        "squares": a["squares"] + b["squares"] + (shift * np.conj(shift)).real * weight,
    }


_SHIPPED = (Mean, Variance, Quantiles, Histogram)
_STORED_AS = {"levels": "shares"}  # fields whose name in files is that of version 0.1


def describe_reductions(reductions: Sequence[AbstractReduction]) -> list[dict[str, Any]]:
    """Reductions as JSON; of a user's own only the title."""
    rows = []
    for reduction in reductions:
        row: dict[str, Any] = {"kind": type(reduction).__name__, "title": reduction.title}
        if isinstance(reduction, _SHIPPED):
            # Callables of a user's own reduction cannot be stored; the fields of these are numbers and names.
            names = [field.name for field in dataclasses.fields(reduction)]
            row["fields"] = {_STORED_AS.get(n, n): getattr(reduction, n) for n in names}
        rows.append(row)
    return rows


def restore_reductions(rows: Sequence[dict[str, Any]]) -> tuple[AbstractReduction, ...]:
    """The reductions that `describe_reductions` described, but for users' own."""
    shipped = {cls.__name__: cls for cls in _SHIPPED}
    names = {stored: name for name, stored in _STORED_AS.items()}
    restored = []
    for row in rows:
        if row.get("kind") in shipped:
            fields = {names.get(n, n): value for n, value in row["fields"].items()}
            restored.append(shipped[row["kind"]](**fields))
    return tuple(restored)


def merge_partials(
    reductions: Sequence[AbstractReduction], partials: Mapping[int, Mapping[str, Partial]]
) -> dict[str, Partial]:
    """Partial results of all chunks together, by title; `partials` are by chunk number and title."""
    merged: dict[str, Partial] = {}
    # In the order of chunk numbers: the result does not depend on which worker was first.
    for number in sorted(partials):
        for reduction in reductions:
            title = reduction.title
            # A chunk has no partial result where all of its members failed.
            if title in partials[number]:
                partial = partials[number][title]
                merged[title] = (
                    reduction.combine(merged[title], partial) if title in merged else partial
                )
    return merged


def reduction_results(
    reductions: Sequence[AbstractReduction], partials: Mapping[int, Mapping[str, Partial]]
) -> dict[str, np.ndarray]:
    """The statistics by title, of those of which any chunk knows something."""
    merged = merge_partials(reductions, partials)
    return {r.title: r.result(merged[r.title]) for r in reductions if r.title in merged}
