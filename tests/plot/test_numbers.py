"""What pictures refuse: complex numbers, of which half would be lost, and shapes that do not go together."""

import numpy as np
import pytest

from physkit import plot
from physkit.core import ParameterError, ShapeError

T, WAVE = np.linspace(0, 1, 5), np.exp(1j * np.linspace(0, 1, 5))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.series(T, WAVE),
        lambda: plot.drift(T, WAVE),
        lambda: plot.trajectories(np.stack([WAVE, WAVE], 1)),
        lambda: plot.phase_space(WAVE, WAVE),
        lambda: plot.correlation(T, WAVE),
        lambda: plot.fan(T, np.stack([WAVE, WAVE])),
        lambda: plot.fit(T, T, T, WAVE),
        lambda: plot.heat_map(T, T, WAVE),
        lambda: plot.parallel_coordinates({"a": T, "b": WAVE}),
        lambda: plot.corner(np.stack([WAVE, WAVE], 1)),
        lambda: plot.corner({"a": T, "b": WAVE}),
    ],
)
def test_complex_numbers_are_refused(draw):
    with pytest.raises(ParameterError, match="is complex: draw the real part"):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: plot.radial_distribution(T, x),
        lambda x: plot.structure_factor(T, x),
        lambda x: plot.mean_square_displacement(T, x),
        lambda x: plot.correlation(T, x),
        lambda x: plot.correlation(T, 1 + T, error=x),
        lambda x: plot.fit(T, T, T, T, error=x),
    ],
)
@pytest.mark.parametrize("wrong", [np.ones(4), np.ones((5, 2)), np.ones(0)])
def test_shapes_that_do_not_go_together_are_named(draw, wrong):
    with pytest.raises(ShapeError, match=r"one length; got|as the values are; got"):
        draw(wrong)


@pytest.mark.parametrize("first", [0.0, np.nan])
def test_a_correlation_needs_something_to_divide_by(first):
    values = np.array([first, 1.0, 0.5, 0.2, 0.1])
    with pytest.raises(ParameterError, match=r"C\(0\) is .*normalized=False"):
        plot.correlation(T, values)
    plot.correlation(T, values, normalized=False)
