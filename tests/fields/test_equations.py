"""Every equation through the battery, and against what is known of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
import physkit.fields.equations
from physkit.core import ParameterError, ShapeError, is_abstract
from physkit.fields import Field
from physkit.fields.equations import (
    Advection,
    AdvectionByField,
    Brusselator,
    Burgers,
    Closure,
    Diffusion,
    FisherKPP,
    FourierNeuralOperator,
    GrayScott,
    KortewegDeVries,
    KuramotoSivashinsky,
    Schroedinger,
    Wave,
)
from physkit.fields.operators import Central
from physkit.geometry import Box, Dirichlet, Grid, Neumann
from physkit.testing import check_tendency

from .equation_states import BETWEEN, advance, convolution, noise, rate, wall

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_battery[Advection1]",
    "test_battery[Burgers1]",
    "test_battery[GrayScott1]",
    "test_battery[Closure2]",
    "test_a_flow_carries_as_a_constant_velocity_does[central]",
    "test_bad_input_is_an_error",
)


PERIODIC = Grid([3.0, 2.0], (8, 6))


LINE = Grid([3.0], (12,))


CHANNEL = Grid(Box([3.0, 2.0], (True, False)), (6, 5))


def line():
    return noise(LINE)


def plane():
    return noise(PERIODIC)


def flow(grid=PERIODIC, boundary=None):
    return noise(grid, (grid.dimension,), boundary, vector=True, seed=1)


def species(grid=PERIODIC, boundary=None):
    return noise(grid, (2,), boundary)


def dye_in_flow(grid, boundary=None):
    return {"dye": noise(grid, boundary=boundary), "flow": flow(grid, boundary)}


def string(grid, boundary=None):
    return {
        "displacement": noise(grid, boundary=boundary),
        "velocity": noise(grid, boundary=boundary, seed=1),
    }


def psi(grid=LINE):
    return noise(grid, kind=complex)


def walls():
    return {"y": (Dirichlet(0.4), Neumann(0.2))}


FD = Central(4)


EQUATIONS = [
    (lambda: Advection([0.7, -0.4]), plane),
    (lambda: Advection(0.7, scheme=FD), wall),
    (lambda: Advection([0.7, -0.4]), lambda: noise(PERIODIC, kind=complex)),
    (lambda: AdvectionByField("flow", component="dye"), lambda: dye_in_flow(PERIODIC)),
    (lambda: AdvectionByField("flow", "dye", Central()), lambda: dye_in_flow(CHANNEL, walls())),
    (lambda: Diffusion([0.3, 0.7]), species),
    (lambda: Diffusion(0.3, scheme=FD), lambda: species(CHANNEL, walls())),
    (lambda: Diffusion(0.3, scheme=FD), psi),
    (lambda: Burgers(0.1), line),
    (lambda: Burgers(0.1), flow),
    (lambda: Burgers(0.1, scheme=Central()), lambda: flow(CHANNEL, walls())),
    (lambda: Burgers(0.1, scheme=Central()), wall),
    (lambda: KortewegDeVries(5.0, 0.4), line),
    (lambda: KuramotoSivashinsky(1.1, 0.2, 0.9), line),
    (lambda: KuramotoSivashinsky(1.1, 0.2, 0.9, "height"), plane),
    (lambda: FisherKPP(1.2, 0.8), plane),
    (lambda: FisherKPP(jnp.linspace(1.0, 2.0, 7)), wall),
    (lambda: GrayScott(0.04, 0.06), species),
    (lambda: Brusselator(1.2, 2.0), lambda: species(CHANNEL, walls())),
    (lambda: Wave(1.3), lambda: string(PERIODIC)),
    (lambda: Wave(jnp.linspace(1.0, 2.0, 7), scheme=FD), lambda: string(BETWEEN, Neumann())),
    (lambda: Schroedinger(0.5, 1.2, 0.9, 0.3), psi),
    (lambda: Schroedinger(Well(0.7)), lambda: noise(PERIODIC, kind=complex)),
    (lambda: Closure(convolution(2, 2), padding=1), lambda: species(CHANNEL, walls())),
    (lambda: Closure(convolution(1, 1, 0)), wall),
    (lambda: FourierNeuralOperator(1, 2, 2, 1, key=0), line),
    (lambda: FourierNeuralOperator(2, (2, 1), 3, 2, key=0, conserved=False), species),
]


class Well(pk.Module):
    """A potential with a parameter, which depends on time and place."""

    depth: jax.Array = pk.param()

    def __call__(self, t, *x):
        return self.depth * sum(jnp.cos(k + t) for k in x)


# These take the same paths as the others, more slowly.
SLOW = (
    "FourierNeuralOperator2",
    "Advection3",
    "Diffusion3",
    "Burgers3",
    "Burgers4",
    "FisherKPP2",
    "Schroedinger2",
)


def _cases():
    """The battery's cases, called by their equation and counted from 1."""
    counts = {}
    for make, state in EQUATIONS:
        kind = type(make()).__name__
        counts[kind] = counts.get(kind, 0) + 1
        name = f"{kind}{counts[kind]}"
        marks = [pytest.mark.slow] if name in SLOW else []
        yield pytest.param(make, state, marks=marks, id=name)


