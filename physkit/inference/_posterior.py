"""The posterior of numbers of a model: the objective of a fit as a likelihood, and priors."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    KeyLike,
    Module,
    ObjectiveError,
    ParameterError,
    PyTree,
    as_key,
    replace_fields,
    vdot,
)
from physkit.fit import (
    AbstractBounds,
    Coordinates,
    Interval,
    ObjectiveInputs,
    PositiveBound,
    Problem,
    Simplex,
    Unbounded,
    make_coordinates,
    make_problem,
    select,
)

from ._priors import AbstractPrior

_MAX_FORWARD = 8  # parameters up to which tangents are cheaper than a backward pass and its memory
_MAX_BATCH = 64  # tangents side by side


class Posterior(Module):
    """What data and priors say about the numbers that `where` points at.

        p(values | data) ∝ exp(−½ Σ r²) · Π p(value)     or     exp(−loss) · Π p(value)

    The objective, `where` and bounds are those of `fit`: residuals r, each divided by its noise, or a loss that
    is −log likelihood. Samplers and `laplace_approximation` take it.

    **Arguments:**

    - `objective`: `(model)`, or `(model, data)` where data are given.
    - `model`: any tree, usually `(simulation, state)`; chains start near its numbers.
    - `where`: a function of the model, or a dict of them, as of `fit`.
    - `priors`: `Normal(…)`, `LogNormal(…)`, `HalfNormal(…)`, `HalfCauchy(…)`, `Uniform(…)` or your own: one for
      all, a dict by name, or a tuple in order. A parameter without one has a flat prior within its bounds.
    - `bounds`: as of `fit`; the support of the prior if left out. They cut the prior off.
    - `data`: handed to the objective.
    - `jac`: `"forward"` or `"reverse"` derivatives; by default forward for up to 8 numbers.

    **Errors:** `SelectionError` for what `where` cannot mean (an integer, a static field); `ParameterError` for
    priors of other names or bounds that exclude the start; `ObjectiveError` where the objective is of the
    wrong kind, or the posterior is not finite at the model's own numbers. What needs derivatives asks for
    them: `require_gradient`.

    **Notes:** with residuals the noise is taken as known. To infer it, return −log likelihood: Σ ½ r² + ln σ.
    A flat prior without bounds is no density: the data must determine that number alone. A prior that bounds
    cut off keeps its constant, 1 over its volume without bounds.
    """

    problem: Problem
    inputs: ObjectiveInputs
    priors: tuple[AbstractPrior | None, ...]

    def __init__(
        self,
        objective: Callable[..., Any],
        model: PyTree,
        *,
        where: Any,
        priors: Any = None,
        bounds: Any = None,
        data: PyTree = None,
        jac: str | None = None,
    ):
        selection = select(where, model)
        by_name = _priors_by_name(priors, selection.names)
        coordinates = make_coordinates(
            selection, model, _with_supports(bounds, by_name, selection.names)
        )
        _require_shapes(by_name, selection.get(model))
        problem, inputs = make_problem(
            objective, selection, coordinates, model, data, jac, has_priors=True
        )
        mode = jac or ("forward" if coordinates.origin.size <= _MAX_FORWARD else "reverse")
        # Traced for the coordinates' precision, which a chain may change.
        self.problem = replace_fields(problem, {"mode": mode, "traced": None})
        self.inputs = inputs
        self.priors = tuple(by_name.values())
        self._require_finite()

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates z, any real numbers, that densities and samplers use."""
        return self.inputs.coordinates

    @property
    def model(self) -> PyTree:
        """The model as it was given."""
        return self.model_at(self.coordinates.origin)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self.coordinates.names

    @property
    def is_proper(self) -> bool:
        """Whether every parameter has a prior, or bounds on all sides."""
        pairs = zip(self.priors, self.coordinates.bounds, strict=True)
        return all(p is not None or not _is_open(b) for p, b in pairs)

    def model_at(self, z: Float[Array, " p"]) -> PyTree:
        """The model with its parameters at z."""
        model = eqx.combine(self.inputs.model, self.problem.rest.value[0])
        return self.problem.selection.put(model, self.coordinates.values(z))

    def log_prior(self, z: Float[Array, " p"]) -> Float[Array, ""]:
        """ln of the prior's density of z: that of the values, and the volume of the bounds' map."""
        total = self.coordinates.log_volume(z)
        values = self.coordinates.values(z).values()
        for prior, bound, value in zip(self.priors, self.coordinates.bounds, values, strict=True):
            density = (
                _log_flat(bound, value) if prior is None else jnp.sum(prior.log_density(value))
            )
            total = total + density.astype(z.dtype)
        return total

    def log_likelihood(self, z: Float[Array, " p"]) -> Float[Array, ""]:
        """−½ Σ r², or −loss, at z."""
        # Checkpoints: every kind of derivative goes through them, second ones, too.
        problem = replace_fields(self.problem, {"mode": "twice"})
        return _log_likelihood(problem, z, self.inputs)

    def log_density(self, z: Float[Array, " p"]) -> Float[Array, ""]:
        """ln p(z | data), but for a constant that does not depend on z."""
        return self.log_likelihood(z) + self.log_prior(z)

    def value_and_gradient(
        self, z: Float[Array, " p"]
    ) -> tuple[Float[Array, ""], Float[Array, " p"]]:
        """`log_density` and its gradient, in the mode of derivatives that was asked for.

        Where they are not finite the density is 0, its logarithm −∞, and the gradient 0.
        """

        def likelihood(z: Array) -> Array:
            return _log_likelihood(self.problem, z, self.inputs)

        prior, prior_gradient = jax.value_and_grad(self.log_prior)(z)
        if self.problem.mode == "forward":
            tangents = jnp.eye(z.size, dtype=z.dtype)
            values, slopes = jax.lax.map(
                lambda tangent: jax.jvp(likelihood, (z,), (tangent,)),
                tangents,
                batch_size=min(z.size, _MAX_BATCH),
            )
            value, gradient = values[0], slopes
        else:
            value, gradient = jax.value_and_grad(likelihood)(z)
        value, gradient = value + prior, gradient + prior_gradient
        is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        return jnp.where(is_finite, value, -jnp.inf), jnp.where(is_finite, gradient, 0)

    def sample_prior(self, key: KeyLike, count: int) -> dict[str, Array]:
        """Values drawn from the priors, `[count, *shape]` by name.

        **Errors:** `ParameterError` where a parameter has none.
        """
        without = [n for n, p in zip(self.names, self.priors, strict=True) if p is None]
        if without:
            raise ParameterError(f"no prior to draw from: {', '.join(without)}")
        values = self.coordinates.values(self.coordinates.origin)
        keys = jax.random.split(as_key(key), len(self.names))
        return {
            name: prior.sample(k, (count, *values[name].shape))
            for name, prior, k in zip(self.names, self.priors, keys, strict=True)
            if prior is not None
        }

    def require_gradient(self) -> None:
        """**Errors:** `ObjectiveError` where the gradient of the density is not finite at the start."""
        # Where the gradient is not finite, the value is not, either.
        if not np.isfinite(np.asarray(_checked_at_start(self, self.coordinates.origin))):
            raise ObjectiveError(
                "the derivative of the posterior is not finite at the model's own numbers: gradient_audit "
                "finds the step and the term"
            )

    def _require_finite(self) -> None:
        """**Errors:** `ObjectiveError` where the density is not finite at the start."""
        value, prior = (np.asarray(x) for x in _value_at_start(self, self.coordinates.origin))
        if not np.isfinite(prior):
            raise ObjectiveError(
                "the prior is not finite at the model's own numbers: they lie outside of its support. Start "
                "inside"
            )
        if not np.isfinite(value):
            raise ObjectiveError(
                "the posterior is not finite at the model's own numbers, as the objective is not. A simulation "
                "in it that diverges, or data that are not finite?"
            )


