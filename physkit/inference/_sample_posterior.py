"""`sample_posterior`: Markov chains as the members of a sweep."""

from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    Count,
    KeyLike,
    ObjectiveError,
    ParameterError,
    SweepError,
    as_count,
    as_device_array,
    as_key,
    drop_outdated_programs,
    einsum,
    explain_call,
)
from physkit.ensemble import LocalWorkers, SlurmArray, Sweep, SweepAxis, sweep
from physkit.simulate import Simulation

from ._chain import chain_simulation
from ._laplace import LaplaceApproximation
from ._methods import HMC, NUTS
from ._posterior import Posterior
from ._posterior_samples import PosteriorSamples, collect_samples

_START_TAG = 2**22  # of the noise of starts; chains draw theirs by their numbers
_MAX_DENSE = 100  # parameters up to which all covariances of an approximation are used
_SMALL = 1e-3  # variance that nothing but the coordinates' size suggests
_MAX_HALVINGS = 20  # of the way from the model's own numbers to a start that is not finite


@explain_call
def sample_posterior(
    posterior: Posterior,
    draws: Count = 1000,
    *,
    warmup: Count = 1000,
    chains: Count = 4,
    key: KeyLike = 0,
    method: NUTS | HMC | None = None,
    around: LaplaceApproximation | None = None,
    start_std: float = 0.1,
    to: str | Path | None = None,
    chunk_size: Count | None = None,
    engine: str | LocalWorkers | SlurmArray = "inline",
    devices: Sequence[jax.Device] | None = None,
    progress: bool = True,
    wall_time: float | None = None,
) -> PosteriorSamples:
    """Draw from a posterior by Hamiltonian Monte Carlo, several chains side by side.

        posterior = Posterior(residuals, model, where=…, priors={"stiffness": LogNormal(2.0, 0.5)})
        samples = sample_posterior(posterior, 1000, chains=4, key=0)

    Chains are the members of a sweep: computed together on the devices of this process or by workers, kept in
    a folder, continued when the call is repeated. A chain is a chunk's member as a simulation is, so that a
    call that was stopped and repeated gives the same bits as one that was not.

    **Arguments:**

    - `posterior`: what to draw from.
    - `draws`, `warmup`: of each chain; in the warm-up step and metric are adapted, and its draws are dropped.
    - `chains`: how many; four or more for R-hat to mean something.
    - `key`: a JAX random key or a whole number.
    - `method`: `NUTS()`, or `HMC(steps)`.
    - `around`: a `laplace_approximation`: chains start from draws of it, with its metric.
    - `start_std`: without one, the standard deviation of the starts about the model's own numbers, as a part
      of the parameters' size.
    - `to`, `chunk_size`, `engine`, `devices`, `progress`, `wall_time`: as of `sweep`.

    **Returns:** a `PosteriorSamples`, which prints as a table, with remarks on what to distrust.

    **Errors:** `ParameterError` for counts that are none; `MissingExtraError` without the extra
    `physkit[sample]`; `MismatchError` for the folder of another posterior; `SweepError` where a call ended
    before the first chain was complete.

    **Good values:** 500 to 1000 draws after as much warm-up, until R-hat is below 1.01.

    **Notes:** in memory all chains are one chunk, in a folder each is computed by itself unless `chunk_size`
    says otherwise, and goes on where it stood half a minute before it was killed. Divergent transitions are
    counted, and the table says what helps.

    **Reference:** Betancourt, arXiv:1701.02434.
    """
    definition = chain_sweep(
        posterior, draws, warmup=warmup, chains=chains, key=key, method=method, around=around,
        start_std=start_std,
    )  # fmt: skip
    method = method or NUTS()
    if chunk_size is None:
        chunk_size = 1 if to is not None else definition.num_members
    ensemble = sweep(
        definition, to=to, chunk_size=chunk_size, engine=engine, devices=devices, progress=progress,
        wall_time=wall_time,
    )  # fmt: skip
    if not np.any(ensemble.ok):
        failed = "; ".join(f.reason for f in ensemble.failed)
        why = failed or f"stopped ({ensemble.stopped_by}) before the first was complete: call again"
        raise SweepError(f"no chain of {definition.num_members} is there: {why}")
    longest = 2**method.max_doublings - 1 if isinstance(method, NUTS) else 0
    return collect_samples(
        posterior, ensemble, definition.steps - int(draws), definition.num_members, longest
    )


