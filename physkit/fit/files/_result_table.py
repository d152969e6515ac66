"""Results of fits as tables on disk: where they come from is written beside them, and no entry is trusted."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from physkit.storage import (
    Column,
    Table,
    collect_provenance,
    damaged_error,
    make_folder,
    read_table,
    write_table,
)


def write_result(
    path: Path, kind: str, columns: Mapping[str, Column], metadata: dict[str, Any]
) -> None:
    """Write a table and its provenance to `path`, in a folder that need not exist; a file there is replaced.

    **Errors:** `FileError`.
    """
    make_folder(path.parent)
    write_table(path, kind, columns, metadata | {"provenance": collect_provenance()})


@contextlib.contextmanager
def open_result(path: Path, kind: str) -> Iterator[Table]:
    """The table in `path`, to take its entries from: one that is missing or of another type is damage.

    **Errors:** `FileError` where there is none, `MismatchError` for another kind, `DamagedFileError`.
    """
    table = read_table(path, kind)
    try:
        yield table
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged_error(path, f"an entry is not as it was written ({error})") from error
