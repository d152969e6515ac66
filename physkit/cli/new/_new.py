"""Write a small, tested project to begin with.

A case, a term of your own, a fit of its parameters to a table, a sweep, a Slurm script, and tests that
pass. The name is that of the folder and of the Python package in it.
"""

import argparse
import importlib.util
import keyword
import os
import re
import shutil
import tempfile
from importlib import resources
from pathlib import Path

import physkit

from ..common._report import Report

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit new oscillator
  cd oscillator && pip install -e '.[test]' && pytest
  physkit run case.py --steps 2000 --to out
"""
# Files of the project, each from a template. PROJECT stands for its name, VERSION for that of physkit.
_FILES = {
    "README.md": "README.md.txt",
    "pyproject.toml": "pyproject.toml.txt",
    ".gitignore": "gitignore.txt",
    "PROJECT/__init__.py": "package.py.txt",
    "PROJECT/spring.py": "spring.py.txt",
    "PROJECT/system.py": "system.py.txt",
    "case.py": "case.py.txt",
    "fit.py": "fit.py.txt",
    "track.csv": "track.csv.txt",
    "sweep.py": "sweep.py.txt",
    "job.sh": "job.sh.txt",
    "tests/test_project.py": "test_project.py.txt",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit new`."""
    parser.add_argument("path", metavar="NAME", help="of the project, or a path that ends with it")


def run(args: argparse.Namespace, report: Report) -> int:
    """Write the project; 2 for a name that cannot be, and where something is there already."""
    folder = Path(args.path)
    name = folder.name
    # Also a link that leads nowhere, and an empty folder: nothing that is there is touched. Asked first, as
    # Python finds a project in this folder and would call it a package of that name.
    if name and os.path.lexists(folder):
        report.error(f"{folder} is there already: give another name, or remove it")
        return 2
    if why := _why_invalid(name):
        report.error(f"{name!r} cannot be the name of a project: {why}")
        return 2
    if not folder.absolute().parent.is_dir():
        report.error(f"{folder.parent} is no folder: make it first")
        return 2
    written = write_project(folder, name)
    for path in written:
        report.info(f"  wrote {path}")
    report.result(f"{folder}: next, `cd {folder} && pip install -e '.[test]' && pytest`")
    return 0


def write_project(folder: Path, name: str) -> list[Path]:
    """Write all files of the project into `folder`, which appears with all of them or not at all."""
    version = ".".join(physkit.__version__.split(".")[:2])
    templates = resources.files("physkit.cli.new") / "templates"
    temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder.absolute().parent))
    written = []
    try:
        for path, template in _FILES.items():
            text = (templates / template).read_text(encoding="utf-8")
            target = Path(path.replace("PROJECT", name))
            (temporary / target).parent.mkdir(exist_ok=True)
            filled = text.replace("PROJECT", name).replace("VERSION", version)
            (temporary / target).write_text(filled, encoding="utf-8")
            written.append(folder / target)
        (temporary / "job.sh").chmod(0o755)
        temporary.chmod(0o777 & ~_umask())  # temporary folders are for their owner only
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return written


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _why_invalid(name: str) -> str:
    """Why this cannot be the name of a package; "" where it can."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        hint = f", such as {plain}" if re.fullmatch(r"[a-z][a-z0-9_]*", plain) else ""
        return f"it is imported, so it is lower-case letters, digits and underscores{hint}"
    if keyword.iskeyword(name):
        return "it is a word of Python"
    if name in ("case", "fit", "sweep", "tests"):
        return "a file of the project has it"
    if importlib.util.find_spec(name) is not None:
        return "there is a Python package of that name, which it would hide"
    return ""
