"""Fit ε and σ of a Lennard-Jones fluid to its structure, g(r)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import ParameterError
from physkit.fit import EquilibriumSamples, Fit, fit, reweight
from physkit.integrators import BAOAB
from physkit.observe import Every, RadialDistribution, Snapshot
from physkit.particles import Particles, lattice, maxwell_boltzmann
from physkit.particles.forces import LennardJones, Pairwise, truncate
from physkit.simulate import Simulation, init, simulate


class SmallFluid(NamedTuple):
    """How a fluid's structure is sampled: `replicas` boxes of 4 · cells³ atoms side by side.

    - `density`, `temperature`: known, in the units of ε = σ = 1.
    - `steps`: of Langevin dynamics in each round, the first fifth not used; a sample every `every`.
    - `r_max`, `bins`: of g(r).
    """

    density: float = 0.4
    temperature: float = 1.4
    cells: int = 3
    replicas: int = 16
    steps: int = 30_000
    every: int = 150
    r_max: float = 2.5
    bins: int = 50
    cutoff: float = 2.5

    @property
    def samples(self) -> int:
        """How many of each replica are used: four blocks of equal length, for error bars."""
        return self.steps // self.every // 5 * 4

    def force(self, model: LennardJones) -> Pairwise:
        """The force of these atoms, too few for neighbor lists."""
        return Pairwise(model, cutoff=self.cutoff, use_neighbor_list=False)

    def energy(self, model: LennardJones, state: tuple[Array, Array]) -> Float[Array, ""]:
        """The potential energy of a sample, from its pairs' squared distances."""
        squares = state[0]
        potential = truncate(model, jnp.asarray(self.cutoff, squares.dtype), "shifted-force")
        return jnp.sum(jnp.where(squares < self.cutoff**2, potential.energy(squares), 0))


class Structure(NamedTuple):
    """Samples of a fluid: g(r) of each, and what gives them weights.

    - `r`: middles of the bins; `value`, `error`: g(r), its standard error.
    - `samples`: with states `(squared distances of pairs, g)`. `last`: the replicas at the end.
    """

    r: np.ndarray
    value: np.ndarray
    error: np.ndarray
    samples: EquilibriumSamples
    last: Particles


def fluid_structure(
    fluid: SmallFluid, model: LennardJones, key: Array, begin: Particles | None = None
) -> Structure:
    """Draw samples of the fluid by Langevin dynamics.

    **Arguments:**

    - `model`: ε and σ.
    - `key`: of the noise.
    - `begin`: replicas to continue from; a crystal, which melts, if left out.

    **Errors:** `ParameterError` where `steps` and `every` leave fewer than four samples.
    """
    if not fluid.samples:
        raise ParameterError(
            f"four samples are needed of the last four fifths of a round; steps={fluid.steps} with "
            f"every={fluid.every} gives {fluid.steps // fluid.every} in all: use more steps"
        )
    sites, box = lattice.face_centered_cubic(fluid.cells, density=fluid.density)
    atoms = Particles(jnp.asarray(sites, float), space=box)
    if begin is None:
        keys = jax.random.split(key, fluid.replicas)
        begin = jax.vmap(lambda k: maxwell_boltzmann(k, atoms, fluid.temperature))(keys)
    squares, g, last = _draw_samples(fluid, model, begin, jax.random.split(key, fluid.replicas))
    samples = eqx.filter_jit(
        lambda m, states: EquilibriumSamples(fluid.energy, m, states, fluid.temperature)
    )(model, (squares, g))
    # (blocks, samples, bins): four blocks per replica, long enough to be nearly independent.
    blocks = np.asarray(g).reshape(4 * fluid.replicas, -1, fluid.bins).mean(axis=1)
    error = blocks.std(axis=0) / np.sqrt(len(blocks) - 1)
    r = (np.arange(fluid.bins) + 0.5) * fluid.r_max / fluid.bins
    return Structure(r, blocks.mean(axis=0), error, samples, last)


@eqx.filter_jit
def _draw_samples(fluid: SmallFluid, model: LennardJones, begin: Particles, keys: Array) -> Any:
    """Pairs and g(r) of all samples, replica by replica, and the last states."""
    # Smooth bins, so that g(r) has a derivative by the positions. Each frame begins with an empty
    # histogram, so that it is the g(r) of one sample.
    radial = RadialDistribution(1, fluid.r_max, fluid.bins, smooth=True)

    def g_of(now: Snapshot) -> Float[Array, " bins"]:
        _, histogram = radial(now, radial.init(now))
        return radial.summary(histogram)["radial_distribution"]["value"]

    first, second = (jnp.asarray(i) for i in np.triu_indices(4 * fluid.cells**3, 1))

    def squares_of(now: Snapshot) -> Float[Array, " pairs"]:
        x = now.state.position
        return jnp.sum(now.state.space.displacement(x[first], x[second]) ** 2, axis=1)

    record = Every(fluid.every, squares=squares_of, g=g_of)
    thermostat = BAOAB(fluid.force(model), temperature=fluid.temperature, friction=0.5)
    sim = Simulation(thermostat, dt=0.005, observers=record)

    def replica(state, key):
        result = simulate(sim, init(sim, state, key=key), fluid.steps)
        return (
            result.frames["squares"][-fluid.samples :],
            result.frames["g"][-fluid.samples :],
            result.state,
        )

    squares, g, last = jax.vmap(replica)(begin, keys)  # (replicas, samples, pairs or bins)
    return squares.reshape(-1, *squares.shape[2:]), g.reshape(-1, g.shape[-1]), last