@pytest.mark.parametrize(("equation", "state"), _cases())
def test_battery(equation, state):
    check_tendency(equation(), state())


# In test_diffusion_between_walls.py, test_flow_between_walls.py, test_gas.py, test_geophysical.py,
# test_gravity_waves.py, test_incompressible.py, test_magnetohydrodynamics.py, test_noise.py, test_patterns.py,
# test_shallow_water.py and test_viscous_gas.py.
TESTED_ELSEWHERE = {
    "AllenCahn",
    "BarotropicVorticity",
    "BodyForce",
    "Buoyancy",
    "CahnHilliard",
    "ComplexGinzburgLandau",
    "CompressibleEuler",
    "ElasticWaves",
    "FitzHughNagumo",
    "GravityWaves",
    "IdealMHD",
    "HydrostaticFlow",
    "IncompressibleFlow",
    "KSpaceAcoustics",
    "KellerSegel",
    "KolmogorovForcing",
    "Maxwell",
    "NavierStokes",
    "Oregonator",
    "NonlinearDiffusion",
    "OrnsteinUhlenbeckNoise",
    "PhaseFieldCrystal",
    "QuasiGeostrophic",
    "ScalarTransport",
    "SelfGravity",
    "ShallowWater",
    "ShallowWaterFV",
    "Smagorinsky",
    "SphericalShallowWater",
    "Sponge",
    "SurfaceQuasiGeostrophic",
    "SwiftHohenberg",
    "VariableDiffusion",
    "VorticityTransport",
    "WhiteNoise",
}


def test_every_equation_has_a_battery():
    public = [getattr(physkit.fields.equations, n) for n in dir(physkit.fields.equations)]
    kinds = {
        x
        for x in public
        if isinstance(x, type) and issubclass(x, pk.AbstractTendency) and not is_abstract(x)
    }
    tested = {type(make()) for make, _ in EQUATIONS}
    assert {kind.__name__ for kind in kinds - tested} == TESTED_ELSEWHERE


def test_advection_moves_shapes(dtype):
    grid = Grid([2.0, 1.0], (32, 16))
    shape = lambda x, y: jnp.exp(jnp.sin(np.pi * x) + jnp.cos(2 * np.pi * y))
    start = Field.from_function(grid, shape, dtype=dtype)
    end = advance(pk.RK4(Advection([0.5, -0.25])), start, 0.02, 50)
    moved = Field.from_function(grid, lambda x, y: shape(x - 0.5, y + 0.25), dtype=dtype)
    np.testing.assert_allclose(end.data, moved.data, atol=2e-4)
    exact = advance(pk.integrators.ExactLinear(Advection([0.5, -0.25])), start, 1.0, 1)
    np.testing.assert_allclose(exact.data, moved.data, atol=1e-5 if dtype == jnp.float32 else 1e-11)


