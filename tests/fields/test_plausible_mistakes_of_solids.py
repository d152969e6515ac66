"""Mistakes with solids and lattices that look right, and what is said of them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from physkit.core import (
    ParameterError,
    PhyskitWarning,
    param,
    static,
)
from physkit.fields import (
    ElasticField,
    FlowState,
    MagnetizedGas,
)
from physkit.fields.equations import (
    AbstractSolid,
    Ball,
    ConvolutionalPML,
    ElasticWaves,
    IncompressibleFlow,
)
from physkit.fields.lattice_boltzmann import LatticeBoltzmann, Populations
from physkit.geometry import (
    Box,
    Dirichlet,
    FreeSurface,
    Grid,
    Mirror,
    NoSlip,
    Outflow,
)

BOX = Grid(Box([1.0, 1.0], periodic=False), (4, 4))


SQUARE = Grid(Box([2.0, 2.0], periodic=False), (40, 40))


class Body(AbstractSolid):
    """A disk of radius 0.2 about (1, ½), and what is taken for its distance."""

    level: Callable = static()
    speed: jax.Array = param(0.0)

    def distance(self, t, x):
        return self.level(jnp.hypot(x[0] - 1 - self.speed * t, x[1] - 0.5))


CHANNEL = Grid(Box([2.0, 1.0], periodic=False), (32, 16))


THROUGH = {"x": (Dirichlet([1.0, 0.0]), Outflow()), "y": NoSlip()}


@pytest.mark.parametrize(
    ("solid", "words"),
    [
        (
            Ball([3.0, 0.5], 0.2),
            r"Ball covers no center of a cell: it is outside .* \[2\.0, 1\.0\]",
        ),
        (Ball([1.0, 0.5], 0.01), "smaller than a cell"),
        (Body(lambda r: 0.2 - r), "Body fills the side x_low, where Dirichlet moves the fluid"),
        (Body(lambda r: r - 9.0), "leaves no fluid: its distance is negative inside"),
        (Body(lambda r: r**2 - 0.04), r"changes by 0\.4\d* per length near its surface"),
        (Body(lambda r: 5 * (r - 0.2)), r"changes by 5 per length"),
    ],
)
def test_solids_are_in_the_flow_and_given_by_a_distance(solid, words):
    """They were not there, were everywhere, or were as thick as their slope is small."""
    flow, t = FlowState.of(CHANNEL, boundary=THROUGH), jnp.zeros(())
    with pytest.raises(ParameterError, match=words):
        IncompressibleFlow(0.1, implicit=False, solids=(solid,)).check_time(flow, t)
    lattice = LatticeBoltzmann(0.1, solids=(solid,))
    populations = Populations.of(CHANNEL, 0.01, boundary=THROUGH)
    if "changes" in words:  # links are cut where any level is 0
        lattice.check_time(populations, t)
        return
    with pytest.raises(ParameterError, match=words):
        lattice.check_time(populations, t)


def test_solids_that_come_in_later_or_fill_a_torus():
    law = lambda solid: IncompressibleFlow(0.1, implicit=False, solids=(solid,))
    flow, t = FlowState.of(CHANNEL, boundary=THROUGH), jnp.zeros(())
    law(Body(lambda r: r - 0.2)).check_time(flow, t)
    law(Ball([-1.0, 0.5], 0.2, speed=[1.0, 0.0])).check_time(flow, t)
    law(Body(lambda r: r - 0.2, speed=1.0)).check_time(flow, t - 3.0)
    torus = FlowState.of(Grid(Box([2.0, 1.0]), (32, 16)))
    with pytest.warns(PhyskitWarning, match="Body fills 9.% of the box"):
        law(Body(lambda r: 0.2 - r)).check_time(torus, t)
    # In a trace numbers that it closes over are hidden, too.
    jax.jit(lambda: law(Ball([3.0, 0.5], 0.2)).check_time(flow, t))()


def test_a_layer_over_a_free_surface_is_warned_of():
    """Left out, `sides` are all: the surface sent nothing back."""
    top = {"x": Dirichlet(0.0), "y_low": Dirichlet(0.0), "y_high": FreeSurface()}
    field = ElasticField.of(SQUARE, None, top)
    covered = ElasticWaves(layer=ConvolutionalPML(8))
    with pytest.warns(
        PhyskitWarning, match=r"free surface at y_high.*'x_low', 'x_high', 'y_low'\)"
    ):
        covered.check_state(covered.add_memory(field))
    for layer, sides in (
        (ConvolutionalPML(8, sides=("x_low", "x_high", "y_low")), top),
        (ConvolutionalPML(8), FreeSurface()),
    ):
        waves = ElasticWaves(layer=layer)
        waves.check_state(waves.add_memory(ElasticField.of(SQUARE, None, sides)))


def test_a_lattice_is_not_filled_without_end():
    """Two inlets face one another; after 400 steps the density was 4.4 of that of reference."""
    law, profile = LatticeBoltzmann(0.1), lambda t, x, y: (4 * y * (1 - y), 0.0 * y)
    for left, right, words in (
        (Dirichlet([1.0, 0.0]), Dirichlet([-1.0, 0.0]), "more fluid enters .* rise without end"),
        (Dirichlet([-1.0, 0.0]), NoSlip(), "less fluid enters"),
        (Dirichlet(profile), Dirichlet([0.1, 0.0]), "more fluid enters"),
        (Dirichlet(profile), Dirichlet(profile), None),
        (Dirichlet(profile), Outflow(), None),
    ):
        flow = Populations.of(BOX, 0.01, boundary={"x": (left, right), "y": NoSlip()})
        if words is None:
            law.check_state(flow)
        else:
            with pytest.raises(ParameterError, match=words):
                law.check_state(flow)


def test_speeds_of_a_solid_in_the_wrong_order():
    with pytest.raises(
        ParameterError, match=r"from_speeds\(p_speed, s_speed, density\); got 1\. and 1\.73"
    ):
        ElasticWaves.from_speeds(1.0, 1.73)


def test_no_field_passes_a_wall_that_conducts():
    """A vector potential, which was named, would not have helped."""
    tube = Grid(Box([1.0, 1.0], (True, False)), (4, 4))
    gas = {"density": 1.0, "velocity": (0.0, 0.0, 0.0), "pressure": 1.0, "gamma": 5 / 3}
    with pytest.raises(ParameterError, match=r"No field passes a Mirror\(\).*Outflow"):
        MagnetizedGas.from_primitive(
            tube, magnetic=(0.0, 1.0, 0.0), boundary={"y": Mirror()}, **gas
        )
    bent = (lambda x, y: jnp.sin(2 * jnp.pi * x) + 0 * y, 0.0, 0.0)
    with pytest.raises(ParameterError, match="Give a vector_potential"):
        MagnetizedGas.from_primitive(Grid([1.0, 1.0], (4, 4)), magnetic=bent, **gas)
