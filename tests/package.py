"""`python -m tests.package`: build the wheel and the sdist, install them, and look whether all is there.

The wheel is built from the sdist, as those do who package physkit for others. It is installed without its
dependencies into a fresh environment, which borrows those of this one; the checks run there, in an empty
folder, so that no file of the repository can stand in for one that is missing.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import physkit

ROOT = Path(__file__).parent.parent

# Run in the fresh environment.
_CHECK = """
import importlib.metadata, importlib.resources, pathlib, sys
import physkit
home = pathlib.Path(physkit.__file__).parent
assert home.is_relative_to(sys.prefix), home
assert importlib.metadata.version("physkit") == physkit.__version__
for name in ("py.typed", "__init__.pyi", "_stubs/forces.pyi", "cli/new/templates/case.py.txt"):
    assert (home / name).is_file(), name
physkit.show_versions()
trap = physkit.Simulation(physkit.VelocityVerlet(physkit.HarmonicTrap(1.0)), dt=0.1)
assert physkit.run(trap, physkit.Particles([[1.0]]), 4, progress=False).steps == 4
"""


def main() -> None:
    """Build, install, check; an `AssertionError` says what is missing."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel, sdist = build(folder / "dist")
        missing = [*missing_in_wheel(wheel), *missing_in_sdist(sdist)]
        assert not missing, f"not packaged: {missing}"
        assert not (wrong := wrong_metadata(wheel)), wrong
        environment = folder / "venv"
        python = install(wheel, environment)
        (folder / "empty").mkdir()
        call(python, "-c", _CHECK, cwd=folder / "empty")
        said = call(python.parent / "physkit", "--version", cwd=folder / "empty")
        assert said == f"physkit {physkit.__version__}\n", said
        call(python.parent / "physkit", "new", "oscillator", cwd=folder / "empty")
        (ROOT / "dist").mkdir(exist_ok=True)
        for built in (wheel, sdist):
            shutil.copy(built, ROOT / "dist")
        print(
            f"{wheel.name} ({wheel.stat().st_size >> 10} KiB) and {sdist.name} are whole, and in dist/"
        )


def build(to: Path) -> tuple[Path, Path]:
    """The wheel and the sdist that it was built from."""
    # Without isolation: the build backend is that of the extra `package`.
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", to, ROOT)
    (wheel,), (sdist,) = to.glob("*.whl"), to.glob("*.tar.gz")
    return wheel, sdist


def tracked(*folders: str) -> set[str]:
    """Paths of files under version control."""
    names = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(names.stdout.splitlines())


def missing_in_wheel(wheel: Path) -> list[str]:
    """Files of the package that the wheel lacks, and what it should not hold."""
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    foreign = {n for n in held if not n.startswith(("physkit/", "physkit-"))}
    return sorted(tracked("physkit") - held) + [
        f"{name} is no part of it" for name in sorted(foreign)
    ]


def missing_in_sdist(sdist: Path) -> list[str]:
    """Files that the sdist lacks, without which the tests and the documentation cannot be made from it."""
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = tracked(
        "physkit", "tests", "docs", "examples", "packaging", "Makefile", "README.md", "CHANGELOG.md",
        "CONTRIBUTING.md", "CITATION.cff", "LICENSE", "paper.md", "paper.bib", "pyproject.toml",
    )  # fmt: skip
    return sorted(wanted - held)


def wrong_metadata(wheel: Path) -> str:
    """What is wrong with the metadata; "" where all is well."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        found = message_from_string(archive.read(name).decode())
    if found["Version"] != physkit.__version__ or found["License-Expression"] != "Apache-2.0":
        return f"version {found['Version']}, license {found['License-Expression']}"
    if "Typing :: Typed" not in found.get_all("Classifier", []):
        return "no classifier says that it is typed"
    if not found["Requires-Python"] or not found["Summary"]:
        return "it does not say what it is, or which Python it needs"
    return "" if "# physkit" in found.get_payload() else "it has no description"


def install(wheel: Path, environment: Path) -> Path:
    """The interpreter of a fresh environment with the wheel, and the dependencies of this one."""
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    call(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel,
    )  # fmt: skip
    site = next(environment.glob("lib/python*/site-packages"))
    # A path in a .pth file adds packages, and not their .pth files, such as that of an editable physkit.
    paths = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (site / "borrowed.pth").write_text("\n".join(paths) + "\n")
    return python


def call(*words: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; an error with all of it where it fails."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(list(map(str, words)), cwd=cwd, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main()
