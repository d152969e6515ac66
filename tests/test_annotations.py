"""The suite checks annotations at every call: it would notice a wrong type, shape or axis."""

import dataclasses
import os
from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float, TypeCheckError

import physkit as pk
from tests.annotations import checked


@checked
def _dot(
    a: Float[Array, "n 3"], b: "Float[Array, 'n 3']", scale: float = 1.0
) -> Float[Array, " n"]:
    return scale * jnp.sum(a * b, axis=1)


def test_axes_of_one_name_are_of_one_length():
    assert _dot(jnp.ones((2, 3)), jnp.ones((2, 3))).shape == (2,)
    assert _dot(jnp.ones((4, 3)), jnp.ones((4, 3))).shape == (4,)
    with pytest.raises(TypeCheckError, match="b"):
        _dot(jnp.ones((2, 3)), jnp.ones((4, 3)))
    with pytest.raises(TypeCheckError, match="a"):
        _dot(jnp.ones((2, 3), int), jnp.ones((2, 3)))
    with pytest.raises(TypeCheckError, match="scale"):
        _dot(jnp.ones((2, 3)), jnp.ones((2, 3)), scale="1")


def test_what_is_returned_is_checked_beside_the_arguments():
    @checked
    def half(a: Float[Array, " n"]) -> Float[Array, " n"]:
        return a[::2]

    with pytest.raises(TypeCheckError, match="return"):
        half(jnp.ones(4))


def test_methods_properties_fields_and_generators_are_checked():
    @checked
    @dataclasses.dataclass
    class Thing:
        length: float

        @checked
        @classmethod
        def of(cls, count: int) -> "Thing":
            return cls(float(count))

        @checked
        @property
        def name(self) -> str:
            return self.length

    assert Thing.of(2).length == 2.0
    for fault in (lambda: Thing("a"), lambda: Thing.of("a"), lambda: Thing.of(2).name):
        with pytest.raises(TypeCheckError):
            fault()

    @checked
    def count(n: int) -> Iterator[int]:
        yield from range(n)

    assert list(count(3)) == [0, 1, 2]
    with pytest.raises(TypeCheckError):
        list(count("a"))


def test_what_a_function_closes_over_is_seen():
    """Equinox finds arrays that a function closes over by its closure."""

    @jax.jit
    def f(x):
        @checked
        def times(y: Array) -> Array:
            return x * y

        return eqx.filter_closure_convert(times, x).consts[0]

    assert f(2.0) == 2.0


@pytest.mark.skipif(
    os.environ.get("PHYSKIT_TYPECHECK") == "0", reason="annotations are not checked"
)
def test_physkit_is_checked():
    with pytest.raises(pk.errors.DeclarationError, match="component") as error:
        pk.HarmonicTrap(1.0, component=3)
    assert isinstance(error.value.__cause__, TypeCheckError)
