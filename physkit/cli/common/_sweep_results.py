"""Results of a sweep as a file, in the format that its ending says."""

import csv
import io
from pathlib import Path

from ._types import SweepResults

SWEEP_SUFFIXES = (".csv", ".parquet", ".feather", ".npz", ".nc")


def require_sweep_suffix(to: Path) -> None:
    """Raise for an ending that no writer has.

    **Errors:** `ParameterError`.
    """
    from physkit.core import ParameterError

    if to.suffix not in SWEEP_SUFFIXES:
        raise ParameterError(f"--to {to}: the ending is one of {', '.join(SWEEP_SUFFIXES)}")


def write_sweep(results: SweepResults, to: Path, frames: slice | None = None) -> None:
    """Write a table of the members, or every array.

    **Arguments:** `frames`: in a table of columns a row for each member and each of these frames.
    """
    import numpy as np

    from physkit.storage import (
        make_folder,
        replace_atomically,
        write_atomically,
        write_dataframe,
        write_npz_file,
    )

    make_folder(to.parent)
    if to.suffix in (".parquet", ".feather"):
        write_dataframe(to, results.to_pandas(frames=False if frames is None else frames))
    elif to.suffix == ".nc":
        with replace_atomically(to) as path:
            results.to_xarray().to_netcdf(path)
    elif to.suffix == ".csv":
        columns = results.columns()
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(columns)
        # Python numbers: csv writes their shortest exact digits.
        rows.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
        write_atomically(to, text.getvalue().encode())
    else:
        arrays = {"member": results.members, "ok": results.ok}
        # With a prefix, since a coordinate may have the name of a result.
        arrays |= {f"at {name}": values for name, values in results.coordinates.items()}
        arrays |= {f"time of {name}": values for name, values in results.times.items()}
        arrays |= {name: np.asarray(results[name]) for name in results}
        # Through memory, so that a reader never meets half a file.
        buffer = io.BytesIO()
        write_npz_file(buffer, arrays, compressed=True)
        write_atomically(to, buffer.getbuffer())
