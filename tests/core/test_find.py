"""`find`: parts of a model by class or by the name of a term, and errors where there is not exactly one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    DeclarationError,
    Function,
    SelectionError,
    Tendencies,
    find,
)
from physkit.particles import Particles
from physkit.particles.forces import Forces, HarmonicTrap, Pairwise
from physkit.particles.forces.potentials import LennardJones


def soft():
    return HarmonicTrap(1.0).named("soft")


def stiff():
    return HarmonicTrap(50.0).named("stiff")


def simulation(force):
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.01)


def test_a_part_is_found_by_its_class():
    model = (simulation(HarmonicTrap(2.0) + Pairwise(LennardJones(), cutoff=2.5)), jnp.ones(3))
    assert find(model, HarmonicTrap) is model[0].integrator.force.terms[0]
    assert find(model, LennardJones).epsilon == 1.0
    assert find(model, pk.Simulation) is model[0]
    assert find(model[0].integrator.force.terms[0], HarmonicTrap).stiffness == 2.0


def test_a_class_may_be_abstract():
    sim = simulation(HarmonicTrap(2.0))
    assert find(sim, pk.AbstractForce) is sim.integrator.force.terms[0]


def test_a_term_is_found_by_the_name_that_it_has_in_a_sum():
    sim = simulation(soft() + HarmonicTrap(7.0) + stiff())
    assert find(sim, "soft").stiffness == 1.0
    assert find((sim, None), "stiff").stiffness == 50.0
    assert find(simulation(stiff()), "stiff").stiffness == 50.0


@pytest.mark.parametrize("make", [pk.RK4, Tendencies.of], ids=["RK4", "sum"])
def test_tendencies_have_names_like_forces(make):
    growth = Function(lambda t, y, rate: rate * y, jnp.asarray(0.5)).named("growth")
    model = make(growth, lambda t, y: -y)
    assert find(model, "growth").args == 0.5


def test_names_survive_regrouping():
    one = Forces.of(soft())
    assert Forces.of(HarmonicTrap(3.0), one + stiff()).term_names == (None, "soft", "stiff")
    assert Forces.of(HarmonicTrap(3.0), HarmonicTrap(2.0)).term_names == ()


def test_a_name_adds_no_leaf_and_changes_no_number():
    plain, named = Forces.of(HarmonicTrap(2.0)), Forces.of(HarmonicTrap(2.0).named("trap"))
    paths = [
        [path for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
        for tree in (plain, named)
    ]
    assert paths[0] == paths[1]
    atoms = Particles(jnp.array([[1.0, 2.0]]), velocity=jnp.array([[0.5, 0.0]]))
    ends = [pk.simulate(simulation(force), atoms, 20).state.position for force in (plain, named)]
    np.testing.assert_array_equal(*ends)


def test_two_terms_of_a_sum_have_two_names():
    with pytest.raises(DeclarationError, match=r"different names; got \['soft', 'soft'\]"):
        soft() + soft()


def test_a_sum_of_tendencies_has_no_name_of_its_own():
    with pytest.raises(DeclarationError, match="to one term"):
        Tendencies.of(lambda t, y: y, lambda t, y: -y).named("both")


def test_an_ambiguous_class_lists_the_candidates_with_paths_and_names():
    model = (simulation(soft() + stiff()), None)
    with pytest.raises(SelectionError) as error:
        find(model, HarmonicTrap)
    assert "2 parts of the model are HarmonicTrap" in str(error.value)
    for candidate in (
        "HarmonicTrap 'soft' at [0].integrator.force.terms[0]",
        "HarmonicTrap 'stiff' at [0].integrator.force.terms[1]",
    ):
        assert candidate in str(error.value)


def test_a_missing_class_lists_available_parts():
    message = r"no part of the model is a Pairwise.*HarmonicTrap at integrator.force.terms\[0\]"
    with pytest.raises(SelectionError, match=message):
        find(simulation(HarmonicTrap(1.0)), Pairwise)


def test_a_missing_name_lists_the_names_of_terms():
    with pytest.raises(SelectionError, match=r"named 'hard'. Named terms: HarmonicTrap 'soft' at"):
        find(simulation(soft()), "hard")
    with pytest.raises(SelectionError, match=r"no term has a name.*term.named\('hard'\)"):
        find(simulation(HarmonicTrap(1.0)), "hard")


def test_find_works_where_leaves_are_markers_or_traced():
    sim = simulation(soft() + stiff())
    changed = eqx.tree_at(lambda s: find(s, "soft").stiffness, sim, jnp.asarray(3.0))
    assert find(changed, "soft").stiffness == 3.0
    gradient = jax.grad(lambda s: find(s, "stiff").stiffness ** 2)(sim)
    assert find(gradient, "stiff").stiffness == 100.0
