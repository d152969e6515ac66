"""How far to trust Markov chains: rank-normalized split R-hat, and effective sample sizes.

Vehtari, Gelman, Simpson, Carpenter & Bürkner, Bayesian Analysis 16, 667 (2021).
"""

import numpy as np

from physkit.core import ShapeError, explain_call, lagged_products

_MIN_DRAWS = 4  # of a chain; fewer have no halves with a variance
_TAILS = (0.05, 0.95)  # quantiles that the tail's sample size is of


@explain_call
def r_hat(draws: np.ndarray) -> np.ndarray:
    """Rank-normalized split R̂: the spread of all chains over that within each, about 1 where they agree.

        R̂ = √[((n − 1) W / n + B / n) / W]

    of the ranks' normal scores of half-chains, W the variance within them and B/n that of their means; the
    larger of that of the draws and that of their distances from the median.

    **Arguments:**

    - `draws`: `[chains draws *shape]`.

    **Returns:** `[*shape]`; NaN for numbers that never change or fewer than 4 draws.

    **Errors:** `ShapeError` for draws without these two axes.

    **Good values:** below 1.01, with four chains or more.

    **Reference:** Vehtari et al., Bayesian Analysis 16, 667 (2021), eqs. (4), (5) and (14).
    """
    return _for_each(draws, _one_r_hat)


@explain_call
def bulk_sample_size(draws: np.ndarray) -> np.ndarray:
    """Bulk effective sample size: as many independent draws would give means this well.

    Arguments, returns and errors as of `r_hat`.

    **Good values:** above 100 for each chain; means are then known to some 5 % of the standard deviation.

    **Reference:** Vehtari et al., Bayesian Analysis 16, 667 (2021), eq. (10), of the ranks' normal scores.
    """
    return _for_each(draws, lambda x: _sample_size(_normal_scores(_split(x))))


@explain_call
def tail_sample_size(draws: np.ndarray) -> np.ndarray:
    """Tail effective sample size: the smaller of those of the 5 % and the 95 % quantile.

    Arguments, returns and errors as of `r_hat`.

    **Reference:** Vehtari et al., Bayesian Analysis 16, 667 (2021), §4.3.
    """

    def of_one(x: np.ndarray) -> float:
        below = [(x <= np.quantile(x, level)).astype(float) for level in _TAILS]
        return min(_sample_size(_split(b)) for b in below)

    return _for_each(draws, of_one)


@explain_call
def monte_carlo_error(draws: np.ndarray) -> np.ndarray:
    """Monte Carlo standard error of the mean: the standard deviation over √(effective sample size).

    Arguments, returns and errors as of `r_hat`.
    """

    def of_one(x: np.ndarray) -> float:
        return float(np.std(x, ddof=1) / np.sqrt(_sample_size(_split(x))))

    return _for_each(draws, of_one)


def _for_each(draws: np.ndarray, function) -> np.ndarray:
    """`function` of the draws `[chains draws]` of every number."""
    draws = np.asarray(draws, float)
    if draws.ndim < 2 or draws.shape[0] < 1:
        raise ShapeError(f"draws of chains are [chains draws …]; got {draws.shape}")
    shape = draws.shape[2:]
    if draws.shape[1] < _MIN_DRAWS:
        return np.full(shape, np.nan)
    flat = draws.reshape(*draws.shape[:2], -1)
    results = [
        function(x) if np.all(np.isfinite(x)) and np.ptp(x) > 0 else np.nan
        for x in np.moveaxis(flat, 2, 0)
    ]
    return np.array(results, float).reshape(shape)


def _split(x: np.ndarray) -> np.ndarray:
    """Halves of the chains as chains of their own; the middle draw of an odd number is left out."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _normal_scores(x: np.ndarray) -> np.ndarray:
    """The normal quantiles of the ranks of all draws, ties at their mean rank."""
    from scipy import special, stats  # here: they take a noticeable part of a second to import

    ranks = stats.rankdata(x, method="average").reshape(x.shape)
    return special.ndtri((ranks - 0.375) / (x.size + 0.25))


def _one_r_hat(x: np.ndarray) -> float:
    halves = _split(x)
    folded = np.abs(halves - np.median(halves))
    return max(_spread_ratio(_normal_scores(halves)), _spread_ratio(_normal_scores(folded)))


def _spread_ratio(x: np.ndarray) -> float:
    draws = x.shape[1]
    within = np.mean(np.var(x, axis=1, ddof=1))
    between = np.var(np.mean(x, axis=1), ddof=1)
    if within <= np.finfo(float).eps * between:
        return np.inf if between > 0 else np.nan  # no chain moves: zero but for rounding
    return float(np.sqrt((draws - 1) / draws + between / within))


def _sample_size(x: np.ndarray) -> float:
    """Chains times draws over the correlation time, from pairs of lags as long as these fall (Geyer)."""
    chains, draws = x.shape
    mean_variance = np.mean(np.var(x, axis=1, ddof=1))
    total = mean_variance * (draws - 1) / draws
    if chains > 1:
        total += np.var(np.mean(x, axis=1), ddof=1)
    if not total > 0:
        return np.nan
    correlation = 1 - (mean_variance - _autocovariance(x)) / total
    correlation[0] = 1.0
    pairs = correlation[: draws // 2 * 2].reshape(-1, 2).sum(axis=1)
    # The initial positive sequence, made monotone: beyond it is noise.
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if len(negative) else len(pairs)])
    time = max(-1 + 2 * np.sum(pairs), 1 / np.log10(chains * draws))
    return float(chains * draws / time)


def _autocovariance(x: np.ndarray) -> np.ndarray:
    """Of chains about their own means, averaged over them: `[lags]`."""
    return np.mean(lagged_products(x), axis=0) / x.shape[1]
