"""Ideal magnetohydrodynamics: the state, its Riemann solver, what is conserved, ∇·B, boundaries, batteries."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount
from physkit.testing import check_tendency

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.01)
SOLVERS = [pk.riemann.HLLD(), pk.riemann.HLL(), pk.riemann.Rusanov()]
name = lambda x: type(x).__name__
IdealMHD, MagnetizedGas = pk.equations.IdealMHD, pk.components.MagnetizedGas


def plasma(shape, periodic=True, boundary=None, dtype=None, seed=0, scalars=()):
    """A gas that differs from cell to cell, moderately, in a field of a random vector potential."""
    rng = np.random.default_rng(seed)
    grid = pk.Grid(pk.Box([1.0 + 0.1 * k for k in range(len(shape))], periodic), shape)
    draw = lambda a, b: jnp.asarray(a + b * rng.uniform(-1, 1, shape))
    potential = {}
    for k, a in enumerate("xyz"):
        at = type(grid.cell)(tuple(j != k for j in range(len(shape))))
        values = 0.03 * rng.uniform(-1, 1, grid.local_shape_at(at))
        for j, wraps in enumerate(grid.periodic):
            # On walls it is constant, so that no field passes through them.
            if not wraps and at.staggered[j]:
                np.moveaxis(values, j, 0)[[0, -1]] = 0
        potential[a] = jnp.asarray(values)
    mean = (0.5, 0.3, -0.2) if boundary is None else (0.0, 0.0, 0.0)
    return MagnetizedGas.from_primitive(
        grid, draw(1.0, 0.3), tuple(draw(0.1 * k, 0.5) for k in range(3)), draw(1.0, 0.3), mean,
        gamma=5 / 3, vector_potential=potential, boundary=boundary, dtype=dtype, scalars=scalars,
    )  # fmt: skip


def sums(gas):
    return {n: float(jnp.sum(part.data)) for n, part in gas.parts().items()}


@pytest.mark.parametrize(
    ("shape", "riemann", "reconstruction"),
    [
        ((12,), pk.riemann.HLL(), pk.reconstructions.MUSCL()),
        pytest.param((8, 6), pk.riemann.HLLD(), pk.reconstructions.WENO5(), marks=pytest.mark.slow),
        pytest.param(
            (6, 5, 4), pk.riemann.HLLD(), pk.reconstructions.MUSCL(), marks=pytest.mark.slow
        ),
    ],
    ids=["1", "2", "3"],
)
def test_what_is_kept(shape, riemann, reconstruction):
    """Mass, momentum, energy and flux to rounding; ∇·B stays 0; the field does move."""
    gas = plasma(shape)
    sim = pk.Simulation(pk.SSPRK2(IdealMHD(5 / 3, riemann, reconstruction)), dt=0.01)
    end = pk.simulate(sim, gas, 12).state
    before, after = sums(gas), sums(end)
    for part, value in before.items():
        assert abs(after[part] - value) < 1e-13 * np.prod(shape), part
    assert end.relative_divergence() < 1e-14
    assert np.max(np.abs(end.magnetic_y.data - gas.magnetic_y.data)) > 1e-2


def test_scalars_flow_with_a_magnetized_gas():
    """One that is the same everywhere stays so, the amount of the other is kept."""
    dye = jnp.asarray(np.random.default_rng(2).uniform(0, 1, 12))
    gas = plasma((12,), scalars=(0.25, dye))
    law = IdealMHD(5 / 3, pk.riemann.Rusanov(), pk.reconstructions.PiecewiseConstant())
    end = pk.simulate(pk.Simulation(pk.Euler(law), dt=0.01), gas, 12).state
    found = end.concentrations.data
    np.testing.assert_allclose(found[0], 0.25, rtol=1e-13)
    assert np.max(np.abs(found[1] - dye)) > 0.02
    assert 0 < np.min(found[1]) < np.max(found[1]) < 1
    np.testing.assert_allclose(*(jnp.sum(g.scalars.data, 1) for g in (gas, end)), rtol=1e-13)
    with pytest.raises(pk.errors.ParameterError, match="carries no scalars"):
        plasma((12,)).concentrations  # noqa: B018


@pytest.mark.slow
def test_walls_that_conduct():
    """They hold mass and energy, and no field passes through them."""
    gas = plasma((8, 6), (False, True), pk.boundaries.Mirror())
    end = pk.simulate(pk.Simulation(pk.SSPRK2(IdealMHD(5 / 3)), dt=0.01), gas, 12).state
    assert end.relative_divergence() < 1e-14
    np.testing.assert_array_equal(np.asarray(end.magnetic_x.data)[[0, -1]], 0)
    assert np.max(np.abs(end.magnetic_y.data - gas.magnetic_y.data)) > 1e-2
    for part in ("density", "energy"):
        np.testing.assert_allclose(sums(end)[part], sums(gas)[part], rtol=1e-13)


@pytest.mark.slow
def test_open_sides_keep_the_divergence():
    sides = {"x": pk.boundaries.Mirror(), "y": pk.boundaries.Outflow()}
    gas = plasma((8, 6), False, sides)
    end = pk.simulate(pk.Simulation(pk.SSPRK2(IdealMHD(5 / 3)), dt=0.01), gas, 12).state
    assert end.relative_divergence() < 1e-14
    assert np.all(np.isfinite(end.energy.data))


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
def test_one_dimension_in_two_is_one_dimension(axis):
    """A tube along an axis of the plane, in any orientation: the edge fields are the solver's own."""
    line = pk.Grid(pk.Box([1.0], False), (16,))
    states = ((1.0, 0.125), (1.0, 0.1), (0.6, -0.4), (0.3, 0.2))
    outflow = pk.boundaries.Outflow()

    def tube(grid, along):
        left = grid.coordinates()[along] < 0.5
        ρ, p, b, c = (jnp.where(left, x, y) for x, y in states)
        # Cyclic: x, y, z become y, z, x where the tube lies along y.
        field = [0.75, b, c]
        at = lambda k: grid.local_shape_at(grid.face(k) if k < grid.dimension else grid.cell)
        rolled = [field[(k - along) % 3] for k in range(3)]
        rolled = [
            v if jnp.ndim(v) == 0 else jnp.broadcast_to(v, at(k)) for k, v in enumerate(rolled)
        ]
        return MagnetizedGas.from_primitive(
            grid, ρ, (0.0, 0.0, 0.0), p, rolled, gamma=2.0, boundary=outflow
        )

    periodic = (axis == 1, axis == 0)
    shape = (16, 4) if axis == 0 else (4, 16)
    lengths = [1.0, 0.25] if axis == 0 else [0.25, 1.0]
    plane = pk.Grid(pk.Box(lengths, periodic), shape)
    sim = pk.Simulation(pk.SSPRK2(IdealMHD(2.0)), dt=0.01)
    one = pk.simulate(sim, tube(line, 0), 6).state
    two = pk.simulate(sim, tube(plane, axis), 6).state
    section = lambda x: x[:, 0] if axis == 0 else x[0]
    names = "xyz"[axis:] + "xyz"[:axis]
    np.testing.assert_allclose(section(two.density.data), one.density.data, rtol=1e-12)
    for a, b in zip("xyz", names, strict=True):
        for kind in ("momentum", "magnetic"):
            mine = section(getattr(two, f"{kind}_{b}").data)
            np.testing.assert_allclose(mine, getattr(one, f"{kind}_{a}").data, atol=1e-12)


