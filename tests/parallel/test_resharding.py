"""Runs that change devices keep observer states; mistakes over devices raise errors that name them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import physkit as pk
from physkit.core import ParameterError, ShapeError, param, replace_fields
from physkit.fields.operators import Central
from physkit.geometry import Box, Dirichlet, Grid
from physkit.observe import AbstractObserver

from . import field_cases


@pytest.fixture(autouse=True)
def _emulated(monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")


def diffusion(cells=8, **observers):
    """A field that diffuses, with observers and guards."""
    grid = Grid([1.0, 1.0], (cells, cells))
    u = pk.Field(jax.random.normal(jax.random.key(0), grid.shape), grid)
    term = pk.equations.Diffusion(0.01, scheme=Central(2))
    return pk.Simulation(pk.Euler(term), dt=1e-3, **observers), u


def run(sim, state, steps=4, **options):
    return pk.run(sim, state, steps, progress=False, **options)


class NotAboveInitial(AbstractObserver):
    """A guard: the mean square never exceeds that of the initial state."""

    interval: int | None = pk.static(default=1)

    def init(self, snapshot):
        u = snapshot.state
        return {"square": (u * u).mean(), "field": u.data}

    def __call__(self, snapshot, observer_state):
        u = snapshot.state
        return {"less": (u * u).mean() <= observer_state["square"]}, observer_state


# --- observer states ----------------------------------------------------------------------------


def test_observer_states_move_to_other_devices():
    square = lambda now: (now.state * now.state).mean()
    observers = pk.Average(1, square=square, u=pk.FieldValues())
    sim, u = diffusion(observers=observers, guards=NotAboveInitial())
    two = run(sim, u, devices=2)
    four = run(sim, two.carry, devices=(2, 2))
    assert field_cases.distance(run(sim, u, 8).summary, four.summary) < 1e-12
    assert int(four.summary["u"]["count"][0, 0]) == 9
    guard_state = four.carry.carry.guards[0][0]
    assert np.allclose(guard_state["square"], (u * u).mean())
    assert np.array_equal(guard_state["field"][3], u.data[4:, 4:])


@pytest.mark.slow
def test_runs_without_a_neighbor_list_continue_with_one_over_devices():
    sites = np.stack(np.meshgrid(np.arange(14), np.arange(6), indexing="ij"), -1).reshape(-1, 2)
    atoms = pk.Particles(1.2 * sites + 0.6, space=Box([16.8, 7.2]))
    atoms = pk.maxwell_boltzmann(jax.random.key(0), atoms, 0.5)
    force = pk.Pairwise(pk.LennardJones(), 2.0, use_neighbor_list=False)
    sim = pk.Simulation(pk.VelocityVerlet(force), 0.004)
    unchanged, two = run(sim, atoms, 8), run(sim, atoms, devices=2)
    onto_two = run(sim, run(sim, atoms).carry, devices=2)
    for last in (onto_two, run(sim, two.carry, devices=1)):
        np.testing.assert_allclose(last.state.position, unchanged.state.position, atol=1e-13)


@pytest.mark.slow
def test_observer_states_move_through_checkpoints(tmp_path):
    sim, u = diffusion(observers=pk.Average(1, u=pk.FieldValues()), guards=NotAboveInitial())
    run(sim, u, devices=2, checkpoint=tmp_path)
    with pytest.warns(UserWarning, match="was written over 2 devices, the run goes on over one"):
        resumed = run(sim, u, 8, checkpoint=tmp_path, resume=True)
    assert field_cases.distance(run(sim, u, 8).summary, resumed.summary) < 1e-12
    assert np.array_equal(resumed.carry.guards[0][0]["field"], u.data)


def test_observer_states_without_a_layout_raise():
    observer = pk.Average(1, row=lambda now: jnp.sum(now.state.data[0]))
    sim, u = diffusion(observers=observer)
    carry = pk.simulate(replace_fields(sim, {"observers": ()}), u, 4, devices=2).carry
    # Rows that differ from device to device: neither replicated nor parts of an array.
    uneven = (jax.tree.map(lambda x: jnp.stack([x, x + 1]), pk.init(sim, u).observer_state[0]),)
    with pytest.raises(
        ParameterError, match=r"what Average has accumulated cannot move to other dev"
    ):
        run(sim, carry.replace(observer_state=uneven), devices=(2, 2))


# --- carries and results in the place of states -------------------------------------------------


@pytest.mark.parametrize("devices", [None, 2])
def test_carries_of_another_simulation_raise(devices):
    sim, u = diffusion(observers=pk.Average(1, a=lambda now: now.state.mean()))
    carry = run(sim, u, devices=devices).carry
    bare, _ = diffusion()
    with pytest.raises(ParameterError, match="this carry has 1 observers, the simulation 0"):
        run(bare, carry)
    with pytest.raises(ParameterError, match="has 1 observers"):
        pk.simulate(bare, carry, 4)
    other, _ = diffusion(observers=pk.Average(1, b=lambda now: now.state.mean()))
    # As from a file: which observers it had is not known.
    inner = carry.carry if devices else carry
    copied = carry.replace(observer_state=jax.tree.map(jnp.copy, inner.observer_state))
    for verb in (run, lambda sim, carry: pk.simulate(sim, carry, 4)):
        with pytest.raises(ParameterError, match=r"Average \(0\): \.outputs\['a'\] Expression in"):
            verb(other, carry)
        with pytest.raises(ParameterError, match=r"its Average holds \['a'\]"):
            verb(other, copied)


def test_results_and_sharded_carries_are_refused_as_states():
    sim, u = diffusion()
    result = run(sim, u, devices=2)
    with pytest.raises(ParameterError, match=r"continue from run\.carry"):
        run(sim, result)
    with pytest.raises(ParameterError, match="in the layout of devices"):
        run(sim, result.carry.carry)
    with pytest.raises(ParameterError, match="brings its own key"):
        run(sim, result.carry, key=jax.random.key(0))


# --- arrays of the local part and of the whole domain -------------------------------------------


class MultipliedByArray(pk.AbstractTendency):
    """Multiplied by an array over the whole domain, as if there were one device."""

    factor: Float[Array, "x y"] = param()

    def rate(self, clock, u):
        del clock
        return u.replace(data=self.factor * u.data)


class GlobalOnes(pk.AbstractTendency):
    """An array of the whole shape, on the grid of a part."""

    def rate(self, clock, u):
        del clock
        return pk.Field(jnp.ones(u.grid.shape), u.grid)


@pytest.mark.parametrize(
    "term", [MultipliedByArray(jnp.ones((8, 8))), MultipliedByArray(jnp.ones((8, 1))), GlobalOnes()]
)
def test_arrays_of_the_whole_domain_in_a_term_raise(term):
    _, u = diffusion()
    sim = pk.Simulation(pk.Euler(term), dt=1e-3)
    with pytest.raises(ShapeError, match=r"each has 4 of the 8 cells along x.*grid\.local\(x\)"):
        run(sim, u, devices=(2, 2))


def test_shape_errors_of_other_causes_stay_as_they_are():
    _, u = diffusion()
    sim = pk.Simulation(pk.Euler(MultipliedByArray(jnp.ones((5, 8)))), dt=1e-3)
    with pytest.raises(TypeError, match="incompatible shapes") as error:
        run(sim, u, devices=(2, 1))
    assert not isinstance(error.value, ShapeError)


class MeanGrowth(pk.AbstractTendency):
    """A number beside a field grows by its mean: over the domain or, wrongly, over the local part."""

    is_global: bool = pk.static()

    def rate(self, clock, state):
        del clock
        u = state["u"]
        return {"u": u.map(lambda x: 0 * x), "mean": u.mean() if self.is_global else u.data.mean()}


@pytest.mark.parametrize("is_global", [True, False])
def test_numbers_beside_fields_must_be_those_of_the_domain(is_global):
    _, u = diffusion()
    state = {"u": u, "mean": jnp.zeros(())}
    sim = pk.Simulation(pk.Euler(MeanGrowth(is_global)), dt=0.1)

    def check_simulation():
        pk.simulate(sim, state, 2, devices=2).health.check()

    if is_global:
        check_simulation()
        run(sim, state, devices=2)
        return
    with pytest.raises(
        pk.errors.DeclarationError, match="mean of the state differs from device to dev"
    ):
        run(sim, state, devices=2)
    with pytest.raises(pk.errors.ObserverError, match="a number of the state, differs from device"):
        check_simulation()


def test_traced_pmap_of_several_processes_raises(monkeypatch):
    sim, u = diffusion()
    monkeypatch.setenv("PHYSKIT_SPMD", "pmap")
    monkeypatch.setattr(jax, "process_count", lambda *_: 2)
    with pytest.raises(
        pk.errors.DeviceError, match=r"take the backend shard_map \(PHYSKIT_SPMD=shard_map"
    ):
        jax.jit(lambda u: pk.simulate(sim, u, 2, devices=1).state)(u)


# --- noise --------------------------------------------------------------------------------------


class Noise(pk.AbstractTendency):
    """White noise at every point."""

    def rate(self, clock, u):
        components = u.data.shape[: -u.grid.dimension]
        return u.replace(data=u.grid.random_normal(clock.key, components, u.location))


@pytest.mark.parametrize(
    ("walls", "where"), [(False, "cell"), pytest.param(True, "node", marks=pytest.mark.slow)]
)
def test_noise_on_grids_does_not_depend_on_devices(walls, where):
    grid = Grid(Box([1.0, 1.0], not walls), (4, 8))
    at = getattr(grid, where)
    boundary = Dirichlet(0.0) if walls else None
    u = pk.Field(jnp.zeros((2, *grid.local_shape_at(at))), grid, at, boundary)
    sim = pk.Simulation(pk.Euler(Noise()), dt=1.0)
    one, many = (run(sim, u, key=jax.random.key(1), devices=d).state for d in (None, (2, 4)))
    # Vectorized code and its remainder loop round differently: the last bit depends on the array's length.
    np.testing.assert_allclose(many.data, one.data, rtol=1e-13, atol=1e-14)
    inside = one.data[:, 1:-1, 1:-1]  # on walls the values are given
    assert len(np.unique(inside)) == inside.size
    with pytest.raises(ParameterError, match="needs noise: give a key"):
        run(sim, u)


def test_noise_is_normal():
    drawn = Grid([1.0], (20_000,)).random_normal(jax.random.key(0), (2,))
    assert drawn.shape == (2, 20_000)
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1) < 0.02
    assert abs((drawn[0] * drawn[1]).mean()) < 0.03
    assert abs((drawn[0, 1:] * drawn[0, :-1]).mean()) < 0.03


# --- guards -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_guards_name_cells_by_their_index_in_the_domain():
    sim, gas = pk.systems.sod(cells=8)
    sim = replace_fields(sim, {"dt": sim.dt * 8, "guards": (pk.guards.PositivityGuard(),)})
    messages = []
    for devices in (None, 4):
        with pytest.raises(pk.SimulationDiverged, match=r"in cell \d+") as error:
            run(sim, gas, 20 * sim.observation_period, devices=devices)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
