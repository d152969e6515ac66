"""How an error of ours looks in a notebook: the user's lines first, the frames of libraries folded."""

import functools
import linecache
import sys
import sysconfig
import textwrap
import traceback
import types
from pathlib import Path

from .outside._code import is_users_frame

_CONTEXT = 2  # lines above and below the one that raised
_RED, _BOLD, _FAINT, _PLAIN = "\x1b[31m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
_WIDTH = 100
_PACKAGES = ("physkit", "jax", "jaxlib", "equinox", "jaxtyping", "beartype", "IPython", "ipykernel")


def render_traceback(error: BaseException) -> list[str]:
    """The traceback of `error` as IPython prints it, in lines: the user's lines, then the message.

    Consecutive frames of physkit and other libraries are one line. After `%xmode Verbose` IPython's own
    traceback is shown, with all of them.
    """
    shell = _shell()
    frames = list(traceback.walk_tb(error.__traceback__))
    is_full = getattr(getattr(shell, "InteractiveTB", None), "mode", "") == "Verbose"
    if shell is not None and (is_full or not any(is_users_frame(f) for f, _ in frames)):
        return shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
    lines, folded = [], []
    for frame, number in frames:
        if not is_users_frame(frame):
            folded.append(_package_of(frame))
            continue
        # Above the user's first line there is only what runs a notebook's cells.
        lines += _fold(folded) if lines else []
        lines += _show_frame(frame, number, shell)
        folded = []
    lines += _fold(folded)
    if error.__cause__ is not None:
        lines += ["", f"{_FAINT}caused by{_PLAIN} {_headline(error.__cause__)}"]
    return [*lines, "", _headline(error), *getattr(error, "__notes__", ())]


def _headline(error: BaseException) -> str:
    first, *rest = str(error).split("\n")
    wrapped = textwrap.wrap(first, _WIDTH, subsequent_indent="  ", break_long_words=False)
    message = "\n".join([*(wrapped or [""]), *rest])
    return f"{_RED}{_BOLD}{type(error).__name__}{_PLAIN}: {message}"


def _show_frame(frame: types.FrameType, number: int, shell: object) -> list[str]:
    """Where a frame of the user's is, and the lines around."""
    path = frame.f_code.co_filename
    # A cell has a file name that nobody recognizes: IPython knows its number.
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", lambda path: None)
    kind, place = name_of(path) or ("File", path)
    function = frame.f_code.co_name
    within = "" if function.startswith("<module") else f" in {function}()"
    lines = [f"{_BOLD}{kind} {place}, line {number}{_PLAIN}{within}"]
    first = max(1, number - _CONTEXT)
    linecache.checkcache(path)
    for k in range(first, number + _CONTEXT + 1):
        text = linecache.getline(path, k, frame.f_globals).rstrip()
        if not text and k > number:
            break
        mark = f"{_RED}{_BOLD}--> {k:4} {text}{_PLAIN}" if k == number else f"    {k:4} {text}"
        lines.append(mark)
    return lines


def _fold(packages: list[str]) -> list[str]:
    if not packages:
        return []
    names = ", ".join(dict.fromkeys(packages))
    count = f"{len(packages)} frame{'s' * (len(packages) > 1)}"
    return [f"{_FAINT}    ⋯  {count} of {names} (%xmode Verbose and %tb show them){_PLAIN}"]


def _package_of(frame: types.FrameType) -> str:
    """The library that the code of a frame is of."""
    path = Path(frame.f_code.co_filename)
    for folder, name in _libraries():
        if path.is_relative_to(folder):
            return name or path.relative_to(folder).parts[0].removesuffix(".py")
    return "generated code"


@functools.cache
def _libraries() -> tuple[tuple[Path, str], ...]:
    """Folders of library code and their names; where the name is empty, that of the folder below."""
    paths = sysconfig.get_paths()
    third_party = {Path(paths["purelib"]), Path(paths["platlib"])}
    third_party |= {Path(p) for p in sys.path if Path(p).name in ("site-packages", "dist-packages")}
    # These may be installed from a folder of their own.
    loaded = [(name, getattr(sys.modules.get(name), "__file__", None)) for name in _PACKAGES]
    return (
        *((Path(file).parent, name) for name, file in loaded if file),
        *((folder, "") for folder in third_party),
        (Path(paths["stdlib"]), "Python"),
    )


def _shell() -> object:
    """IPython's shell, where this is one; it is never imported for it."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