@eqx.filter_jit
def _value_at_start(posterior: Posterior, z: Array) -> tuple[Array, Array]:
    # Without `log_density`, whose objective is prepared for second derivatives.
    likelihood = _log_likelihood(posterior.problem, z, posterior.inputs)
    prior = posterior.log_prior(z)
    return likelihood + prior, prior


@eqx.filter_jit
def _checked_at_start(posterior: Posterior, z: Array) -> Array:
    return posterior.value_and_gradient(z)[0]


def _log_flat(bound: AbstractBounds, value: Array) -> Array:
    """ln of the flat density of a value within its bounds; 0 where their volume is infinite."""
    if isinstance(bound, Interval):
        return -jnp.sum(jnp.broadcast_to(jnp.log(bound.high - bound.low), value.shape))
    if isinstance(bound, Simplex):
        fractions = value.shape[-1]
        return jnp.asarray(value.size // fractions * math.lgamma(fractions))
    return jnp.zeros(())


def _log_likelihood(problem: Problem, z: Array, inputs: ObjectiveInputs) -> Array:
    value = problem.value(z, inputs)
    return -0.5 * vdot(value, value) if problem.kind == "residuals" else -value


def _priors_by_name(priors: Any, names: tuple[str, ...]) -> dict[str, AbstractPrior | None]:
    """A prior or None for every name, from one for all, one each in order, or some by name."""
    if priors is None or isinstance(priors, AbstractPrior):
        found = dict.fromkeys(names, priors)
    elif isinstance(priors, Mapping):
        unknown = sorted(set(priors) - set(names))
        if unknown:
            raise ParameterError(f"priors for {unknown}, but where selects {list(names)}")
        found = {name: priors.get(name) for name in names}
    elif isinstance(priors, tuple | list) and len(priors) == len(names):
        found = dict(zip(names, priors, strict=True))
    else:
        raise ParameterError(
            f"priors are one object for all, a dict by name, or one for each of {list(names)}; got "
            f"{priors!r:.80}"
        )
    for name, prior in found.items():
        if prior is not None and not isinstance(prior, AbstractPrior):
            raise ParameterError(
                f"the prior of {name} must be Normal(…), LogNormal(…), HalfNormal(…), HalfCauchy(…), "
                f"Uniform(…) or an AbstractPrior of your own; got {prior!r:.80}"
            )
    return found


def _with_supports(
    bounds: Any, priors: Mapping[str, AbstractPrior | None], names: tuple[str, ...]
) -> Any:
    """Bounds by name, those that are not given from the supports of the priors."""
    supports = {n: Unbounded() if p is None else p.support for n, p in priors.items()}
    if bounds is None:
        return supports
    if isinstance(bounds, Mapping):
        return {**supports, **bounds}
    return bounds  # `make_coordinates` says what is wrong with anything else


def _require_shapes(
    priors: Mapping[str, AbstractPrior | None], values: Mapping[str, Array]
) -> None:
    """**Errors:** `ParameterError` for a prior of another shape than its parameter."""
    for name, prior in priors.items():
        if prior is None:
            continue
        value = values[name]
        try:
            shape = jax.eval_shape(prior.log_density, value).shape
        except (ValueError, TypeError) as error:
            raise ParameterError(
                f"the prior of {name} does not go with its shape {value.shape}: {error}"
            ) from error
        if shape != value.shape:
            raise ParameterError(
                f"log_density of the prior of {name} returns {shape} for a value of {value.shape}: one number "
                "for each is needed"
            )


def _is_open(bound: AbstractBounds) -> bool:
    """Whether the volume of the values within the bounds is infinite."""
    return isinstance(bound, Unbounded | PositiveBound)
