"""Gas dynamics: the state, the term, what is conserved, mirrored, convergent and differentiable."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.fields import finite_volume_rate
from physkit.testing import check_gradient, check_tendency

from .riemann_solvers import SOLVERS, name

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_primitive_and_conserved_are_inverse[float32]",
    "test_mass_momentum_and_energy_are_kept[HLL-muscl]",
    "test_bad_gases_are_errors",
    "test_volumes_of_shells_in_single_precision",
)


SCHEMES = [
    pk.reconstructions.PiecewiseConstant(),
    pk.reconstructions.MUSCL(),
    pk.reconstructions.MUSCL(pk.limiters.MonotonizedCentral()),
    pk.reconstructions.WENO5(),
]


def flow(shape=(8,), axes=False, boundary=None, gamma=1.4, dtype=None, seed=0):
    """Gas that differs from cell to cell, moderately."""
    rng = np.random.default_rng(seed)
    grid = pk.Grid(pk.Box([1.0 + 0.1 * k for k in range(len(shape))], axes), shape)
    draw = lambda a, b: jnp.asarray(a + b * rng.uniform(-1, 1, shape))
    velocity = tuple(draw(0.2 * k, 0.5) for k in range(len(shape)))
    return pk.components.Gas.from_primitive(
        grid, draw(1.0, 0.3), velocity, draw(1.0, 0.3), gamma, boundary, dtype=dtype
    )


def advance(gas, law, steps=10, dt=0.004):
    return pk.simulate(pk.Simulation(pk.SSPRK2(law), dt=dt), gas, steps).state


# --- the state ----------------------------------------------------------------------------------


def test_primitive_and_conserved_are_inverse(dtype):
    gas = flow((4, 3), True, dtype=dtype)
    again = pk.components.Gas.from_primitive(
        gas.grid, gas.density, gas.velocity, gas.pressure(1.4), 1.4, dtype=dtype
    )
    for part, other in zip(gas.parts().values(), again.parts().values(), strict=True):
        assert part.data.dtype == dtype
        np.testing.assert_allclose(
            part.data, other.data, rtol=1e-5 if dtype == jnp.float32 else 1e-13
        )
    c = gas.sound_speed(1.4).data
    np.testing.assert_allclose(c**2, 1.4 * gas.pressure(1.4).data / gas.density.data, rtol=1e-5)


def test_bad_gases_are_errors():
    grid = pk.Grid(pk.Box([1.0, 1.0], False), (4, 4))
    outflow = pk.boundaries.Outflow()

    def make(density=1.0, velocity=(0.0, 0.0), pressure=1.0, boundary=outflow):
        return pk.components.Gas.from_primitive(grid, density, velocity, pressure, 1.4, boundary)

    with pytest.raises(pk.errors.ParameterError, match=r"pressure .* got -1 in cell \(0, 0\)"):
        make(pressure=-1.0)
    with pytest.raises(pk.errors.ParameterError, match=r"density .* in cell \(2, 1\)"):
        make(density=jnp.ones((4, 4)).at[2, 1].set(0.0))
    with pytest.raises(pk.errors.ParameterError, match="GasInflow"):
        make(boundary=pk.boundaries.Dirichlet(1.0))
    for other in (pk.boundaries.Robin(1.0, 0.0), pk.boundaries.Inflow(1.0)):
        with pytest.raises(pk.errors.ParameterError, match="cannot hold for density"):
            make(boundary={"x": (outflow, other), "y": outflow})
    for velocity in (3.0, (3.0,), (3.0, 0.0, 0.0), lambda t, x, y: 3.0):
        inflow = pk.boundaries.GasInflow(1.0, velocity, 1.0)
        with pytest.raises(pk.errors.ShapeError, match=r"2 components, a tuple \(u, v\)"):
            make(boundary={"x": (inflow, outflow), "y": outflow})
    with pytest.raises(pk.errors.ParameterError, match="x_low"):
        make(boundary=None)
    with pytest.raises(pk.errors.ShapeError, match="2 components; got 1"):
        make(velocity=0.0)
    with pytest.raises(pk.errors.ShapeError, match="scalar density"):
        pk.components.Gas(make().density, make().density, make().energy)
    with pytest.raises(pk.errors.ShapeError, match="grid"):
        pk.components.Gas(make().density, make().momentum, flow((5,), True).energy)
    with pytest.raises(pk.errors.ParameterError, match="exceed 1"):
        pk.equations.CompressibleEuler(1.0)
    with pytest.raises(pk.errors.ParameterError, match="no symmetry"):
        pk.equations.CompressibleEuler(1.4, symmetry="round")
    with pytest.raises(pk.errors.ShapeError, match="radius"):
        advance(make(), pk.equations.CompressibleEuler(1.4, symmetry="spherical"), 1)


def test_init_refuses_a_gas_that_is_not_positive():
    gas = flow((8,), True)
    cold = gas.replace({"energy": gas.energy.replace(data=0 * gas.energy.data)})
    with pytest.raises(pk.SimulationDiverged, match="not positive"):
        pk.init(pk.Simulation(pk.SSPRK2(pk.equations.CompressibleEuler(1.4)), dt=0.001), cold)


# --- the term -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES, ids=["constant", "muscl", "mc", "weno"])
@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_a_uniform_gas_stays_as_it_is(solver, scheme):
    grid = pk.Grid(pk.Box([1.0, 1.0], (True, False)), (6, 6))
    gas = pk.components.Gas.from_primitive(grid, 1.2, (0.3, 0.0), 0.7, 1.4, pk.boundaries.Mirror())
    rates = finite_volume_rate(pk.equations.CompressibleEuler(1.4, solver, scheme), gas)
    for rate in rates.values():
        np.testing.assert_allclose(rate.values, 0, atol=1e-12)


@pytest.mark.parametrize(
    "solver",
    [
        pk.riemann.HLL(),
        pytest.param(pk.riemann.Rusanov(), marks=pytest.mark.slow),
        pk.riemann.ExactRiemann(),
    ],
    ids=name,
)
def test_battery_in_one_dimension(solver):
    law = pk.equations.CompressibleEuler(1.4, solver, pk.reconstructions.PiecewiseConstant())
    check_tendency(law, flow((6,), False, pk.boundaries.Outflow()), compare="sum")


@pytest.mark.parametrize(
    "scheme", [pk.reconstructions.MUSCL(), pk.reconstructions.WENO5()], ids=name
)
def test_battery_in_two_dimensions(scheme, monkeypatch):
    if isinstance(scheme, pk.reconstructions.WENO5):
        # Derivatives by the range of the data, which it leaves out, are 10⁻⁶ to 10⁻⁵ of all: here they count.
        monkeypatch.setattr(jax.lax, "stop_gradient", lambda x: x)
    gas = flow((4, 3), (True, False), pk.boundaries.Mirror())
    check_tendency(
        pk.equations.CompressibleEuler(1.4, pk.riemann.HLLC(), scheme, component="gas"),
        {"gas": gas},
        drives=["gas"],
    )


def test_battery_of_a_blast():
    gas = flow((6,), False, {"x": (pk.boundaries.Mirror(), pk.boundaries.Outflow())})
    check_tendency(pk.equations.CompressibleEuler(1.4, symmetry="spherical"), gas)


def test_battery_of_a_body_force():
    gas = flow((4, 3), True)
    check_tendency(
        pk.equations.BodyForce((0.3, -1.0), component="gas"), {"gas": gas}, drives=["gas"]
    )
    with pytest.raises(pk.errors.ShapeError, match="2 components"):
        pk.simulate(pk.Simulation(pk.SSPRK2(pk.equations.BodyForce((1.0,))), dt=0.1), gas, 1)


def test_a_gas_falls_freely():
    gas = flow((6,), True)
    law = pk.SSPRK2(pk.equations.CompressibleEuler(1.4), pk.equations.BodyForce((2.0,)))
    end = pk.simulate(pk.Simulation(law, dt=0.004), gas, 10).state
    gained = end.momentum.integral() - gas.momentum.integral()
    np.testing.assert_allclose(gained, 2.0 * 0.04 * gas.density.integral(), rtol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["constant", "muscl", "mc", "weno"])
@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_mass_momentum_and_energy_are_kept(solver, scheme):
    gas = flow((6, 5), True)
    law = pk.equations.CompressibleEuler(1.4, solver, scheme)
    rates = eqx.filter_jit(finite_volume_rate)(law, gas)
    for rate in rates.values():
        assert np.max(np.abs(rate.values)) > 0.1
        np.testing.assert_allclose(gas.grid.sum(rate.values), 0, atol=1e-12)


def test_mass_momentum_and_energy_are_kept_over_time():
    gas = flow((6, 5), True)
    end = advance(gas, pk.equations.CompressibleEuler(1.4))
    for before, after in zip(gas.parts().values(), end.parts().values(), strict=True):
        np.testing.assert_allclose(after.integral(), before.integral(), rtol=1e-13, atol=1e-14)
        assert np.max(np.abs(after.data - before.data)) > 1e-3


def test_walls_keep_mass_and_energy():
    gas = flow((5, 4, 3), (False, True, False), pk.boundaries.Mirror())
    rates = finite_volume_rate(pk.equations.CompressibleEuler(5 / 3), gas)
    for part in ("density", "energy"):
        np.testing.assert_allclose(gas.grid.sum(rates[part].values), 0, atol=1e-12)
    assert abs(gas.grid.sum(rates["momentum"].values)[0]) > 1e-3  # walls push


@pytest.mark.parametrize(("symmetry", "power"), [("cylindrical", 1), ("spherical", 2)])
def test_volumes_of_shells_in_single_precision(symmetry, power):
    grid = pk.Grid(pk.Box(jnp.asarray([1.0], jnp.float32), False), (4000,))
    law = pk.equations.CompressibleEuler(1.4, symmetry=symmetry)
    areas, volumes = law.metric(grid, 0)
    assert volumes.dtype == jnp.float32
    radii = np.arange(4001) / 4000
    np.testing.assert_allclose(areas, radii**power, rtol=1e-6)
    np.testing.assert_allclose(volumes, np.diff(radii ** (power + 1)) / (power + 1), rtol=1e-6)
    if power == 2:
        found = pk.systems.cell_volumes(grid, spherical=True)
        np.testing.assert_allclose(found, 4 * np.pi * volumes, rtol=1e-6)


def test_a_blast_keeps_mass_and_energy_of_its_shells():
    gas = flow((16,), False, pk.boundaries.Mirror())
    law = pk.equations.CompressibleEuler(1.4, symmetry="spherical")
    end = advance(gas, law)
    volume = pk.systems.cell_volumes(gas.grid, spherical=True)
    for part in ("density", "energy"):
        before, after = (jnp.sum(getattr(g, part).data * volume) for g in (gas, end))
        np.testing.assert_allclose(after, before, rtol=1e-14)


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_gas_dynamics_is_alike_along_every_axis(solver):
    """The rate along y is the rate along x, and that on a line."""
    line = flow((12,), False, pk.boundaries.Outflow())
    ρ, u, p = line.density.data, line.velocity.data[0], line.pressure(1.4).data
    law = pk.equations.CompressibleEuler(1.4, solver)
    expected = finite_volume_rate(law, line)
    for axis in (0, 1):
        repeat_across = lambda x, axis=axis: jnp.stack([x] * 3, 1 - axis)
        box = pk.Box([1.0, 1.0], tuple(k != axis for k in range(2)))
        v = (
            (0 * repeat_across(u), repeat_across(u))
            if axis
            else (repeat_across(u), 0 * repeat_across(u))
        )
        grid = pk.Grid(box, repeat_across(u).shape)
        gas = pk.components.Gas.from_primitive(
            grid, repeat_across(ρ), v, repeat_across(p), 1.4, pk.boundaries.Outflow()
        )
        rates = finite_volume_rate(law, gas)
        along, across = rates["momentum"].values[axis], rates["momentum"].values[1 - axis]
        close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
        close(rates["density"].values, repeat_across(expected["density"].values))
        close(rates["energy"].values, repeat_across(expected["energy"].values))
        close(along, repeat_across(expected["momentum"].values[0]))
        close(across, 0)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["constant", "muscl", "mc", "weno"])
def test_mirrored_flows_have_mirrored_rates(scheme):
    gas = flow((16,), True)
    mirrored = pk.components.Gas.from_primitive(
        gas.grid,
        gas.density.data[::-1],
        -gas.velocity.data[0, ::-1],
        gas.pressure(1.4).data[::-1],
        1.4,
    )
    law = pk.equations.CompressibleEuler(1.4, reconstruction=scheme)
    one, other = (jax.jit(lambda g: finite_volume_rate(law, g))(g) for g in (gas, mirrored))
    for part, sign in (("density", 1), ("momentum", -1), ("energy", 1)):
        a, b = one[part].values, sign * other[part].values[..., ::-1]
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("scheme", "least"),
    [(pk.reconstructions.MUSCL(), 1.6), (pk.reconstructions.WENO5(), 2.8)],
    ids=["muscl", "weno"],
)
def test_order_on_a_smooth_flow(scheme, least):
    """A density wave carried by uniform flow: exact, and for averages too."""

    def error(n):
        grid = pk.Grid([1.0], (n,))
        mean = np.sinc(1 / n)  # the average of a cosine over a cell, over its value in the middle
        wave = lambda t: (
            1 + 0.2 * mean * np.cos(2 * np.pi * (np.asarray(grid.coordinates()[0]) - t))
        )
        gas = pk.components.Gas.from_primitive(grid, jnp.asarray(wave(0)), 1.0, 1.0, 1.4)
        # E of averages is the average of E here: u and p are uniform.
        sim = pk.Simulation(
            pk.SSPRK3(pk.equations.CompressibleEuler(1.4, reconstruction=scheme)), dt=0.1 / n
        )
        end = pk.run(sim, gas, 2 * n, progress=False).state
        return np.mean(np.abs(end.density.data - wave(0.2)))

    errors = [error(n) for n in (16, 32)]
    assert np.log2(errors[0] / errors[1]) > least


# --- boundaries, derivatives --------------------------------------------------------------------


def test_supersonic_inflow_fills_the_box():
    grid = pk.Grid(pk.Box([1.0], False), (16,))
    inflow = {"x_low": pk.boundaries.GasInflow(1.5, 3.0, 1.2), "x_high": pk.boundaries.Outflow()}
    gas = pk.components.Gas.from_primitive(grid, 0.1, 3.0, 0.1, 1.4, inflow)
    end = advance(gas, pk.equations.CompressibleEuler(1.4), 400, 0.005)
    np.testing.assert_allclose(end.density.data, 1.5, rtol=1e-6)
    np.testing.assert_allclose(end.pressure(1.4).data, 1.2, rtol=1e-6)


def test_an_inflow_may_change_in_time_and_place():
    grid = pk.Grid(pk.Box([1.0, 1.0], (False, True)), (4, 4))
    state = (lambda t, x, y: 1 + 0.1 * t + 0.2 * jnp.cos(2 * jnp.pi * y), (1.0, 0.5), 1.0)
    sides = {"x_low": pk.boundaries.GasInflow(*state), "x_high": pk.boundaries.Outflow()}
    gas = pk.components.Gas.from_primitive(grid, 1.0, (1.0, 0.5), 1.0, 1.4, sides).at_time(2.0)
    y = np.asarray(grid.coordinates()[1]).reshape(-1)
    ghosts = gas.density.padded(((1, 0), (0, 0)))[0]
    np.testing.assert_allclose(ghosts, 1.2 + 0.2 * np.cos(2 * np.pi * y), rtol=1e-12)
    momentum = gas.momentum.padded(((2, 0), (0, 0)))[1, 0]
    np.testing.assert_allclose(momentum, 0.5 * ghosts, rtol=1e-12)


def test_derivatives_through_a_shock_tube():
    """By γ, by the start and by what comes in: automatic against differences."""

    def final(p):
        grid = pk.Grid(pk.Box([1.0], False), (10,))
        x = grid.coordinates()[0]
        density = jnp.where(x < 0.5, p["left"], 0.3) + 0.02 * x
        sides = {
            "x_low": pk.boundaries.GasInflow(p["inflow"], 0.1, 1.1),
            "x_high": pk.boundaries.Mirror(),
        }
        gas = pk.components.Gas.from_primitive(
            grid, density, 0.1 - 0.03 * x, jnp.where(x < 0.5, 1.0, 0.4), p["gamma"], sides
        )
        end = advance(gas, pk.equations.CompressibleEuler(p["gamma"]), 6, 0.01)
        return {"density": end.density.data, "energy": end.energy.data}

    p = {"gamma": jnp.asarray(1.4), "left": jnp.asarray(1.0), "inflow": jnp.asarray(1.2)}
    check_gradient(final, p)