def test_advection_carries_boundary_values_in():
    grid = Grid(Box([1.0], (False,)), (80,))
    inflow = Dirichlet(lambda t, x: jnp.sin(2 * t) ** 3)
    start = Field(0.0, grid, boundary={"x": (inflow, pk.boundaries.Outflow())})
    end = advance(pk.RK4(Advection(2.0, scheme=Central())), start, 0.005, 200)
    (x,) = end.coordinates
    np.testing.assert_allclose(end.data[:-4], (jnp.sin(2 - x) ** 3)[:-4], atol=1e-2)


@pytest.mark.parametrize("scheme", [pk.schemes.Spectral(), FD], ids=["spectral", "central"])
def test_a_flow_carries_as_a_constant_velocity_does(scheme):
    dye = Field.from_function(PERIODIC, lambda x, y: jnp.sin(2 * np.pi / 3 * x))
    flow = Field.from_function(PERIODIC, lambda x, y: (0.7 + 0 * x, -0.4 + 0 * y))
    clock = pk.components.Clock.at(pk.core.StepCount.of(0), 0.0, 0.1)
    by = AdvectionByField("flow", "dye", scheme).rate(clock, {"dye": dye, "flow": flow})["dye"]
    constant = Advection([0.7, -0.4], scheme=scheme).linear(dye)
    values = [
        f.field().data if isinstance(f, pk.components.Spectrum) else f.data for f in (by, constant)
    ]
    np.testing.assert_allclose(*values, atol=1e-13)


def cole_hopf(grid, t, viscosity):
    """∇ ln φ for φ = 1.5 + e^{−2π²νt} cos πx cos πy, which diffuses."""
    decay = np.exp(-2 * np.pi**2 * viscosity * t)
    c, s = (lambda z: jnp.cos(np.pi * z)), (lambda z: jnp.sin(np.pi * z))
    phi = lambda x, y: 1.5 + decay * c(x) * c(y)
    size = 2 * np.pi * viscosity * decay
    return Field.from_function(
        grid, lambda x, y: (size * s(x) * c(y) / phi(x, y), size * c(x) * s(y) / phi(x, y))
    )


def test_burgers_in_the_plane_against_cole_and_hopf():
    grid = Grid([2.0, 2.0], (32, 32))
    end = advance(pk.ETDRK4(Burgers(0.1)), cole_hopf(grid, 0.0, 0.1), 0.02, 25)
    exact = cole_hopf(grid, 0.5, 0.1).data
    np.testing.assert_allclose(end.data, exact, atol=2e-6)
    errors = []
    for n in (16, 32):
        coarse = Grid([2.0, 2.0], (n, n))
        scheme = Burgers(0.1, scheme=Central())
        end = advance(pk.RK4(scheme), cole_hopf(coarse, 0.0, 0.1), 0.01, 50)
        errors.append(float(jnp.max(abs(end.data - cole_hopf(coarse, 0.5, 0.1).data))))
    assert 1.7 < np.log2(errors[0] / errors[1]) < 2.5


def test_steepening_equations_keep_their_momentum():
    start = Field.from_function(Grid([2.0], (64,)), lambda x: 1 + jnp.sin(np.pi * x))
    for equation in (Burgers(0.02), KortewegDeVries(6.0, 1e-3), KuramotoSivashinsky(0.1, 0.01)):
        end = advance(pk.ETDRK4(equation), start, 0.002, 100)
        np.testing.assert_allclose(end.integral(), start.integral(), rtol=1e-13)
        assert float(jnp.max(abs(end.data - start.data))) > 0.1
    waves = advance(pk.ETDRK4(KortewegDeVries(1.0, 1e-3)), start, 0.001, 100)
    np.testing.assert_allclose(waves.norm(), start.norm(), rtol=1e-9)


def test_the_slope_of_a_front_is_the_slope_of_its_height():
    grid = Grid([20.0], (48,))
    height = Field.from_function(grid, lambda x: jnp.cos(np.pi / 5 * x) + jnp.sin(np.pi / 10 * x))
    slope = height.spectrum().derivative(0).field()
    end = advance(pk.ETDRK4(KuramotoSivashinsky(form="height")), height, 0.05, 40)
    other = advance(pk.ETDRK4(KuramotoSivashinsky()), slope, 0.05, 40)
    np.testing.assert_allclose(end.spectrum().derivative(0).field().data, other.data, atol=1e-10)


