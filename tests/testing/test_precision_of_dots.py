"""Every matrix product of a program is taken at the highest precision.

On recent GPUs the default is TF32, with ten bits of mantissa. Programs are traced, not compiled: the
precision of a product stands in its jaxpr, whatever device it will run on.
"""

import ast
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import cast_floats
from physkit.geometry import Box, Grid, Triclinic
from physkit.observe import Pressure, StressTensor, VelocityAutocorrelation
from physkit.simulate.loop._init import plan_start

RNG = np.random.default_rng(3)
EVERY = {
    "pressure": Pressure(),
    "stress": StressTensor(),
    "energy": pk.TotalEnergy(),
    "momentum": pk.quantities.Momentum(),
    "angular": pk.quantities.AngularMomentum(),
    "center": pk.quantities.CenterOfMass(),
    "positions": pk.Positions(),
}


def atoms(space):
    sites = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3) * 1.2
    return pk.Particles(
        jnp.asarray(sites, jnp.float32), jnp.asarray(RNG.normal(size=sites.shape), jnp.float32),
        jnp.ones(27, jnp.float32), space, charge=jnp.ones(27, jnp.float32),
    )  # fmt: skip


def observed(force, space, **more):
    observers = [
        pk.Every(1, **EVERY),
        pk.MeanSquareDisplacement(1, 2),
        VelocityAutocorrelation(1, 2),
        pk.observers.StructureFactor(1, [[1, 0, 0], [0, 1, 2]]),
        pk.RadialDistribution(1, 1.4, 8),
    ]
    sim = pk.Simulation(pk.VelocityVerlet(force), 0.01, observers=observers, **more)
    return sim, atoms(space)


def network():
    return eqx.nn.MLP("scalar", "scalar", 4, 1, key=jax.random.key(0), activation=jnp.tanh)


class UserForce(pk.AbstractForce):
    """As users write them: a product of matrices, and no word of precision."""

    conserves_momentum = False
    component: str | None = pk.static(default=None)
    stiffness: jax.Array = pk.param(default=1.0)

    def energy(self, clock, state, cache=None):
        return 0.5 * self.stiffness * jnp.sum((state.position @ state.position.T) ** 2)


CUBE = Box([3.6, 3.6, 3.6])
TILTED = Triclinic([[3.6, 0.0, 0.0], [0.5, 3.6, 0.0], [0.0, 0.3, 3.6]])
# Systems, small: what stands in a program does not depend on its size.
PROGRAMS = {
    "observers": lambda: observed(pk.HarmonicTrap(1.0, [1.0, 1.0, 1.0]), CUBE),
    "box": lambda: observed(pk.Pairwise(pk.LennardJones(), 1.5, 0.2), CUBE),
    "triclinic": lambda: observed(pk.Pairwise(pk.LennardJones(), 1.5, 0.2), TILTED),
    "all pairs": lambda: observed(
        pk.Pairwise(pk.LennardJones(), 1.5, use_neighbor_list=False), CUBE
    ),
    "bonded": lambda: observed(
        pk.HarmonicBonds([[0, 1], [1, 2]], 1.0, 1.2) + pk.HarmonicAngles([[0, 1, 2]], 1.0, 1.5),
        CUBE,
    ),
    "network": lambda: observed(pk.Pairwise(pk.potentials.NeuralPair(network()), 1.5, 0.2), CUBE),
    "mesh": lambda: observed(pk.ParticleMesh(Grid(CUBE, (8, 8, 8))), CUBE),
    "of a user": lambda: (
        pk.Simulation(
            pk.VelocityVerlet(UserForce()), 0.01, observers=[pk.Every(1, e=pk.TotalEnergy())]
        ),
        atoms(pk.Free()),
    ),
    "reversible": lambda: observed(
        pk.Pairwise(pk.LennardJones(), 1.5, 0.2, exact=True), CUBE, adjoint=pk.Reversible()
    ),
}
SYSTEMS = {
    "acoustic_monopole": {"cells": 8},
    "brusselator": {"cells": (8, 8)},
    "burgers_wave": {"cells": 16},
    "coherent_state": {"cells": 16},
    "convection_cell": {"cells": 8},
    "cylinder_in_channel": {"cells": 12},
    "decaying_turbulence": {"resolution": 16, "peak": 3.0},
    "dielectric_slab": {"cells": 12},
    "double_well": {},
    "elastic_half_space": {"cells": 56},
    "electromagnetic_cavity": {"cells": (6, 5, 4)},
    "figure_eight": {},
    "fisher_front": {"cells": 32},
    "giant_planets": {},
    "go_model": {},
    "gray_scott": {"cells": (32, 32)},
    "hare_and_lynx": {},
    "kdv_solitons": {"cells": 32},
    "kelvin_helmholtz": {"cells": 16},
    "jeans_wave": {"cells": 16},
    "viscous_shear": {"cells": 8},
    "brio_wu": {"cells": 16},
    "orszag_tang": {"cells": 8},
    "kepler": {},
    "kolmogorov_flow": {"resolution": 16},
    "kuramoto_sivashinsky": {"cells": 32},
    "kob_andersen": {"cells": 4},
    "kremer_grest_melt": {"cells": (5, 5, 4), "beads": 5},
    "lennard_jones_box": {},
    "lennard_jones_melt": {"cells": 4},
    "lid_driven_cavity": {"cells": 8},
    "lattice_cavity": {"cells": 8},
    "lattice_convection": {"cells": 8},
    "shan_chen_droplet": {"cells": 12, "radius": 3.0},
    "liquid_argon": {"cells": 4},
    "ising_quench": {"spins": 4},
    "ising_model": {"cells": (8, 8)},
    "lorenz": {},
    "potts_model": {"cells": (8, 8)},
    "oregonator": {},
    "schloegl": {},
    "particle_laden_taylor_green": {"count": 16, "cells": 16},
    "particle_mesh_universe": {"cells": 8, "steps": 2},
    "plasma_oscillation": {},
    "plasma_wave": {"count": 64, "cells": 8},
    "plucked_string": {"cells": 16},
    "probed_flow": {"resolution": 16},
    "sedov": {"cells": 32},
    "sod": {"cells": 32},
    "sound_wave": {"cells": 16},
    "barotropic_jet": {"truncation": 5},
    "mountain_flow": {"truncation": 5},
    "rossby_haurwitz_wave": {"truncation": 5},
    "baroclinic_channel": {"cells": (6, 6, 4)},
    "baroclinic_turbulence": {"cells": 8},
    "spinodal_decomposition": {"cells": (8, 8)},
    "stommel_gyre": {"cells": 8},
    "taylor_green_2d": {"resolution": 16},
    "taylor_green_3d": {"resolution": 16},
    "thacker_bowl": {"cells": 8},
    "tunneling": {"cells": 64},
    "two_species_plasma": {"particles": 64, "cells": 16},
    "weibel_instability": {"cells": 8, "per_cell": 1},
    "two_stream": {"count": 64, "cells": 16},
    "water_box": {"cells": 3, "cutoff": 0.4},
    "zeldovich_pancake": {"count": 16, "cells": 16},
}