class FluidFit(NamedTuple):
    """ε and σ round by round `[rounds + 1, 2]`, the last `Fit`, and its structure."""

    path: np.ndarray
    fit: Fit
    structure: Structure
    effective: float


def fit_fluid(
    fluid: SmallFluid,
    observed: Float[np.ndarray, " bins"],
    error: Float[np.ndarray, " bins"],
    begin: LennardJones,
    *,
    rounds: int = 5,
    key: Array | None = None,
    report: Callable[[str], Any] = print,
) -> FluidFit:
    """ε and σ whose fluid has the observed g(r).

    Each round draws samples with the present ε and σ, a tenth of what `fluid` says, and takes a
    Gauss–Newton step with ∂g/∂(ε, σ) by reweighting; the last one draws all and fits with weights, for
    the standard errors.

    **Arguments:**

    - `observed`, `error`: g(r) in the bins of `fluid`, and its standard error.
    - `begin`: ε and σ to start from.
    - `rounds`: of sampling. `key`: of the noise. `report`: called with a line per round.

    **Errors:** `ParameterError` for less than one round.

    **Reference:** Henderson, Phys. Lett. A 49, 197 (1974): g(r) determines the pair potential;
    Lyubartsev & Laaksonen, Phys. Rev. E 52, 3730 (1995), for the method.
    """
    if rounds < 1:
        raise ParameterError(f"at least one round of sampling is needed; got rounds={rounds}")
    key = jax.random.key(1) if key is None else key
    model, path, last = begin, [_parameters(begin)], None
    # √2: both g(r), observed and sampled, have errors. The floor is for bins with nearly no pairs, whose
    # errors come out too small.
    scale = np.sqrt(2) * np.maximum(error, 0.2 * np.median(error[error > 0]))
    # All rounds but the last: a tenth of the steps, a sample three times as often.
    every = max(fluid.every // 3, 1)
    quick = fluid._replace(steps=fluid.steps // 10 // every * every, every=every)
    for k in range(rounds - 1):
        structure = fluid_structure(quick, model, jax.random.fold_in(key, k), last)
        last = structure.last
        value, slopes = _sensitivity(model, structure.samples)
        used = _bins_with_pairs(structure, observed)
        matrix = np.stack([slopes.epsilon, slopes.sigma], axis=1)[used] / scale[used, None]
        residual = ((observed - value) / scale)[used]
        # Relative to ε and σ, so that one limit serves both.
        step = np.linalg.lstsq(matrix, residual, rcond=None)[0] / path[-1]
        step = np.clip(step, -0.05, 0.05)  # g(r) of a dense fluid is not linear beyond
        path.append(path[-1] * (1 + step))
        model = LennardJones(*path[-1])
        report(f"round {k + 1}: ε = {path[-1][0]:.4f}, σ = {path[-1][1]:.4f}")
    structure = fluid_structure(fluid, model, jax.random.fold_in(key, rounds), last)
    used = _bins_with_pairs(structure, observed)
    target = jnp.asarray(observed)
    weight = jnp.asarray(used / scale)

    def residuals(model):
        average = reweight(lambda m, s: s[1], model, structure.samples)
        return jnp.where(weight > 0, (average.value - target) * weight, 0)

    found = fit(
        residuals, model, where=lambda m: {"epsilon": m.epsilon, "sigma": m.sigma}, progress=False
    )
    path.append(_parameters(found.model))
    effective = reweight(lambda m, s: s[1], found.model, structure.samples).effective
    fraction = float(effective) / structure.samples.count
    report(
        f"fit: ε = {path[-1][0]:.4f}, σ = {path[-1][1]:.4f}, {fraction:.0%} of the samples count"
    )
    return FluidFit(np.array(path), found, structure, float(effective))


@eqx.filter_jit
def _sensitivity(model: LennardJones, samples: EquilibriumSamples) -> Any:
    """g(r), and its derivatives by ε and σ."""

    def g(model):
        return reweight(lambda m, s: s[1], model, samples).value

    # Forward mode: two parameters, many bins.
    return g(model), jax.jacfwd(g)(model)


def _bins_with_pairs(structure: Structure, observed: np.ndarray) -> np.ndarray:
    """Bins that hold pairs in either fluid; the others, inside the core, say nothing."""
    return (structure.value > 1e-3) | (observed > 1e-3)


def _parameters(model: LennardJones) -> np.ndarray:
    return np.array([float(model.epsilon), float(model.sigma)])
