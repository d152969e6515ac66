"""`devices=`: numbers, platforms and JAX devices, and errors for everything else."""

import jax
import numpy as np
import pytest

from physkit.core import DeviceError
from physkit.parallel import Spmd, resolve_devices

CPU = jax.devices("cpu")


def test_numbers_platforms_and_devices():
    assert resolve_devices(4) == ((4,), None)
    assert resolve_devices((2, 2)) == ((2, 2), None)
    assert resolve_devices([1, 3]) == resolve_devices(np.array([1, 3, 1])) == ((1, 3), None)
    assert (
        resolve_devices(2) == resolve_devices((2, 1)) == resolve_devices((2, 1, 1)) == ((2,), None)
    )
    assert resolve_devices("cpu") == ((len(CPU),), tuple(CPU))
    assert resolve_devices("cpu:1x1") == ((1,), (CPU[0],))
    assert resolve_devices(CPU[0]) == resolve_devices([CPU[0]]) == ((1,), (CPU[0],))
    assert (
        resolve_devices(np.array([[CPU[0]]], object))
        == resolve_devices([[CPU[0]]])
        == ((1,), (CPU[0],))
    )


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (
            "cpu:4096x2",
            r"8192 devices; there are \d+ \(cpu\).*device_count=8192.*jax_num_cpu_devices",
        ),
        ("quantum", "finds no quantum here, only"),
        ("cpu:", "not understood"),
        ((2, 0), "from 1"),
        ((1, 1, 1, 1), "three axes"),
        (True, "not understood"),
        ((True, 2), "not understood"),
        (np.array([True, True]), "not understood"),
        ([[CPU[0]], []], "not understood"),
        (np.array(CPU[0], object).reshape(1, 1, 1, 1), "three axes"),
        ({"x": 2}, "not understood"),
        ("2x2", "'cpu', 'gpu', 'gpu:4' or 'cpu:2x2'"),
        ((), "not understood"),
        (2.0, "not understood"),
        ((2, "gpu"), "not understood"),
        ([CPU[0], CPU[0]], "twice"),
    ],
)
def test_invalid_devices_raise(devices, message):
    with pytest.raises(DeviceError, match=message):
        resolve_devices(devices)


def _hand_on(comm, x, factor):
    del comm
    return x, factor


def test_static_arguments_that_are_equal_and_of_other_types_are_others():
    run = Spmd(_hand_on, (1,), backend="vmap")
    for factor in (2, 2.0, True, 1):
        found = run(np.ones(1), factor)[1]
        assert (found, type(found)) == (factor, type(factor))


def _reduce_along_other_axes(comm, x):
    return comm.psum(x, 1), comm.pmax(x, 2), comm.psum(x, 0)


@pytest.mark.parametrize("backend", ["vmap", "pmap", "shard_map"])
def test_reductions_along_an_axis_that_is_not_sharded_are_the_identity(backend):
    count = min(2, len(CPU))
    x = np.arange(1.0, 1.0 + count)
    summed, largest, total = Spmd(_reduce_along_other_axes, (count,), backend, tuple(CPU))(x)
    np.testing.assert_array_equal(summed, x)
    np.testing.assert_array_equal(largest, x)
    np.testing.assert_array_equal(total, np.full(count, x.sum()))
