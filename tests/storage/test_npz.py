"""Files of arrays by name: any name, and what NumPy reads."""

import io

import numpy as np
import pytest

from physkit.storage import write_npz_file


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_have_any_name(compressed):
    arrays = {"file": np.arange(3), "compressed": np.ones((2, 2), complex), "at t": np.float32(2.0)}
    buffer = io.BytesIO()
    write_npz_file(buffer, arrays, compressed=compressed)
    with np.load(io.BytesIO(buffer.getvalue())) as found:
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
