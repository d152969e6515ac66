"""Simulations to sweep, to differentiate and to resume: those of the other families, without mistakes."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk
from physkit.core import path_name

from . import coupling_draws, field_draws, field_problems, particle_draws, particle_problems

STEPS, INTERVAL = 8, 2


@dataclasses.dataclass(frozen=True)
class Base:
    family: str
    structure: Any

    def __str__(self) -> str:
        return str(self.structure)


def draw_base(rng: np.random.Generator, block: int, **fixed) -> Base:
    """A structure of one of the other families; `fixed` are what it has in all of them."""
    family = ("particles", "particles", "fields", "fields", "coupling")[block % 5]
    draws = {"particles": particle_draws, "fields": field_draws, "coupling": coupling_draws}[family]
    s = draws.draw_structure(rng, int(rng.integers(1000)))
    s = dataclasses.replace(s, mistake="", devices=False, **fixed)
    if family == "particles":
        s = dataclasses.replace(
            s, count=4 if s.dimension == 1 else 9, reach=min(s.reach, 0.95), use_list=s.use_list
        )
    elif family == "coupling":
        # Nothing moves by a mesh alone that jumps from cell to cell.
        kind = "drag" if s.kind == "transfer" else s.kind
        s = dataclasses.replace(s, kind=kind, staggered=False, order=max(s.order, 2), count=7)
        if s.integrator in ("verlet", "leapfrog") and kind == "drag":
            s = dataclasses.replace(s, integrator="rk4")
    elif min(s.shape) < 5:
        s = dataclasses.replace(s, shape=(7,) * len(s.shape))
    return Base(family, s)


def build(base: Base, seed: int, adjoint=None) -> tuple[tuple[pk.Simulation, Any], Any]:
    """The model `(simulation, state)`, and a key where there is noise."""
    s, key = base.structure, None
    if base.family == "particles":
        numbers = particle_draws.Numbers(seed, "simulate", 1.0, "", 1.0, 1.0)
        problem = particle_problems.build(s, numbers)
    elif base.family == "fields":
        problem = field_problems.build(s, field_draws.Numbers(seed, "simulate", 1.0, "", 1.0, 1.0))
    else:
        problem = coupling_draws.build(s, coupling_draws.Numbers(seed, "simulate", 1.0, "", 1.0))
    integrator = problem.sim.integrator
    if isinstance(integrator, pk.BAOAB):
        length, mass, time = particle_problems.UNITS[s.units]
        heat = lambda x: jnp.asarray(x, s.dtype)
        integrator = eqx.tree_at(
            lambda i: (i.temperature, i.friction), integrator,
            (heat(0.3 * mass * length**2 / time**2), heat(0.8 / time)),
        )  # fmt: skip
        key = jax.random.key(seed % 1000)
    observers = (pk.Every(INTERVAL, means=means), pk.Average(INTERVAL, average=means))
    more = {} if adjoint is None else {"adjoint": adjoint}
    sim = pk.Simulation(integrator, problem.sim.dt, observers=observers, **more)
    return (sim, problem.state), key


def numbers_of(state) -> list[jax.Array]:
    """What moves: paths and velocities of particles, values of fields, by their parts."""
    out = []
    for part in jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, pk.Particles)):
        if isinstance(part, pk.Particles):
            out += [part.unwrapped, part.velocity]
        elif eqx.is_inexact_array(part):
            out += [part.real, part.imag] if jnp.iscomplexobj(part) else [part]
    return out


def means(now) -> jax.Array:
    """Of what moves, with weights by place, so that none is a sum that cancels; linear for derivatives."""
    weigh = lambda x: jnp.mean(x.ravel() * (1 + jnp.cos(jnp.arange(x.size, dtype=x.dtype))))
    return jnp.stack([weigh(x) for x in numbers_of(now.state)])


def movable_leaves(model) -> list[tuple[int, str]]:
    """Places among the leaves, and paths, of what one may vary by itself: all floats but the sizes of boxes."""
    found, _ = jax.tree_util.tree_flatten_with_path(model)
    names = [(k, path_name(path), leaf) for k, (path, leaf) in enumerate(found)]
    return [
        (k, name) for k, name, leaf in names
        if eqx.is_inexact_array(leaf) and not any(w in name for w in ("lengths", "vectors", "t0"))
    ]  # fmt: skip