def test_riemann_solvers():
    """Consistent, mirrored; HLLD holds what stands: a contact, a tangential and a rotational discontinuity."""
    law = IdealMHD(5 / 3)
    rng = np.random.default_rng(1)
    draw = lambda: tuple(
        jnp.asarray(a + b * rng.uniform(-1, 1, 50))
        for a, b in ((1, 0.5), (0, 2), (0, 1), (0, 1), (1, 0.9), (0.4, 0), (0, 2), (0, 2))
    )
    left, right = draw(), draw()
    mirror = jnp.asarray([1.0, -1, 1, 1, 1, -1, 1, 1])
    turned = lambda values: tuple(s * v for s, v in zip(mirror, values, strict=True))
    signs = jnp.asarray([-1.0, 1, -1, -1, -1, -1, -1, -1])
    for solver in SOLVERS:
        for f, g in zip(solver.flux(law, left, left, 0), law.flux(left, 0), strict=True):
            np.testing.assert_allclose(f, g, atol=1e-12)
        there = solver.flux(law, left, right, 0)
        # The flux of B_x is 0, and mirroring turns it as it turns B_x.
        back = solver.flux(law, turned(right), turned(left), 0)
        for k, (f, g) in enumerate(zip(there, back, strict=True)):
            np.testing.assert_allclose(f, signs[k] * g, atol=1e-11)
    number = lambda *values: tuple(jnp.asarray([float(v)]) for v in values)
    contact = number(1.0, 0, 0.3, 0.2, 1, 0.5, 0.6, 0.1), number(0.2, 0, 0.3, 0.2, 1, 0.5, 0.6, 0.1)
    # Total pressures are equal: 1 + ½ and 0.68 + ½·0.8² + ½·… with no normal field.
    tangential = number(1.0, 0, 0.3, 0, 1, 0, 1.0, 0), number(0.5, 0, -1, 0, 1.18, 0, 0, 0.8)
    # Alfvén's wave runs at −|B_x|/√ρ through gas that streams at +|B_x|/√ρ: velocities turn with the field.
    rotational = number(1.0, 0.5, 0.6, 0, 1, 0.5, 0.6, 0), number(1.0, 0.5, 0, 0.6, 1, 0.5, 0, 0.6)
    for pair in (contact, tangential, rotational):
        exact = [law.flux(side, 0) for side in pair]
        found = pk.riemann.HLLD().flux(law, *pair, 0)
        for f, a, b in zip(found, *exact, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
            np.testing.assert_allclose(f, a, atol=1e-9)


def test_bad_input_is_named():
    with pytest.raises(pk.errors.ParameterError, match="IdealMHD takes averages"):
        IdealMHD(5 / 3, reconstruction=pk.reconstructions.AWENO5())
    grid = pk.Grid([1.0, 1.0], (4, 4))
    make = lambda density=1.0, pressure=1.0, magnetic=(0.0, 0.0, 0.0), **more: (
        MagnetizedGas.from_primitive(
            grid, density, (0.0,) * 3, pressure, magnetic, gamma=1.4, **more
        )
    )
    errors = pk.errors
    with pytest.raises(errors.ParameterError, match=r"pressure .* got -1 in cell \(0, 0\)"):
        make(pressure=-1.0)
    with pytest.raises(errors.ParameterError, match=r"divergence: .* in cell"):
        make(magnetic=(lambda x, y: jnp.sin(2 * jnp.pi * x), 0.0, 0.0))
    with pytest.raises(errors.ShapeError, match="three components"):
        make(magnetic=(1.0, 0.0))
    with pytest.raises(errors.ParameterError, match="x, y, z; got"):
        make(vector_potential={"w": 1.0})
    gas = make()
    in_cells = pk.Field(jnp.zeros((4, 4)), grid)
    with pytest.raises(errors.ShapeError, match="magnetic_x is a scalar at"):
        gas.replace({"magnetic_x": in_cells}).__check_init__()
    bad = gas.with_magnetic(
        [gas.magnetic_x.data.at[1, 2].set(1.0), 0 * gas.density.data, 0 * gas.density.data]
    )
    law = IdealMHD(1.4)
    run = lambda law, state: pk.init(pk.Simulation(pk.SSPRK2(law), dt=0.01), state)
    with pytest.raises(errors.ParameterError, match=r"cell \((0|1), 2\)"):
        run(law, bad)
    with pytest.raises(errors.ParameterError, match=r"made with γ = 1\.4"):
        run(IdealMHD(5 / 3), gas)
    with pytest.raises(errors.ParameterError, match="exceed 1"):
        IdealMHD(1.0)
    with pytest.raises(errors.ShapeError, match="moves a MagnetizedGas"):
        run(law, in_cells)
    with pytest.raises(errors.ParameterError, match="HLLC needs more"):
        run(IdealMHD(1.4, pk.riemann.HLLC()), gas)
    walled = pk.Grid(pk.Box([1.0], False), (4,))
    with pytest.raises(errors.ParameterError, match=r"takes Outflow\(\) and Mirror\(\)"):
        MagnetizedGas.from_primitive(
            walled, 1.0, (0.0,) * 3, 1.0, gamma=1.4, boundary=pk.boundaries.Dirichlet(1.0)
        )


@pytest.mark.slow
def test_battery():
    # HLLD has a kink at a wall that conducts: no field passes through it, and its Alfvén waves go as |B_n|.
    scheme = pk.riemann.HLL(), pk.reconstructions.PiecewiseConstant()
    gas = plasma((4, 3), (True, False), pk.boundaries.Mirror())
    check_tendency(IdealMHD(5 / 3, *scheme, component="gas"), {"gas": gas}, drives=["gas"])


@pytest.mark.slow
def test_battery_of_five_waves():
    """In a box that repeats: the normal field is nowhere 0, where |B_n| has a kink."""
    law = IdealMHD(5 / 3, pk.riemann.HLLD(), pk.reconstructions.MUSCL())
    check_tendency(law, plasma((5, 4)))


@pytest.mark.slow
def test_battery_in_space():
    # In a box of so few cells limiters meet a kink; WENO5, whose derivative takes the range of a variable
    # for fixed, is 10⁻⁵ off.
    law = IdealMHD(5 / 3, pk.riemann.HLL(), pk.reconstructions.PiecewiseConstant())
    check_tendency(law, plasma((4, 3, 3)))


def test_gravity_pulls_a_magnetized_gas():
    gas = plasma((4, 3))
    pull = pk.equations.BodyForce((0.0, -2.0)).rate(CLOCK, gas)
    np.testing.assert_allclose(pull["momentum_y"].values, -2 * gas.density.data)
    np.testing.assert_allclose(pull["energy"].values, -2 * gas.momentum_y.data)
    pull = pk.equations.SelfGravity(1.0).rate(CLOCK, gas)
    for part in ("momentum_x", "momentum_y"):
        assert abs(float(jnp.sum(pull[part].values))) < 1e-13


def test_fields_that_are_kept_leave_derivatives_as_they_are(monkeypatch):
    """As where there is a GPU: nothing is solved again on the way back."""
    schemes = {"riemann": SOLVERS[2], "reconstruction": pk.reconstructions.PiecewiseConstant()}
    gas, law = plasma((6, 5)), IdealMHD(5 / 3, **schemes)

    def loss(gas):
        return sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(law.rate(CLOCK, gas)))

    def gradient(are_kept):
        module = importlib.import_module(IdealMHD.__module__)
        monkeypatch.setattr(module, "kernels_are_used", lambda: are_kept)
        # Traced, and not from a cache of what was traced before.
        traced = jax.jit(lambda gas: jax.grad(loss)(gas)).trace(gas)
        return traced.lower().compile()(gas), traced.jaxpr

    (kept, program), (solved, again) = gradient(True), gradient(False)
    assert len(str(program)) < len(str(again))
    for a, b in zip(jax.tree.leaves(kept), jax.tree.leaves(solved), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