def test_reactions_have_their_fixed_points():
    clock = pk.components.Clock.at(pk.core.StepCount.of(0), 0.0, 0.1)
    both = lambda u, v: Field(jnp.stack([jnp.full((8, 6), u), jnp.full((8, 6), v)]), PERIODIC)
    for equation, field in (
        (Brusselator(1.5, 2.4), both(1.5, 1.6)),
        (GrayScott(0.04, 0.06), both(1.0, 0.0)),
        (FisherKPP(1.2, 0.8), Field(0.8, PERIODIC)),
    ):
        np.testing.assert_allclose(equation.nonlinear(clock, field).data, 0.0, atol=1e-15)


def test_a_string_keeps_its_energy():
    grid, fixed = Grid(Box([1.0], (False,)), (32,)), Dirichlet(0.0)
    wave = Wave(1.0, scheme=Central())
    state = {
        "displacement": Field.from_function(grid, lambda x: x * (1 - x) ** 2, boundary=fixed),
        "velocity": Field(0.0, grid, boundary=fixed),
    }

    def energy(state):
        u, w = state["displacement"], state["velocity"]
        # On walls a half cell stands for a whole difference.
        slope = pk.operators.difference(u, "x")
        return float(0.5 * (w**2).integral() + 0.5 * (slope**2).integral())

    sim = pk.Simulation(pk.Strang(pk.Euler(wave.kick), pk.Euler(wave.drift)), dt=0.01)
    energies = [energy(state)]
    for _ in range(5):
        state = pk.simulate(sim, state, 400).state
        energies.append(energy(state))
    np.testing.assert_allclose(energies, energies[0], rtol=1e-2)


@pytest.mark.parametrize(
    ("make", "state", "error", "match"),
    [
        (lambda: Advection([1.0, 2.0, 3.0]), plane, ShapeError, r"2 axes is \[2\]; got \[3\]"),
        (lambda: Advection([1.0, 2.0]), lambda: noise(CHANNEL, (), walls()), ParameterError, "y"),
        (
            lambda: AdvectionByField("dye", "flow"),
            lambda: dye_in_flow(PERIODIC),
            ShapeError,
            "no vector",
        ),
        (lambda: Burgers(0.1), plane, ShapeError, "moves a vector field"),
        (lambda: KortewegDeVries(), plane, ShapeError, "2 axes"),
        (
            lambda: Schroedinger(jnp.ones(5)),
            lambda: noise(PERIODIC, kind=complex),
            ShapeError,
            "a potential of shape",
        ),
        (lambda: KuramotoSivashinsky(), plane, ShapeError, 'form="height"'),
        (lambda: GrayScott(0.1, 0.1), plane, ShapeError, "2 components"),
        (lambda: Brusselator(0.1, 0.1), lambda: noise(LINE, (3,)), ShapeError, r"\(3,\)"),
        (lambda: Schroedinger(), line, ShapeError, "one complex number per point"),
        (lambda: Closure(convolution(1, 1)), line, ShapeError, "padding=0"),
        (lambda: Closure(convolution(1, 1, 0)), psi, ShapeError, "real fields"),
        (lambda: FourierNeuralOperator(2, 2, key=0), line, ShapeError, "channels=2"),
        (lambda: FourierNeuralOperator(1, 2, key=0), plane, ShapeError, "of 1 axes"),
        (lambda: FourierNeuralOperator(1, 6, key=0), line, ShapeError, "a finer grid"),
        (lambda: FourierNeuralOperator(1, 2, key=0), psi, ShapeError, "real fields"),
        (lambda: FourierNeuralOperator(1, 2, key=0), wall, ParameterError, "periodic"),
        (lambda: Wave(1.0), line, pk.errors.ComponentError, "velocity"),
    ],
)
def test_bad_input_is_an_error(make, state, error, match):
    with pytest.raises(error, match=match):
        rate(make(), state())
