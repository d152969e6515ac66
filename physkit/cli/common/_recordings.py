"""Recordings that verbs read, the series chosen from them, and where results are written."""

import argparse
from pathlib import Path

from ._types import Recording, Series


def open_recording(path: str) -> Recording:
    """What a run has written: its folder, or one of its files.

    **Errors:** `FileError`.
    """
    from physkit.core import FileError
    from physkit.storage import open as open_file

    source = Path(path)
    require_run(source)
    # Folder or file. Checkpoints are HDF5, too: say so rather than that they have no frames.
    if source.is_dir() and any(source.glob("checkpoint-*.h5")):
        raise FileError(f"{source} holds checkpoints, no frames: `physkit info` reads them")
    if source.is_file():
        require_recording(source)
        if source.name.startswith("checkpoint-"):
            raise FileError(
                f"{source} is a checkpoint, which holds no frames: `physkit info` reads it"
            )
    return open_file(source)


def require_run(folder: Path) -> None:
    """Raise for the folder of a sweep, a search, a fit or what is kept with one, which is no run's.

    **Errors:** `FileError`.
    """
    from physkit.core import FileError

    if is_sweep(folder):
        raise FileError(
            f"{folder} is the folder of a sweep: `physkit sweep status {folder}` says how far it is, and "
            f"`physkit report {folder}` shows its results"
        )
    # Asked first, as every run has one: it takes a part of a second to import what knows the other names.
    if (folder / "run.json").is_file() or not (results := results_without_run(folder)):
        return
    raise FileError(
        f"{folder} holds no run but {', '.join(results)}: `physkit report {folder}` shows it"
    )


def results_without_run(folder: Path) -> list[str]:
    """The files of a search, a fit or what is kept with one; none where they are beside the frames of a run."""
    from physkit.storage import RECORDING_SUFFIXES

    results = [name for name in result_files() if (folder / name).is_file()]
    frames = {p.name for p in folder.glob("*") if p.suffix in RECORDING_SUFFIXES}
    return [] if frames - set(results) else results


def result_files() -> tuple[str, str, str, str]:
    """The names of the files of a fit, an audit, a posterior and a search."""
    from physkit.ensemble import SEARCH_FILE
    from physkit.fit import AUDIT_FILE, FIT_FILE, SAMPLES_FILE

    return FIT_FILE, AUDIT_FILE, SAMPLES_FILE, SEARCH_FILE


def require_recording(path: Path) -> None:
    """Raise for files of other kinds than a run writes.

    **Errors:** `FileError`.
    """
    from physkit.core import FileError
    from physkit.storage import RECORDING_SUFFIXES

    if path.suffix not in RECORDING_SUFFIXES:
        raise FileError(
            f"{path} is no recording: a run writes {', '.join(RECORDING_SUFFIXES)}; give its folder or one "
            "of those"
        )


def select_series(recording: Recording, names: list[str]) -> list[Series]:
    """The series of these names; all if there are none.

    **Errors:** `ParameterError` lists what exists.
    """
    from physkit.core import ParameterError

    for name in names:
        if name not in recording:
            raise ParameterError(
                f"nothing recorded as {name!r} in {recording.path}; there are: {', '.join(recording)}"
            )
    return [recording[name] for name in (names or recording)]


def add_output_arguments(parser: argparse.ArgumentParser, about: str) -> None:
    """Add the arguments that say where the result is written."""
    parser.add_argument("--to", metavar="FILE", help=about)
    parser.add_argument("--force", action="store_true", help="replace what is there")


def output_path(args: argparse.Namespace, default: str) -> Path:
    """Where the result is written.

    **Errors:** `FileError` when something is there, or its folder is not.
    """
    from physkit.core import FileError

    path = Path(args.to if args.to is not None else default)
    if path.exists() and not args.force:
        raise FileError(f"{path} is there already: give another --to, or --force to replace it")
    if not path.parent.is_dir():
        raise FileError(f"{path.parent} is no folder: make it first")
    return path


def picture_stem(path: str, names: list[str]) -> str:
    """A file name, without its ending, for a picture of these series."""
    parts = [Path(path).resolve().stem, *names]
    # Names of series are free text: only characters that every file system takes.
    return "-".join("".join(c if c.isalnum() or c in "._" else "_" for c in part) for part in parts)


def is_sweep(path: str | Path) -> bool:
    """Whether this is the folder of a sweep."""
    from physkit.storage import SWEEP_FILE

    return Path(path, SWEEP_FILE).is_file()
