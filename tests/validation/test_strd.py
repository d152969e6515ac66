"""The reader of NIST's data sets, and that only a right model meets their certified values."""

import numpy as np
import pytest

from physkit.core import DamagedFileError, ParameterError
from physkit.testing.validation import digits, fit_strd, read_strd, shipped_strd


def test_a_file_as_nist_publishes_it():
    problem = shipped_strd("Misra1a")
    assert problem.name == "Misra1a"
    assert problem.names == ("b1", "b2")
    assert list(problem.columns) == ["y", "x"]
    assert problem.columns["y"].shape == (14,)
    np.testing.assert_array_equal(problem.starts, [[500, 1e-4], [250, 5e-4]])
    np.testing.assert_array_equal(problem.deviations, [2.7070075241, 7.2668688436e-6])
    assert problem.sum_of_squares == 1.2455138894e-1
    assert problem.residual_deviation == 1.0187876330e-1


def test_another_layout(tmp_path):
    text = """NIST/ITL StRD
Dataset Name:  Two            (Two.dat)
  b1 =   .5   1E+1   -2.0D+00   1.5E-03
Number of Observations:   2
Data:   y   x1   x2
  1.0   2.  -3e0
  4     5    6

"""
    file = tmp_path / "Two.dat"
    file.write_text(text)
    problem = read_strd(file)
    assert list(problem.columns) == ["y", "x1", "x2"]
    np.testing.assert_array_equal(problem.certified, [-2.0])
    np.testing.assert_array_equal(problem.columns["x2"], [-3, 6])
    with pytest.raises(DamagedFileError, match="Two: 1 rows"):
        read_strd(text.replace("  4     5    6\n", ""))
    with pytest.raises(DamagedFileError, match="no StRD file"):
        read_strd("nothing\nof the kind")


def test_a_wrong_model_does_not_pass():
    problem = shipped_strd("Misra1a")
    found = fit_strd(problem, lambda b, x: b[0] * x / (1 / b[1] + x), 1)
    assert digits([found.values["b1"], found.values["b2"]], problem.certified) < 1
    assert digits(1.0, 1.0) == 16
    assert digits(1.001, 1.0) == pytest.approx(3)
    with pytest.raises(ParameterError, match="0 or 1"):
        fit_strd(problem, lambda b, x: b[0] * x, 2)
