"""Fields: making, mixing, moving, adding up; bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ParameterError, ShapeError
from physkit.fields import Field, FieldIncrement, Spectrum, stack
from physkit.fields.equations import Diffusion
from physkit.fields.operators import Central, laplacian
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann, NoSlip


@pytest.fixture
def grid():
    return Grid([2 * np.pi, 2 * np.pi], (16, 12))


@pytest.fixture
def channel():
    return Grid(Box([2.0, 1.0], (True, False)), (8, 6))


def test_from_function_gives_scalars_and_vectors(grid, dtype):
    u = Field.from_function(grid, lambda x, y: jnp.sin(x), dtype=dtype)
    assert u.data.shape == (16, 12)
    assert u.data.dtype == dtype == u.grid.space.lengths.dtype
    v = Field.from_function(grid, lambda x, y: (jnp.sin(x), 2.0), dtype=dtype)
    assert v.vector
    assert v.data.shape == (2, 16, 12)
    np.testing.assert_array_equal(v.data[1], 2.0)
    assert Field(1.0, grid, vector=True).data.shape == (2, 16, 12)


def test_fields_compute_like_arrays(grid):
    u = Field.from_function(grid, lambda x, y: jnp.sin(x))
    v = Field.from_function(grid, lambda x, y: jnp.cos(y))
    one = Field(1.0, grid)
    pairs = [
        (u + v, u.data + v.data),
        (2.0 - u, 2.0 - u.data),
        (u * v / 3.0, u.data * v.data / 3.0),
        (1.0 / (u + 2.0), 1.0 / (u.data + 2.0)),
        (-(u**2), -(u.data**2)),
        (v.map(jnp.exp), jnp.exp(v.data)),
        (jnp.float64(2.0) * one, 2 * one.data),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found.data, expected, rtol=1e-15)


def test_integrals_are_exact_for_waves_and_walls(grid, channel):
    u = Field.from_function(grid, lambda x, y: 1.0 + jnp.sin(x))
    np.testing.assert_allclose(u.integral(), (2 * np.pi) ** 2, rtol=1e-14)
    np.testing.assert_allclose(u.norm(), np.sqrt(1.5), rtol=1e-14)
    np.testing.assert_allclose(u.norm(1), 1.0, rtol=1e-14)
    # On walls a point stands for half a cell: the trapezoidal rule, exact for straight lines.
    line = Field.from_function(channel, lambda x, y: y, channel.node, Neumann())
    np.testing.assert_allclose(line.integral(), 1.0, rtol=1e-14)
    np.testing.assert_allclose(line.mean(), 0.5, rtol=1e-14)
    assert float(jax.grad(lambda a: (u * a).norm())(0.0)) == 0.0  # not NaN


def test_spectra_hold_the_field_and_take_derivatives(grid):
    u = Field.from_function(grid, lambda x, y: jnp.sin(2 * x) * jnp.cos(y))
    s = u.spectrum()
    np.testing.assert_allclose(s.field().data, u.data, atol=1e-14)
    np.testing.assert_allclose(s.laplacian().field().data, -5 * u.data, atol=1e-12)
    np.testing.assert_allclose(s.inverse_laplacian().field().data, -u.data / 5, atol=1e-14)
    dx = Field.from_function(grid, lambda x, y: 2 * jnp.cos(2 * x) * jnp.cos(y))
    np.testing.assert_allclose(s.derivative("x").field().data, dx.data, atol=1e-13)
    np.testing.assert_allclose((2.0 * s - s / 2.0).field().data, 1.5 * u.data, atol=1e-14)
    step = jax.jit(
        lambda u: pk.RK4(lambda t, u: u.spectrum().laplacian()).step(None, _clock(0.1), u, (None,))
    )
    state, _ = step(u)
    assert state.data.shape == u.data.shape


def _clock(dt):
    from physkit.core import Clock, StepCount

    return Clock.at(StepCount.of(0), 0.0, dt)


def test_new_values_drop_the_coefficients_of_the_old(grid):
    u = Field.from_function(grid, lambda x, y: jnp.cos(x) + 0 * y)
    held = u.replace(coefficients=u.spectrum().coefficients)
    expected = (u * u).spectrum().coefficients
    for new in (held.map(jnp.square), held.with_values(u.data**2), held.replace(data=u.data**2)):
        np.testing.assert_array_equal(new.spectrum().coefficients, expected)


def test_a_rate_may_be_a_field_a_spectrum_or_numbers(grid):
    u = Field.from_function(grid, lambda x, y: jnp.sin(x))
    rates = {
        "field": lambda t, u: -u,
        "spectrum": lambda t, u: u.spectrum().laplacian(),
        "array": lambda t, u: -u.data,
        "change": lambda t, u: FieldIncrement(-u.data, u.location),
    }
    for name, rate in rates.items():
        end = pk.simulate(pk.Simulation(pk.RK4(rate), dt=0.02), u, 50).state
        np.testing.assert_allclose(end.data, np.exp(-1) * u.data, atol=1e-5, err_msg=name)
    both = pk.RK4(rates["field"], rates["spectrum"])
    end = pk.simulate(pk.Simulation(both, dt=0.02), u, 50).state
    np.testing.assert_allclose(end.data, np.exp(-2) * u.data, atol=1e-4)


def test_wall_points_keep_their_boundary_values(channel):
    rate = lambda t, u: u * 0.0 + 1.0
    fixed = Field(2.0, channel, channel.node, {"y": (Dirichlet(2.0), Neumann())})
    end = pk.simulate(pk.Simulation(pk.RK4(rate), dt=0.1), fixed, 10).state
    np.testing.assert_array_equal(end.data[:, 0], 2.0)
    np.testing.assert_allclose(end.data[:, 1:], 3.0)


def test_boundaries_depend_on_time_and_place(channel):
    drive = Dirichlet(lambda t, x, y: t * jnp.sin(np.pi * x))
    u = Field(0.0, channel, boundary={"y": (drive, Dirichlet(0.0))})
    with pytest.raises(ParameterError, match="function of time and place"):
        u.padded(1)
    x, _ = u.coordinates
    ghosts = u.at_time(3.0).padded(1)[1:-1, 0]
    np.testing.assert_allclose(ghosts, 6.0 * jnp.sin(np.pi * x[:, 0]), rtol=1e-14)
    # On a wall that points sit on, their value is imposed.
    node = Field(0.0, channel, channel.face("y"), {"y": (drive, Neumann())})
    np.testing.assert_allclose(node.at_time(2.0).data[:, 0], 2.0 * jnp.sin(np.pi * x[:, 0]))


def test_heat_between_walls_reaches_the_straight_line(channel, dtype):
    u = Field(jnp.zeros((8, 6), dtype), channel, boundary={"y": (Dirichlet(1.0), Dirichlet(3.0))})
    sim = pk.Simulation(pk.SSPRK3(Diffusion(1.0, scheme=Central())), dt=0.01)
    end = pk.simulate(sim, u, 300).state
    _, y = u.coordinates
    np.testing.assert_allclose(end.data, jnp.broadcast_to(1 + 2 * y, (8, 6)), rtol=1e-5)


def test_gradients_reach_walls_lengths_and_coefficients(channel):
    @jax.jit
    def warmth(value, length, diffusivity):
        box = Box(jnp.stack([jnp.asarray(2.0), length]), (True, False))
        u = Field(0.0, Grid(box, (4, 5)), boundary={"y": (Dirichlet(value), Neumann(0.3))})
        sim = pk.Simulation(pk.RK4(Diffusion(diffusivity, scheme=Central())), dt=0.005)
        return pk.simulate(sim, u, 20).state.norm()

    from jax.test_util import check_grads

    check_grads(warmth, (1.5, 1.2, 0.4), order=1, rtol=1e-5)


def test_vector_components_keep_their_part_of_the_boundary(channel):
    v = Field.from_function(
        channel, lambda x, y: (jnp.sin(np.pi * x) + y, y * y + x), boundary=NoSlip([0.5, 0.0])
    )
    whole = v.padded(1)
    for k in range(2):
        np.testing.assert_array_equal(v[k].padded(1), whole[k])
    free = v.with_boundary(Mirror())
    for k in range(2):
        np.testing.assert_array_equal(free[k].padded(1), free.padded(1)[k])
    assert stack([v[0], v[1]]).vector


def test_complex_fields_transform_and_diffuse(grid):
    u = Field.from_function(
        grid, lambda x, y: jax.lax.complex(jnp.cos(x - 2 * y), jnp.sin(x - 2 * y))
    )
    assert u.spectrum().coefficients.shape == (16, 12)
    np.testing.assert_allclose(u.spectrum().laplacian().field().data, -5 * u.data, atol=1e-12)
    np.testing.assert_allclose(laplacian(u, Central(6)).data, -5 * u.data, rtol=2e-2)


def test_a_field_inside_vmap_and_scan_keeps_its_structure(grid):
    u = Field.from_function(grid, lambda x, y: jnp.sin(x))
    sim = pk.Simulation(pk.RK4(Diffusion(0.1)), dt=0.1)
    many = jax.vmap(lambda a: pk.simulate(sim, u.replace(data=a * u.data), 3).state.norm())
    both = many(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(both[1], 2 * both[0])


def test_replaced_data_are_converted_as_at_the_start(grid):
    cell = Field(jnp.ones(grid.shape, jnp.float32), grid)
    for data in (
        np.full(grid.shape, 2),
        np.full(grid.shape, 2.0).tolist(),
        2,
        jnp.full(grid.shape, 2),
    ):
        found = cell.replace(data=data)
        assert isinstance(found.data, jax.Array)
        assert found.data.dtype == jnp.float32
        np.testing.assert_array_equal(found.data, np.full(grid.shape, 2.0))
    assert cell.replace(data=1j).data.dtype == jnp.complex64
    edge = cell.with_values(cell.data, location=grid.face("x"))
    assert edge.location == grid.face("x")


def test_bad_input_is_an_error(grid, channel):
    cell, face = Field(1.0, grid), Field(1.0, grid, grid.face("x"))
    with pytest.raises(ShapeError, match=r"one field sits at face\(x\), the other at cell"):
        _ = face + cell
    with pytest.raises(ShapeError, match="the other of"):
        _ = cell + Field(1.0, Grid([1.0, 1.0], (4, 4)))
    with pytest.raises(ShapeError, match="in a box of lengths"):
        _ = cell + Field(1.0, Grid([1.0, 1.0], (16, 12)))
    with pytest.raises(ShapeError, match=r"data of shape \(3, 3\) on a grid that has \(16, 12\)"):
        Field(jnp.zeros((3, 3)), grid)
    with pytest.raises(ShapeError, match=r"data of shape \(3, 3\) on a grid that has \(16, 12\)"):
        cell.replace(data=jnp.zeros((3, 3)))
    with pytest.raises(ShapeError, match="a vector on this grid is"):
        Field(jnp.zeros((3, 16, 12)), grid, vector=True)
    with pytest.raises(ParameterError, match="no boundary at y_low, y_high"):
        Field(1.0, channel)
    with pytest.raises(ParameterError, match=r"field.with_boundary"):
        (Field(1.0, channel, boundary=Neumann()) * 2.0).padded(1)
    with pytest.raises(ParameterError, match="walls along y"):
        Field(1.0, channel, boundary=Neumann()).spectrum()
    with pytest.raises(ShapeError, match="a rate at face"):
        pk.simulate(pk.Simulation(pk.RK4(lambda t, u: face), dt=0.1), cell, 1)
    with pytest.raises(ShapeError, match="a rate at face"):
        pk.simulate(pk.Simulation(pk.RK4(lambda t, u: face, lambda t, u: u), dt=0.1), cell, 1)
    with pytest.raises(ShapeError, match="products of fields"):
        _ = cell.spectrum() * cell.spectrum()
    with pytest.raises(ShapeError, match="a field and a spectrum"):
        _ = cell + cell.spectrum()
    with pytest.raises(ShapeError, match="no components"):
        _ = cell[0]
    assert isinstance(cell.spectrum(), Spectrum)


def test_functions_on_walls_of_vectors(channel):
    """A tuple is one value a component; one value is for all of them, along the wall."""
    each = Field(0.0, channel, vector=True, boundary=NoSlip(lambda t, x, y: (1.0, t)))
    np.testing.assert_array_equal(each.at_time(3.0).padded(1)[:, 1:-1, 0], [[2.0] * 8, [6.0] * 8])
    for k in range(2):
        np.testing.assert_array_equal(
            each[k].at_time(3.0).padded(1), each.at_time(3.0).padded(1)[k]
        )
    same = Field(0.0, channel, vector=True, boundary=NoSlip(lambda t, x, y: jnp.sin(x)))
    profile = 2 * jnp.sin(channel.coordinates()[0][:, 0])
    np.testing.assert_allclose(same.at_time(0.0).padded(1)[1, 1:-1, 0], profile)


def test_components_are_counted_and_unpacked(channel):
    v = Field.from_function(channel, lambda x, y: (x, y), boundary=Mirror())
    first, second = v
    np.testing.assert_array_equal(second.data, v[1].data)
    np.testing.assert_array_equal(v[-1].padded(1), v[1].padded(1))
    assert len(v) == 2
    with pytest.raises(IndexError, match="no component 2"):
        v[2]
    assert isinstance(np.ones((8, 6)) * first, Field)


def test_a_boundary_that_is_given_later_is_kept_on_walls(channel):
    free = Field(1.0, channel, channel.face("y"), Neumann())
    held = free.with_boundary(Dirichlet(0.0))
    np.testing.assert_array_equal(held.data[:, [0, -1]], 0.0)
    np.testing.assert_array_equal(held.data[:, 1:-1], 1.0)


def test_a_rate_of_none_is_an_error(grid):
    u = Field(1.0, grid)
    with pytest.raises(pk.errors.DeclarationError, match="returned None"):
        pk.simulate(pk.Simulation(pk.RK4(lambda t, u: None), dt=0.1), u, 1)
    with pytest.raises(pk.errors.DeclarationError, match=r"function\(t, state\)"):
        pk.simulate(pk.Simulation(pk.RK4(lambda u: u), dt=0.1), u, 1)
    with pytest.raises(pk.errors.ComponentError, match="moves a field, not a Particles"):
        pk.simulate(pk.Simulation(pk.RK4(Diffusion(1.0)), dt=0.1), pk.Particles([[0.0]]), 1)


@pytest.mark.parametrize(
    "wrong",
    [jnp.sin, jnp.sum, jnp.asarray, jax.jit(jnp.exp), np.sin, np.sum, lambda u: jnp.maximum(u, 0)],
)
def test_a_field_taken_for_an_array_says_what_to_write(grid, wrong):
    with pytest.raises((ShapeError, TypeError), match=r"field\.map\(jnp\.sin\).*field\.data"):
        wrong(Field(1.0, grid))


def test_fields_meet_arrays_and_numbers_of_every_kind(grid):
    u = Field.from_function(grid, lambda x, y: 1 + jnp.sin(x) * y, dtype=jnp.float32)
    values = np.asarray(u)
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, u.data)
    np.testing.assert_array_equal(np.asarray(u, np.float64), values.astype(np.float64))
    for two in (2, 2.0, np.float32(2), np.float64(2), jnp.float64(2), jnp.asarray(2), np.int32(2)):
        for result, expected in (
            (two * u, 2 * values),
            (u / two, values / 2),
            (two - u, 2 - values),
        ):
            assert result.data.dtype == np.float32
            # A GPU rounds quotients of float32 to the last digit but one.
            np.testing.assert_allclose(result.data, expected, rtol=2e-7)
    for array in (values, u.data):
        np.testing.assert_array_equal((array - u).data, 0.0)
        np.testing.assert_allclose((u / array).data, 1.0, rtol=2e-7)
    psi = u * (1 + 1j)
    assert psi.data.dtype == np.complex64
    assert abs((psi / psi.norm()).norm() - 1) < 1e-6
    np.testing.assert_allclose(abs(psi).data, np.sqrt(2) * np.abs(values), rtol=1e-6)


def test_normalized_wave_functions_have_probability_one(channel):
    psi = Field.from_function(channel, lambda x, y: y.astype(complex), channel.node, Mirror())
    one = psi.normalized()
    density = abs(one).data ** 2
    np.testing.assert_allclose(Field(density, channel, channel.node, Mirror()).integral(), 1.0)
    assert one.boundary == psi.boundary


def test_coordinates_are_those_of_the_points_with_and_without_a_call(grid, channel):
    u = Field(0.0, grid)
    x, y = grid.coordinates
    for same in (grid.coordinates(), u.coordinates, u.coordinates()):
        np.testing.assert_array_equal(same[0], x)
        np.testing.assert_array_equal(same[1], y)
    nodes = Field(0.0, channel, channel.node, Neumann())
    np.testing.assert_array_equal(nodes.coordinates()[1], channel.coordinates(channel.node)[1])
    doubled = jax.tree.map(lambda c: 2 * c, nodes.coordinates)
    np.testing.assert_array_equal(doubled[1], 2 * nodes.coordinates[1])
    assert len(grid.coordinates) == 2


def test_extremes(grid):
    u = Field.from_function(grid, lambda x, y: (jnp.sin(x) - 3.0, y))
    np.testing.assert_array_equal(u.max(), np.max(u.data, (1, 2)))
    np.testing.assert_array_equal(u.min(), np.min(u.data, (1, 2)))
    assert jnp.isnan(u.map(lambda x: x * jnp.nan).min()).all()
    with pytest.raises(ShapeError, match=r"abs\(field\)"):
        (u[0] * 1j).min()
    assert abs(u[0] * 1j).min() == jnp.min(jnp.abs(u.data[0]))