@explain_call
def chain_sweep(
    posterior: Posterior,
    draws: Count = 1000,
    *,
    warmup: Count = 1000,
    chains: Count = 4,
    key: KeyLike = 0,
    method: NUTS | HMC | None = None,
    around: LaplaceApproximation | None = None,
    start_std: float = 0.1,
) -> Sweep:
    """The sweep of chains that `sample_posterior` computes, as data; arguments and errors as there.

    `chain_sweep(…).member(0)` is the simulation, the start and the key of one chain: `run` takes them, with
    checkpoints, and goes on where it was stopped within a chain, too.
    """
    drop_outdated_programs(posterior)
    draws = as_count(draws, "draws", ParameterError)
    warmup = (
        0 if isinstance(warmup, int) and warmup == 0 else as_count(warmup, "warmup", ParameterError)
    )
    chains = as_count(chains, "chains", ParameterError)
    if not (np.isfinite(start_std) and start_std >= 0):
        raise ParameterError(f"start_std is a standard deviation, 0 or more; got {start_std!r}")
    key = as_key(key)
    method = method or NUTS()
    posterior.require_gradient()
    coordinates = posterior.coordinates
    size = coordinates.origin.size
    _require_same_coordinates(posterior, around)
    covariance = np.eye(size) if around is None else around.covariance
    is_dense = method.dense_metric
    if is_dense is None:
        is_dense = around is not None and size <= _MAX_DENSE
    metric = covariance if is_dense else np.diag(covariance)
    # Draws are few: what they say of the metric leans a little on what is known of it beforehand.
    simulation = chain_simulation(
        posterior, method, warmup, metric, metric if around is not None else _SMALL * metric
    )
    starts = _starts(posterior, chains, jax.random.fold_in(key, _START_TAG), start_std, around)
    # As precise as the sampler's own numbers; a model in single precision casts what it is given.
    starts = np.asarray(starts).astype(coordinates.center.dtype)
    first: tuple[Simulation, Array] = (simulation, as_device_array(starts[0]))
    return Sweep(first, warmup + draws, over=SweepAxis("state", starts, "start"), key=key)


def _require_same_coordinates(posterior: Posterior, around: LaplaceApproximation | None) -> None:
    """**Errors:** `ParameterError` for an approximation in other coordinates than the posterior's."""
    if around is None:
        return
    pairs = [
        [np.asarray(x) for x in jax.tree.leaves(p.coordinates)]
        for p in (posterior, around.posterior)
    ]
    is_same = posterior.names == around.posterior.names and len(pairs[0]) == len(pairs[1])
    if not is_same or not all(
        a.shape == b.shape and np.allclose(a, b) for a, b in zip(*pairs, strict=True)
    ):
        raise ParameterError(
            f"around= approximates another posterior, of {list(around.posterior.names)}: this one is of "
            f"{list(posterior.names)}, or has another start or other bounds"
        )


def _starts(
    posterior: Posterior,
    chains: int,
    key: Array,
    start_std: float,
    around: LaplaceApproximation | None,
) -> Array:
    """Starts of chains, `[chains p]`, where the density is finite."""
    origin = posterior.coordinates.origin
    unit = jax.random.normal(key, (chains, origin.size), origin.dtype)
    if around is None:
        center, change = origin, start_std * unit
    else:
        center = jnp.asarray(around.mode, origin.dtype)
        root = jnp.asarray(np.linalg.cholesky(around.covariance), origin.dtype)
        change = einsum("ij,cj->ci", root, unit)
    for _ in range(_MAX_HALVINGS):
        starts = center[None] + change
        is_finite = np.isfinite(np.asarray(_log_densities(posterior, starts)))
        if is_finite.all():
            return starts
        # Towards the model's own numbers, where the density is finite.
        change = jnp.where(jnp.asarray(is_finite)[:, None], change, change / 2)
    raise ObjectiveError(
        "the posterior is not finite anywhere near the model's own numbers: start from others, or with a "
        f"smaller start_std than {start_std}"
    )


@eqx.filter_jit
def _log_densities(posterior: Posterior, starts: Array) -> Array:
    return jax.lax.map(lambda z: posterior.value_and_gradient(z)[0], starts)