def products(jaxpr):
    """Every `dot_general` and convolution of a jaxpr and of those inside it, with its precision."""
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("dot_general", "conv_general_dilated"):
            yield equation
        for value in jax.tree.leaves(
            list(equation.params.values()),
            is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr"),
        ):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from products(inner)


def imprecise(function, *arguments):
    """Where products below the highest precision are written, with their precision."""
    jaxpr = eqx.filter_make_jaxpr(function)(*arguments)[0]
    highest = jax.lax.Precision.HIGHEST
    return [
        str(e)
        for e in products(jaxpr.jaxpr)
        if jnp.issubdtype(e.outvars[0].aval.dtype, jnp.inexact)
        and e.params["precision"] != (highest, highest)
    ]


def forward(sim, state):
    return pk.simulate(sim, state, sim.observation_period, key=jax.random.key(0))


def total(sim, state):
    leaves = jax.tree.leaves(eqx.filter(forward(sim, state).state, eqx.is_inexact_array))
    return sum(jnp.sum(jnp.abs(x)) for x in leaves)


def some(names, quick):
    return [n if n in quick else pytest.param(n, marks=pytest.mark.slow) for n in names]


@pytest.mark.parametrize("name", some(PROGRAMS, ("observers", "of a user")))
def test_forward(name):
    assert imprecise(forward, *PROGRAMS[name]()) == []


@pytest.mark.parametrize("name", some(PROGRAMS, ("of a user",)))
def test_backward(name):
    sim, state = PROGRAMS[name]()
    assert imprecise(eqx.filter_grad(lambda s: total(s, state)), sim) == []


def test_network_alone():
    r = jnp.ones(3, jnp.float32)
    pair = cast_floats(pk.potentials.NeuralPair(network()), jnp.float32)
    assert imprecise(pair.energy, r) == []


def test_what_a_user_chose_stays():
    sim, state = PROGRAMS["of a user"]()
    with jax.default_matmul_precision("tensorfloat32"):
        assert imprecise(forward, sim, state) != []


@pytest.mark.parametrize(
    "name",
    some(SYSTEMS, ("kepler",)),
)
def test_shipped_systems(name):
    sim, state = getattr(pk.systems, name)(**SYSTEMS[name])
    sim = plan_start(sim, state)  # meshes from boxes, whose numbers the trace hides
    assert imprecise(forward, sim, state) == []


def test_a_product_at_default_precision_is_found():
    x = jnp.ones((3, 3), jnp.float32)
    assert len(imprecise(lambda a: jnp.tanh(a @ a), x)) == 1
    assert len(imprecise(jax.jit(lambda a: jax.lax.map(lambda r: r @ a, a)), x)) == 1
    assert imprecise(lambda a: jnp.matmul(a, a, precision="highest"), x) == []


JAX_PRODUCTS = {"matmul", "dot", "einsum", "tensordot", "vdot", "inner", "convolve", "correlate"}


def test_only_one_file_calls_jax_for_products():
    found = []
    for path in sorted(Path(pk.__file__).parent.rglob("*.py")):
        if path.name == "_matrix_products.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Attribute) and node.attr in JAX_PRODUCTS
            if is_call and isinstance(node.value, ast.Name) and node.value.id == "jnp":
                found.append(f"{path.name}:{node.lineno} jnp.{node.attr}")
    assert found == []
