"""Which recorded things a verb is about, and where its result goes."""

import argparse
from pathlib import Path
from typing import Any

from ._report import size


def open_recording(path: str) -> Any:
    """What a run has written: its folder, or one of its files.

    **Errors:** `FileError`.
    """
    from physkit.core import FileError
    from physkit.storage import open as open_file

    place = Path(path)
    if place.is_dir() and any(place.glob("checkpoint-*.h5")):
        raise FileError(f"{place} holds checkpoints, no frames: `physkit info` reads them")
    if place.is_file():
        need_recording(place)
        if place.name.startswith("checkpoint-"):
            raise FileError(
                f"{place} is a checkpoint, which holds no frames: `physkit info` reads it"
            )
    return open_file(place)


def need_recording(path: Path) -> None:
    """**Errors:** `FileError` for files of other kinds than a run writes."""
    from physkit.core import FileError
    from physkit.storage import ENDINGS

    if path.suffix not in ENDINGS:
        raise FileError(
            f"{path} is no recording: a run writes {', '.join(ENDINGS)}; give its folder or one of those"
        )


def chosen(found: Any, names: list[str]) -> list[Any]:
    """The series of these names; all if there are none.

    **Errors:** `ParameterError` lists what exists.
    """
    from physkit.core import ParameterError

    for name in names:
        if name not in found:
            raise ParameterError(
                f"nothing recorded as {name!r} in {found.path}; there are: {', '.join(found)}"
            )
    return [found[name] for name in (names or found)]


def add_target(parser: argparse.ArgumentParser, about: str) -> None:
    """The options that say where the result goes."""
    parser.add_argument("--to", metavar="FILE", help=about)
    parser.add_argument("--force", action="store_true", help="replace what is there")


def target(given: argparse.Namespace, otherwise: str) -> Path:
    """Where the result goes.

    **Errors:** `FileError` when something is there, or its folder is not.
    """
    from physkit.core import FileError

    path = Path(given.to if given.to is not None else otherwise)
    if path.exists() and not given.force:
        raise FileError(f"{path} is there already: give another --to, or --force to replace it")
    if not path.parent.is_dir():
        raise FileError(f"{path.parent} is no folder: make it first")
    return path


def stem(path: str, names: list[str]) -> str:
    """A name for a picture of these series."""
    words = [Path(path).resolve().stem, *names]
    return "-".join("".join(c if c.isalnum() or c in "._" else "_" for c in w) for w in words)


def described(path: Path) -> dict[str, Any]:
    """A file that was written, for JSON."""
    return {"file": str(path), "bytes": path.stat().st_size, "size": size(path.stat().st_size)}
