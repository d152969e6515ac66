"""Components by name, partial rates, terms and their sums."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    AbstractComponent,
    AbstractTendency,
    Clock,
    ComponentError,
    DeclarationError,
    Function,
    StepCount,
    Tendencies,
    combine_rates,
    data,
    get_component,
    put_component,
    shift,
)

CLOCK = Clock.at(StepCount.of(2), jnp.zeros(()), jnp.asarray(0.5))


class Angle(AbstractComponent):
    """Adds up modulo 1: its shift is not plain addition."""

    turn: jax.Array = data()

    def shift(self, delta):
        return Angle((self.turn + delta) % 1.0)


STATE = {"gas": jnp.ones(2), "drops": jnp.zeros(3)}


class TestGetAndPut:
    def test_by_name(self):
        assert get_component(STATE, "gas") is STATE["gas"]
        assert get_component(jnp.ones(2), None).shape == (2,)
        replaced = put_component(STATE, "gas", jnp.zeros(1))
        assert replaced["gas"].shape == (1,)
        assert STATE["gas"].shape == (2,)

    @pytest.mark.parametrize(
        ("state", "name", "message"),
        [
            (STATE, "ions", r"no component 'ions' in state; available: \['drops', 'gas'\]"),
            (STATE, None, r"several components; say component=… \(one of \['drops', 'gas'\]\)"),
            (jnp.ones(2), "gas", "no component 'gas': the state is a single"),
        ],
    )
    def test_wrong_names_raise_and_list_components(self, state, name, message):
        for access in (lambda: get_component(state, name), lambda: put_component(state, name, 0)):
            with pytest.raises(ComponentError, match=message):
                access()


class TestShift:
    def test_arrays_add(self):
        assert shift(jnp.ones(2), jnp.ones(2)).tolist() == [2, 2]

    def test_partial_rates_leave_the_rest(self):
        state = {"a": jnp.ones(2), "b": jnp.ones(1)}
        after = shift(state, {"a": jnp.ones(2)})
        assert after["a"].tolist() == [2, 2]
        assert after["b"] is state["b"]
        assert shift(state, None) is state

    def test_components_shift_themselves(self):
        after = shift({"angle": Angle(jnp.asarray(0.75))}, {"angle": jnp.asarray(0.5)})
        assert after["angle"].turn == 0.25

    def test_rates_of_unknown_components_raise(self):
        with pytest.raises(ComponentError, match=r"rate names \['c'\]; available: \['a'\]"):
            shift({"a": jnp.ones(1)}, {"c": jnp.ones(1)})


class TestCombineRates:
    def test_weights(self):
        out = combine_rates([2.0, -1.0], [jnp.ones(2), jnp.full(2, 3.0)])
        assert out.tolist() == [-1, -1]

    def test_missing_components_count_as_zero(self):
        a, b = {"x": jnp.ones(2)}, {"x": jnp.ones(2), "y": jnp.full(1, 4.0)}
        out = combine_rates([1.0, 0.5], [a, b])
        assert out["x"].tolist() == [1.5, 1.5]
        assert out["y"].tolist() == [2.0]
        assert combine_rates([1.0, 1.0], [None, a])["x"].tolist() == [1, 1]
        assert combine_rates([1.0], [None]) is None

    def test_leaves_that_are_none_count_as_zero(self):
        out = combine_rates([1.0, 2.0], [(jnp.ones(1), None), (None, None)])
        assert out[0].tolist() == [1]
        assert out[1] is None

    def test_equals_the_dense_sum(self):
        rng = np.random.default_rng(0)
        weights = rng.normal(size=4)
        rates = [{"x": jnp.asarray(rng.normal(size=3))} for _ in weights]
        dense = sum(w * np.asarray(r["x"]) for w, r in zip(weights, rates, strict=True))
        assert np.allclose(combine_rates(list(weights), rates)["x"], dense, rtol=1e-14)


class TestTerms:
    def test_functions_are_tendencies(self):
        rate, cache = Function(lambda t, y: -t * y)(CLOCK, jnp.ones(2), None)
        assert rate.tolist() == [-1, -1]
        assert cache is None

    def test_numbers_for_a_function_go_into_args(self):
        term = Function(lambda t, y, args: -args["k"] * y, {"k": jnp.asarray(3.0)})
        gradient = jax.grad(lambda term: jnp.sum(term.rate(CLOCK, jnp.ones(2))))(term)
        assert gradient.args["k"] == -2.0

    def test_sums_are_flat_and_add_up(self):
        one = Tendencies.of(lambda t, y: {"a": y["a"]}, lambda t, y: {"a": y["a"], "b": y["b"]})
        both = Tendencies.of(one, Function(lambda t, y: {"b": 3 * y["b"]}))
        assert len(both.terms) == 3
        state = {"a": jnp.ones(1), "b": jnp.ones(1), "c": jnp.ones(1)}
        rate, caches = both(CLOCK, state, both.init(state))
        assert rate == {"a": 2.0, "b": 4.0}
        assert caches == (None, None, None)

    def test_every_term_keeps_its_own_cache(self):
        class CallCounter(AbstractTendency):
            def init(self, state):
                return jnp.zeros((), jnp.int32)

            def rate(self, clock, state):
                return state

            def __call__(self, clock, state, cache):
                return state, cache + 1

        both = Tendencies.of(CallCounter(), lambda t, y: y, CallCounter())
        caches = both.init(jnp.ones(1))
        for _ in range(3):
            _, caches = both(CLOCK, jnp.ones(1), caches)
        assert caches[0] == 3
        assert caches[1] is None
        assert caches[2] == 3

    @pytest.mark.parametrize(
        ("rate", "error", "words"),
        [
            (None, DeclarationError, "returned None: is there a return missing"),
            (
                jnp.ones(2),
                ComponentError,
                r"array float64\[2\].*by their names.*return \{'drops': …\}",
            ),
        ],
    )
    def test_a_rate_without_a_name_is_refused(self, rate, error, words):
        class Source(AbstractTendency):
            def rate(self, clock, state):
                return rate

        with pytest.raises(error, match=words):
            Source()(CLOCK, STATE, None)

    def test_values_that_are_no_terms_raise(self):
        with pytest.raises(TypeError, match="expected a tendency or a function"):
            Tendencies.of(3)


def test_the_cotangent_of_a_weight_is_that_of_jax():
    rng = np.random.default_rng(0)
    shapes = {"density": (4, 3), "momentum": (2, 4, 3), "empty": (0,), "number": ()}
    rates = [{k: jnp.asarray(rng.normal(size=s)) for k, s in shapes.items()} for _ in range(2)]
    rates[1]["constant"] = 2.0  # a number of Python's

    def loss(weights, combine):
        combined = combine(weights, rates)
        return sum(jnp.sum(jnp.sin(x)) for x in combined.values())

    def plain(weights, rates):
        names = dict.fromkeys(name for rate in rates for name in rate)
        terms = {
            n: [w * r[n] for w, r in zip(weights, rates, strict=True) if n in r] for n in names
        }
        return {name: sum(parts[1:], parts[0]) for name, parts in terms.items()}

    weights = jnp.asarray(0.3), jnp.asarray(-1.2)
    for derive in (jax.grad, jax.hessian, jax.jacfwd):
        found, expected = (
            jax.jit(derive(partial(loss, combine=f)))(weights) for f in (combine_rates, plain)
        )
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-13), found, expected)
    # One sum for arrays of one shape, of which the components of vectors are some.
    texts = [
        jax.jit(jax.grad(partial(loss, combine=f))).lower(weights).as_text()
        for f in (combine_rates, plain)
    ]
    assert [text.count("stablehlo.reduce(") for text in texts] == [2 * 2, 2 * 3]
