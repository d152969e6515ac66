"""The file of series: what is neither trajectory nor field, as groups of value, step and time."""

from pathlib import Path
from typing import Any

import h5py
import jax
import numpy as np

from physkit.core import PyTree

from ._growing_files import FrameStream, OutputFile, StreamColumn, create_growing_dataset


def make_series_file(path: Path, frames: dict[str, Any]) -> OutputFile:
    """The file for frames of these shapes; a frame of several arrays gives several series."""
    leaves = {
        leaf_name: leaf
        for name, frame in frames.items()
        for leaf_name, leaf in named_leaves(name, frame)
    }
    streams = []
    for number, (name, leaf) in enumerate(leaves.items()):
        # A number, not the name, which may hold characters that HDF5 gives a meaning, such as "/".
        group = f"series/{number:04d}"
        dims = ("time", *(f"axis_{k}" for k in range(len(leaf.shape))))
        value = StreamColumn(f"{group}/value", name, np.asarray, dims, tuple(leaf.shape))
        streams.append(FrameStream((value,), (f"{group}/step",), (f"{group}/time",), group))

    def write_header(file: h5py.File) -> None:
        for stream, (name, leaf) in zip(streams, leaves.items(), strict=True):
            create_growing_dataset(
                file, stream.columns[0].path, tuple(leaf.shape), np.dtype(leaf.dtype)
            )
            create_growing_dataset(file, stream.steps[0], (), np.int64)
            create_growing_dataset(file, stream.times[0], (), np.float64)
            file[stream.counter].attrs["name"] = np.bytes_(name.encode())

    return OutputFile(path, "series", tuple(streams), write_header)


def named_leaves(name: str, frame: PyTree) -> list[tuple[str, PyTree]]:
    """The arrays of a frame by name: `name` for one, `name[0]`, `name.mean`, … for several."""
    # The path to a frame that is a single array is empty: its name stays as it is.
    flat, _ = jax.tree_util.tree_flatten_with_path(frame)
    return [(name + jax.tree_util.keystr(path), leaf) for path, leaf in flat]
