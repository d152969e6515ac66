"""Equations of patterns: the battery, free energies, and what is known in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, ParameterError, ShapeError, StepCount
from physkit.fields import Field
from physkit.fields.equations import (
    AllenCahn,
    CahnHilliard,
    ComplexGinzburgLandau,
    Diffusion,
    FitzHughNagumo,
    KellerSegel,
    NonlinearDiffusion,
    Oregonator,
    PhaseFieldCrystal,
    PowerLaw,
    SwiftHohenberg,
)
from physkit.fields.operators import Central, Spectral
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann
from physkit.testing import check_tendency

PLANE = Grid([3.0, 2.0], (8, 6))
LINE = Grid([3.0], (12,))
CHANNEL = Grid(Box([3.0, 2.0], (True, False)), (6, 5))
CLOCK = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.1))


def noise(grid, components=(), boundary=None, *, kind=float, mean=0.3):
    rng = np.random.default_rng(0)
    shape = components + grid.local_shape_at(grid.cell)
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind is complex else 0)
    return Field(jnp.asarray(mean + 0.3 * values), grid, boundary=boundary)


FLOWS = {
    "allen-cahn": lambda **k: AllenCahn(0.7, 0.2, 1.3, **k),
    "cahn-hilliard": lambda **k: CahnHilliard(0.7, 0.2, 1.3, **k),
    "swift-hohenberg": lambda **k: SwiftHohenberg(0.3, 0.4, 1.1, 0.8, **k),
    "phase-field-crystal": lambda **k: PhaseFieldCrystal(0.25, 0.1, 1.1, 0.8, **k),
}
slow = pytest.mark.slow
CASES = [
    pytest.param(FLOWS["allen-cahn"], lambda: noise(PLANE), marks=slow, id="allen-cahn"),
    pytest.param(FLOWS["cahn-hilliard"], lambda: noise(LINE), id="cahn-hilliard"),
    pytest.param(FLOWS["swift-hohenberg"], lambda: noise(PLANE), marks=slow, id="swift-hohenberg"),
    pytest.param(
        FLOWS["phase-field-crystal"], lambda: noise(LINE), marks=slow, id="phase-field-crystal"
    ),
    pytest.param(
        lambda: CahnHilliard(0.7, 0.2, 1.3, scheme=Central()),
        lambda: noise(CHANNEL, boundary=Neumann()),
        marks=slow,
        id="cahn-hilliard between walls",
    ),
    pytest.param(
        lambda: ComplexGinzburgLandau(1.0, 0.5, 0.3, 1.2, -0.7),
        lambda: noise(LINE, kind=complex),
        id="complex ginzburg-landau",
    ),
    pytest.param(
        lambda: FitzHughNagumo(0.4), lambda: noise(LINE, (2,)), marks=slow, id="fitzhugh-nagumo"
    ),
    pytest.param(
        lambda: Oregonator(1.4, 0.1, 0.1),
        lambda: noise(LINE, (2,), mean=1.0),
        marks=slow,
        id="oregonator",
    ),
    pytest.param(
        lambda: KellerSegel(0.8, 1.1, 0.4),
        lambda: noise(PLANE, (2,), mean=1.0),
        marks=slow,
        id="keller-segel",
    ),
    pytest.param(
        lambda: KellerSegel(0.8, 1.1, 0.4, scheme=Central()),
        lambda: noise(CHANNEL, (2,), Neumann(0.2), mean=1.0),
        id="keller-segel between walls",
    ),
    pytest.param(
        lambda: NonlinearDiffusion(PowerLaw(0.7, 1.5)),
        lambda: noise(CHANNEL, boundary=Neumann(0.2), mean=2.0),
        id="nonlinear diffusion",
    ),
]


@pytest.mark.parametrize(("equation", "state"), CASES)
def test_battery(equation, state):
    check_tendency(equation(), state())


def values(rate):
    return rate.field().data if isinstance(rate, pk.components.Spectrum) else rate.data


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("scheme", [Spectral(), Central()], ids=["spectral", "central"])
def test_rate_is_down_the_derivative_of_the_free_energy(name, scheme):
    grid = PLANE if isinstance(scheme, Spectral) else CHANNEL
    equation, field = (
        FLOWS[name](scheme=scheme),
        noise(grid, boundary=None if all(grid.periodic) else Neumann()),
    )

    @jax.jit
    def both(field):
        energy = lambda data: equation.free_energy(field.replace(data=data))
        potential = jax.grad(energy)(field.data) / grid.cell_volume
        parts = values(equation.linear(field)) + values(equation.nonlinear(CLOCK, field))
        return potential, equation.chemical_potential(field).data, parts

    by_derivative, potential, rate = both(field)
    np.testing.assert_allclose(potential, by_derivative, atol=1e-10)
    if not equation.conserved:
        np.testing.assert_allclose(rate, -equation.mobility * potential, atol=1e-10)
    else:
        assert abs(rate.sum()) < 1e-9 * abs(rate).sum()
        # dF/dt = ∫ δF/δφ ∂φ/∂t ≤ 0.
        assert float((rate * potential).sum()) < 0


@pytest.mark.parametrize(("name", "dt"), [("allen-cahn", 0.3), ("cahn-hilliard", 0.3)])
def test_free_energy_never_rises_and_the_mass_of_a_mixture_stays(name, dt):
    grid = Grid([16.0, 16.0], (32, 32))
    start = Field(0.05 * jax.random.normal(jax.random.key(1), (32, 32)), grid)
    watch = pk.Every(1, F=pk.quantities.FreeEnergy(), mass=pk.quantities.Integral())
    sim = pk.Simulation(pk.ETDRK2(FLOWS[name]()), dt=dt, observers=watch)
    result = pk.simulate(sim, start, 150)
    energy = np.asarray(result["F"])
    assert np.all(np.diff(energy) < 0)
    assert energy[-1] < 0.5 * energy[0]
    if name == "cahn-hilliard":
        assert np.max(abs(result["mass"] - result["mass"][0])) < 1e-12 * 256


@pytest.mark.parametrize("name", FLOWS)
def test_the_stiff_part_is_solved_for_between_walls(name):
    """u − a L u = w, slopes at walls included, where the fourth and sixth derivative limit explicit steps."""
    equation = FLOWS[name](scheme=Central())
    field = noise(CHANNEL, boundary={"y": (Neumann(0.3), Mirror())})

    @jax.jit
    def residual(field):
        solution = equation.solve(field, jnp.asarray(2.0))
        return solution.data - 2.0 * equation.linear(solution).data - field.data

    assert equation.can_solve(field)
    np.testing.assert_allclose(residual(field), 0.0, atol=1e-10)
    assert not equation.can_solve(noise(PLANE))
    assert not equation.can_solve(noise(CHANNEL, boundary=Dirichlet(0.0)))


def test_a_mixture_parts_between_walls_in_long_steps():
    """Its free energy falls and its mass stays, at 200 times the limit of explicit steps."""
    law = CahnHilliard(scheme=Central())
    grid = Grid(Box([12.0, 8.0], False), (24, 16))
    start = noise(grid, boundary=Neumann(), mean=0.0)
    watch = pk.Every(1, F=pk.quantities.FreeEnergy(), mass=pk.quantities.Integral())
    dt = 0.4
    assert dt > 200 * float(jnp.min(grid.spacing)) ** 4 / (8 * 2**2)
    sim = pk.Simulation(pk.integrators.ARS222(law), dt=dt, observers=watch)
    result = jax.jit(lambda s: pk.simulate(sim, s, 100))(start)
    energy = np.asarray(result["F"])
    assert np.all(np.diff(energy) < 1e-12)
    assert energy[-1] < 0.7 * energy[0]
    assert np.max(abs(result["mass"] - result["mass"][0])) < 1e-12 * 96


def test_a_disk_of_the_smaller_phase_shrinks_by_its_curvature():
    # R² = R₀² − 2Mκt: an interface moves by Mκ/R.
    grid = Grid([12.0, 12.0], (64, 64))
    law = AllenCahn(mobility=0.5, gradient_energy=0.3, barrier=6.0)
    width = np.sqrt(2 * 0.3 / 6.0)
    radius = lambda x, y: jnp.sqrt((x - 6) ** 2 + (y - 6) ** 2)
    start = Field.from_function(grid, lambda x, y: jnp.tanh((radius(x, y) - 4.0) / width))
    area = pk.quantities.Expression(lambda s: 0.5 * (144.0 - s.state.integral()))
    sim = pk.Simulation(pk.ETDRK2(law), dt=0.02, observers=pk.Every(100, area=area))
    areas = np.asarray(pk.simulate(sim, start, 800)["area"])
    np.testing.assert_allclose((areas[2] - areas[8]) / 12.0, 2 * np.pi * 0.5 * 0.3, rtol=0.02)


def test_flat_interface_and_what_it_costs():
    # φ = tanh(x/√(2κ/W)) rests, and costs (2√2/3) √(κW); the box holds two of them.
    grid = Grid([40.0], (256,))
    law = CahnHilliard(1.0, gradient_energy=0.8, barrier=1.5)
    width = np.sqrt(2 * 0.8 / 1.5)
    start = Field.from_function(grid, lambda x: jnp.tanh((10 - abs(x - 20)) / width))
    end = pk.simulate(pk.Simulation(pk.ETDRK2(law), dt=0.1), start, 100).state
    np.testing.assert_allclose(end.data, start.data, atol=1e-5)
    tension = 2 * np.sqrt(2) / 3 * np.sqrt(0.8 * 1.5)
    np.testing.assert_allclose(law.free_energy(end), 2 * tension, rtol=1e-6)


def test_rolls_grow_at_their_rate_to_their_amplitude():
    # Near the onset u = √(4r/3) cos qx; the third harmonic takes r/2048 of it.
    r, q = 0.01, 1.0
    grid = Grid([2 * np.pi], (16,))
    start = Field.from_function(grid, lambda x: 1e-6 * jnp.cos(x))
    sim = pk.Simulation(pk.ETDRK4(SwiftHohenberg(r, 0.0, q)), dt=2.0)
    early = pk.simulate(sim, start, 100).state
    first = lambda u: 2 * jnp.mean(u.data * jnp.cos(u.coordinates[0]))
    np.testing.assert_allclose(first(early), 1e-6 * np.exp(r * 200), rtol=1e-8)
    end = pk.simulate(sim, start, 1500).state
    np.testing.assert_allclose(first(end), np.sqrt(4 * r / 3), rtol=1e-4)


def test_plane_waves_of_the_complex_ginzburg_landau_equation():
    growth, diffusion, b, s, c = 1.0, 0.5, 0.3, 1.2, -0.7
    k = 2 * np.pi / 8
    a = np.sqrt((growth - diffusion * k**2) / s)
    omega = b * k**2 + c * a**2
    grid = Grid([8.0], (16,))
    law = ComplexGinzburgLandau(growth, diffusion, b, s, c)
    start = Field.from_function(
        grid, lambda x: jax.lax.complex(a * jnp.cos(k * x), a * jnp.sin(k * x))
    )
    end = pk.simulate(pk.Simulation(pk.ETDRK4(law), dt=0.02), start, 500).state
    exact = a * np.exp(1j * (k * np.asarray(end.coordinates[0]) - omega * 10.0))
    np.testing.assert_allclose(end.data, exact, atol=2e-8)


def test_a_front_between_the_states_of_a_nerve():
    # Without recovery (ε = 0) and w = 0 the roots are ±√3 and 0: v = √3 tanh(√(3/2D) x/√3 …) rests; a
    # current I tilts it, and the front runs at √(D/6) (v₁ + v₃ − 2v₂), v₁ < v₂ < v₃ the roots.
    current, diffusivity = 0.2, 0.5
    low, middle, high = np.sort(np.roots([-1 / 3, 0, 1, current]).real)
    grid = Grid(Box([60.0], (False,)), (600,))
    v = lambda x: jnp.where(x < 15, high, low)
    start = Field(
        jnp.stack([v(grid.coordinates()[0]), jnp.zeros(600)]), grid, boundary=Neumann(0.0)
    )
    where = pk.quantities.Expression(lambda s: jnp.sum(s.state.data[0] - low) * 0.1 / (high - low))
    flow = pk.SSPRK3(
        FitzHughNagumo(current, slowness=0.0), Diffusion([diffusivity, 0.0], scheme=Central(4))
    )
    sim = pk.Simulation(flow, dt=0.008, observers=pk.Every(1250, front=where))
    front = np.asarray(pk.simulate(sim, start, 5000)["front"])
    speed = np.sqrt(diffusivity / 6) * (low + high - 2 * middle)
    np.testing.assert_allclose((front[4] - front[2]) / 20.0, speed, rtol=2e-3)


def test_the_oregonator_swings_between_half_and_one_and_root_two():
    """Where its rest becomes unstable, for small ε and q (Tyson & Fife 1980)."""
    q = 1e-6

    @jax.jit
    @jax.vmap
    def rest(f):
        b = 1 - f - q
        u = 0.5 * (b + jnp.sqrt(b**2 + 4 * q * (1 + f)))
        law = Oregonator(f, 1e-6, q)
        rate = lambda w: law.nonlinear(
            CLOCK, Field(jnp.broadcast_to(w[:, None], (2, 4)), Grid([1.0], (4,)))
        )
        one = lambda w: rate(w).data[:, 0]
        at = jnp.stack([u, u])
        return one(at), jnp.trace(jax.jacfwd(one)(at))

    residual, trace = rest(jnp.asarray([0.49, 0.51, 2.40, 2.43]))
    np.testing.assert_allclose(residual * 1e-6, 0.0, atol=1e-12)
    assert list(np.asarray(trace) > 0) == [False, True, True, False]


@pytest.mark.parametrize(
    ("scheme", "error"), [(Spectral(), 1e-6), (Central(), 6e-3)], ids=["spectral", "central"]
)
def test_chemotaxis_grows_at_its_rate_and_keeps_its_cells(scheme, error):
    chi, alpha, beta, (d_n, d_c) = 2.0, 1.0, 0.5, (0.6, 1.0)
    k = 2 * np.pi / 12
    matrix = np.array([[-d_n * k**2, chi * k**2], [alpha, -beta - d_c * k**2]])
    rates, modes = (x.real for x in np.linalg.eig(matrix))
    top = int(np.argmax(rates))
    n, c = modes[:, top]
    grid = Grid([12.0], (64,))
    wave = jnp.cos(k * grid.coordinates()[0])
    start = Field(jnp.stack([1 + 1e-6 * n * wave, alpha / beta + 1e-6 * c * wave]), grid)
    law = KellerSegel(chi, alpha, beta, scheme=scheme)
    flow = pk.RK4(law, Diffusion([d_n, d_c], scheme=scheme))
    end = pk.simulate(pk.Simulation(flow, dt=0.005), start, 200).state
    growth = np.log(2 * float(jnp.mean(end.data[0] * wave)) / (1e-6 * n))
    np.testing.assert_allclose(growth, rates[top], rtol=error)
    np.testing.assert_allclose(end.integral()[0], 12.0, rtol=1e-13)


def barenblatt(r, t, dimension, exponent):
    """u = t^(−α) (1 − κ r² t^(−2β))₊^(1/m): a spot of a porous medium that spreads."""
    beta = 1 / (dimension * exponent + 2)
    kappa = exponent * beta / 2
    inside = 1 - kappa * r**2 * t ** (-2 * beta)
    return t ** (-dimension * beta) * jnp.maximum(inside, 0) ** (1 / exponent)


def test_a_spot_in_a_porous_medium_has_barenblatts_shape():
    errors = []
    for n in (64, 128):
        grid = Grid(Box([16.0], (False,)), (n,))
        spot = lambda t, grid=grid: Field.from_function(
            grid, lambda x: barenblatt(x - 8, t, 1, 1.0), boundary=Neumann(0.0)
        )
        law = NonlinearDiffusion(PowerLaw(1.0, 1.0))
        end = pk.simulate(pk.Simulation(pk.SSPRK2(law), dt=0.002), spot(1.0), 1000).state
        np.testing.assert_allclose(end.integral(), spot(1.0).integral(), rtol=1e-13)
        errors.append(float((end - spot(3.0)).norm(1)))
    # Not quite second order: the slope jumps at the edge.
    assert errors[1] < 4e-4
    assert errors[1] < 0.5 * errors[0]


WRONG = {
    "CahnHilliard: gradient_energy must be positive": lambda: CahnHilliard(gradient_energy=0.0),
    "AllenCahn: mobility must not be negative": lambda: AllenCahn(-1.0),
    "SwiftHohenberg: wavenumber must be positive": lambda: SwiftHohenberg(wavenumber=-1.0),
    "ComplexGinzburgLandau: saturation": lambda: ComplexGinzburgLandau(saturation=0.0),
    "KellerSegel: decay": lambda: KellerSegel(1.0, decay=-1.0),
    "PowerLaw: coefficient": lambda: PowerLaw(-1.0),
}


@pytest.mark.parametrize("message", WRONG)
def test_parameters_of_the_wrong_sign_are_refused(message):
    with pytest.raises(ParameterError, match=message):
        WRONG[message]()


def test_states_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="one real number per point"):
        CahnHilliard().nonlinear(CLOCK, noise(PLANE, (2,)))
    with pytest.raises(ShapeError, match="one complex number per point"):
        ComplexGinzburgLandau().nonlinear(CLOCK, noise(PLANE))
    with pytest.raises(ShapeError, match="2 components"):
        KellerSegel(1.0).nonlinear(CLOCK, noise(PLANE))
    with pytest.raises(ParameterError, match="of order 2"):
        KellerSegel(1.0, scheme=Central(4)).nonlinear(CLOCK, noise(PLANE, (2,)))
    watch = pk.Every(1, F=pk.quantities.FreeEnergy())
    sim = pk.Simulation(pk.ETDRK2(Diffusion(0.1)), dt=0.1, observers=watch)
    with pytest.raises(
        pk.errors.ObserverError, match=r"of one equation such as CahnHilliard.*it holds Diffusion"
    ):
        pk.simulate(sim, noise(PLANE), 1)
