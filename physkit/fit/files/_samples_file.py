"""Draws from a posterior as a file, without the model."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from physkit.storage import Column

from ._result_table import open_result, write_result

SAMPLES_FILE = "posterior.nc"
_KIND = "posterior samples"
_OF_TRANSITIONS = {
    "log_density": "f", "energy": "f", "acceptance": "f", "num_steps": "iu", "is_divergent": "b",
}  # fmt: skip


def write_samples(
    folder: Path,
    fields: Mapping[str, Any],
    of_numbers: Mapping[str, np.ndarray],
    remarks: list[str],
) -> None:
    """Write the fields of samples by name, what is known of each number, `[v]`, and remarks on them all.

    **Errors:** `FileError`.
    """
    columns = {"draws": Column(fields["table"], ("chain", "draw", "number"))}
    columns |= {
        name: Column(np.asarray(fields[name]), ("chain", "draw")) for name in _OF_TRANSITIONS
    }
    columns["step_size"] = Column(np.asarray(fields["step_size"]), ("chain",))
    columns |= {name: Column(np.asarray(x, float), ("number",)) for name, x in of_numbers.items()}
    metadata = {
        "labels": list(fields["labels"]),
        # In order: JSON keeps it.
        "parameters": {
            name: {"shape": list(x.shape[2:]), "dtype": str(x.dtype)}
            for name, x in fields["values"].items()
        },
        "num_chains": int(fields["num_chains"]),
        "max_steps": int(fields["max_steps"]),
        "is_proper": bool(fields["is_proper"]),
        "divergent": int(np.sum(fields["is_divergent"])),
        "remarks": remarks,
    }
    write_result(folder / SAMPLES_FILE, _KIND, columns, metadata)


def read_samples(folder: Path) -> dict[str, Any]:
    """The fields of samples by name.

    **Errors:** `FileError` where there are none, `MismatchError`, `DamagedFileError`.
    """
    with open_result(folder / SAMPLES_FILE, _KIND) as saved:
        said, table = saved.metadata, saved["draws"]
        found = {name: saved[name] for name in _OF_TRANSITIONS}
        for name, kinds in _OF_TRANSITIONS.items():
            if found[name].shape != table.shape[:2] or found[name].dtype.kind not in kinds:
                raise ValueError(f"{name} is {found[name].dtype}{list(found[name].shape)}")
        labels = tuple(map(str, said["labels"]))
        values = _values(table, said["parameters"])
        if table.dtype != np.dtype(float) or len(labels) != table.shape[2]:
            raise ValueError(f"{len(labels)} labels of {table.dtype}{list(table.shape)}")
        if saved["step_size"].shape != table.shape[:1]:
            raise ValueError(f"step sizes of {list(saved['step_size'].shape)} chains")
        return found | {
            "values": values,
            "labels": labels,
            "table": table,
            "step_size": saved["step_size"],
            "num_chains": int(said["num_chains"]),
            "max_steps": int(said["max_steps"]),
            "is_proper": bool(said["is_proper"]),
        }


def _values(table: np.ndarray, parameters: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The columns of the table as arrays by name.

    **Errors:** `ValueError` where shapes are not those of the table.
    """
    values, first = {}, 0
    for name, about in parameters.items():
        shape, dtype = [int(n) for n in about["shape"]], np.dtype(about["dtype"])
        if dtype.kind != "f" or min(shape, default=0) < 0:
            raise ValueError(f"{name} is {dtype}{shape}")
        end = first + math.prod(shape)
        values[name] = table[:, :, first:end].astype(dtype).reshape(*table.shape[:2], *shape)
        first = end
    if first != table.shape[2]:
        raise ValueError(f"{first} numbers of {table.shape[2]}")
    return values
