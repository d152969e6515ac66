"""`exp` and `erfc` of functions.h, by units in the last place."""

import ctypes
import math
import subprocess

import numpy as np
import pytest
from scipy import special

from physkit.native import c_compiler
from physkit.native._c_source import _read
from physkit.native._compiler import _OPTIONS, _OPTIONS_FOR_SPEED

CODE = """
void exp32(long n, const float *x, float *y) { for (long k = 0; k < n; k++) y[k] = exp_f32(x[k]); }
void exp64(long n, const double *x, double *y) { for (long k = 0; k < n; k++) y[k] = exp_f64(x[k]); }
void erfc32(long n, const float *x, float *y) { for (long k = 0; k < n; k++) y[k] = erfc_f32(x[k]); }
void erfc64(long n, const double *x, double *y) { for (long k = 0; k < n; k++) y[k] = erfc_f64(x[k]); }
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("functions")
    (folder / "code.c").write_text(_read("functions.h") + CODE)
    for more in _OPTIONS_FOR_SPEED:
        command = [*c_compiler(), *_OPTIONS, *more, "-o", "code.so", "code.c", "-lm"]
        if (
            subprocess.run(command, cwd=folder, check=False, stderr=subprocess.DEVNULL).returncode
            == 0
        ):
            break
    library = ctypes.CDLL(str(folder / "code.so"))

    def call(name, x):
        out = np.empty_like(x)
        getattr(library, f"{name}{8 * x.itemsize}")(
            ctypes.c_long(x.size), ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data)
        )
        return out

    return call


def _relative_error(got, expected):
    """In units of the last place of 1."""
    return np.abs(got / expected - 1) / np.finfo(got.dtype).eps


# Where `exp` is a number, and a normal one with something to spare.
RANGES = {np.float32: (-86, 88.72), np.float64: (-707, 709.78)}


def test_exp(functions, dtype):
    low, high = RANGES[dtype.type]
    near = np.random.default_rng(0).normal(0, 1, 50_000)
    x = np.concatenate([np.linspace(low, high, 200_001), near, near * 1e-9]).astype(dtype)
    expected = np.exp(x.astype(np.longdouble))
    assert np.max(_relative_error(functions("exp", x), expected)) < 1


def test_exp_at_its_ends(functions, dtype):
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 720, -720, 709.5, 88.5, 89], dtype)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.exp(x)
    # Below the least normal number it may be 0.
    rtol, tiny = 2 * float(np.finfo(dtype).eps), float(np.finfo(dtype).tiny)
    np.testing.assert_allclose(functions("exp", x), expected, rtol, tiny)


@pytest.mark.parametrize(("dtype", "high"), [(np.float32, 9), (np.float64, 26.4)])
def test_erfc(functions, dtype, high):
    near_zero = np.random.default_rng(1).normal(0, 1e-8, 100)
    x = np.concatenate([np.linspace(-7, high, 20_001), near_zero]).astype(dtype)
    expected = np.vectorize(math.erfc)(x)  # more exact than SciPy's
    assert np.all(_relative_error(functions("erfc", x), expected) < 4 + np.maximum(x, 0) ** 2 / 2)


def test_erfc_at_its_ends(functions, dtype):
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 30, -30, 1e30, -1e30], dtype)
    np.testing.assert_allclose(
        functions("erfc", x), special.erfc(x), rtol=4 * float(np.finfo(dtype).eps)
    )
