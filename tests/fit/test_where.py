"""`where`: what it may point at, and what it says when it may not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import SelectionError, find
from physkit.fit import select
from physkit.particles.forces import Forces, HarmonicTrap, Pairwise
from physkit.particles.forces.potentials import LennardJones
from tests.compilations import compiled_programs


@pytest.fixture
def model():
    position, box = pk.lattice.face_centered_cubic(cells=(3, 3, 3), density=0.8)
    trap = HarmonicTrap(1.0, center=jnp.zeros(3)).named("trap")
    forces = Forces.of(Pairwise(LennardJones(), cutoff=2.0), trap)
    sim = pk.Simulation(pk.VelocityVerlet(forces), dt=0.004)
    return sim, pk.Particles(position, space=box)


def epsilon(m):
    return find(m, LennardJones).epsilon


def test_names_come_from_the_path_or_from_keys(model):
    assert select(epsilon, model).names == ("integrator.force.terms[0].potential.epsilon",)
    found = select(lambda m: (m[0].dt, m[1].mass[1:], m[1].velocity[0, :2]), model)
    assert found.names == ("dt", "mass[1:]", "velocity[0, :2]")
    assert select({"eps": epsilon, "v": lambda m: m[1].velocity}, model).names == ("eps", "v")
    assert select(lambda m: {"a": {"b": m[0].dt}}, model).names == ("a.b",)
    assert select({"a": lambda m: (m[0].dt, m[0].t0)}, model).names == ("a[0]", "a[1]")
    whole = select(lambda m: find(m, LennardJones), model)
    assert [name.rpartition(".")[2] for name in whole.names] == ["epsilon", "sigma"]


def test_names_that_would_be_equal_are_whole_paths():
    a, b = HarmonicTrap(1.0), HarmonicTrap(2.0)
    names = select(lambda m: (m[0].stiffness, m[1].stiffness), (a, b)).names
    assert names == ("[0].stiffness", "[1].stiffness")


def test_parts_are_found_by_class_and_by_name(model):
    found = select(
        lambda m: (find(m, Pairwise).potential.sigma, find(m, "trap").stiffness, m[1].mass), model
    )
    assert found.names == (
        "integrator.force.terms[0].potential.sigma",
        "integrator.force.terms[1].stiffness",
        "mass",
    )
    changed = found.put(model, {"integrator.force.terms[1].stiffness": 7.0})
    assert find(changed, "trap").stiffness == 7.0


def test_errors_of_find_come_through(model):
    with pytest.raises(SelectionError, match=r"^no term of the model is named 'spring'"):
        select(lambda m: find(m, "spring").stiffness, model)


def test_put_and_get_are_inverse(model):
    found = select(lambda m: (epsilon(m), m[1].mass[1:]), model)
    values = {name: 2 * x for name, x in found.get(model).items()}
    changed = found.put(model, values)
    assert float(epsilon(changed)) == 2.0
    np.testing.assert_array_equal(changed[1].mass[:3], [1, 2, 2])
    for name, value in found.get(changed).items():
        np.testing.assert_array_equal(value, values[name])
    assert jax.tree.structure(changed) == jax.tree.structure(model)


@pytest.mark.parametrize(
    "index", [-1, slice(1, None), np.array([0, 2]), jnp.array([True, False, True])]
)
def test_parts_are_taken_without_compiling(index):
    """By the host, which has the numbers at hand: with indices that JAX understands."""
    model = {"a": jnp.array([1, 2, 3], jnp.float32)}
    found = select(lambda m: m["a"][index], model)
    with compiled_programs() as compiled:
        (taken,) = found.get(model).values()
        changed = found.put(model, {found.names[0]: np.float64(7)})["a"]
    assert not compiled
    np.testing.assert_array_equal(taken, model["a"][index])
    np.testing.assert_array_equal(changed, model["a"].at[index].set(7))
    assert changed.dtype == taken.dtype == jnp.float32


def test_put_under_vmap_and_grad_and_in_the_models_precision():
    model = {"a": jnp.ones(3, jnp.float32), "n": jnp.arange(2)}
    found = select(lambda m: m["a"][0], model)
    (name,) = found.names
    many = jax.vmap(lambda x: found.put(model, {name: x})["a"])(jnp.arange(4.0))
    np.testing.assert_array_equal(many[:, 0], np.arange(4.0))
    assert many.dtype == jnp.float32
    assert jax.grad(lambda x: found.put(model, {name: x})["a"].sum())(2.0) == 1.0
    with pytest.raises(SelectionError, match="not selected"):
        found.put(model, {"b": 1.0})


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (lambda m: (), "selects nothing. Available: integrator.force.terms"),
        (lambda m: None, "returned None"),
        (lambda m: m[1].mass[500:], "selects nothing"),
        (lambda m: m[1].id, "id, which is int32 and has no derivative"),
        (lambda m: find(m, Pairwise).cutoff, r"Pairwise.cutoff = 2.0, a static field"),
        (lambda m: 3.25, "3.25, which is not a leaf of the model"),
        (lambda m: jnp.ones(2), "not a leaf of the model"),
        (lambda m: 2 * m[0].dt, "not compute with them"),
        (lambda m: m[0].stiffness, "has no 'stiffness'; available: .*'integrator'"),
        (lambda m: m[1].mass[0][0], "index a leaf once"),
        (lambda m: (m[1].mass, m[1].mass[:2]), "the same numbers twice"),
        (lambda m: {"a": m[0].dt, "b": m[0].dt}, r"twice: as \['a', 'b'\]"),
        ("dt", "a function of the model"),
        ({"dt": "dt"}, "a function of the model"),
    ],
)
def test_what_where_cannot_mean_is_refused(model, where, message):
    with pytest.raises(SelectionError, match=message):
        select(where, model)


def test_a_part_without_floating_numbers_is_refused():
    with pytest.raises(SelectionError, match="without floating numbers"):
        select(lambda m: m["grid"], {"grid": pk.Particles(jnp.zeros((2, 1))).replace(
            position=jnp.zeros((2, 1), int), velocity=jnp.zeros((2, 1), int),
            mass=jnp.zeros(2, int), charge=jnp.zeros(2, int),
        )})  # fmt: skip
