"""`physkit new`: the project that it writes works, and nothing is ever replaced."""

import os
import stat
import subprocess
import sys
import tomllib

import numpy as np
import pytest

from physkit.cli import main
from physkit.cli.new import _new
from tests.snippets import ROOT


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("new") / "oscillator"
    assert main(["new", str(folder), "--quiet"]) == 0
    return folder


def in_project(project, *words):
    """What `python WORDS` prints in the project's folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), str(ROOT)])}
    # Plugins of these tests are not those of the project's.
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [sys.executable, *words],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_all_files_are_there_and_filled_in(project):
    files = {p.relative_to(project).as_posix() for p in project.rglob("*") if p.is_file()}
    assert files == {name.replace("PROJECT", "oscillator") for name in _new._FILES}
    for name in files:
        text = (project / name).read_text(encoding="utf-8")
        assert "PROJECT" not in text
        assert "VERSION" not in text
        if name.endswith(".py"):
            compile(text, name, "exec")
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    assert settings["project"]["name"] == "oscillator"
    assert settings["project"]["dependencies"] == ["physkit>=0.3"]
    assert (project / "job.sh").stat().st_mode & stat.S_IXUSR
    # No template is left out, and nothing else lies beside the project.
    templates = (ROOT / "physkit/cli/new/templates").iterdir()
    assert {p.name for p in templates} == set(_new._FILES.values())
    assert [p.name for p in project.parent.iterdir()] == ["oscillator"]


def test_its_case_runs_and_is_a_spring_that_stiffens(project, monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(project))
    words = ["run", str(project / "case.py"), "--steps", "20", "--to", str(tmp_path / "out")]
    assert main([*words, "--set", "hardening=0", "--quiet"]) == 0
    assert main(["export", str(tmp_path / "out"), "energy", "--to", str(tmp_path / "e.csv")]) == 0
    energy = np.loadtxt(tmp_path / "e.csv", delimiter=",", skiprows=1)[:, 2]
    np.testing.assert_allclose(energy, 1.5**2 / 2, rtol=1e-3)
    for name in [n for n in sys.modules if n.split(".")[0] == "oscillator"]:
        del sys.modules[name]


@pytest.mark.slow
def test_its_own_tests_and_its_fit_pass(project):
    said = in_project(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "5 passed" in said
    assert "converged" in in_project(project, "fit.py")
    words = ("sweep", "run", "sweep.py", "--to", "members", "--set", "steps=100", "--quiet")
    in_project(project, "-m", "physkit", *words)
    assert (project / "members/sweep.h5").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("My-Project", "such as my_project"),
        ("2d", "it is imported"),
        ("class", "a word of Python"),
        ("sweep", "a file of the project has it"),
        ("numpy", "a Python package of that name"),
        ("json", "a Python package of that name"),
        ("physkit", "a Python package of that name"),
    ],
)
def test_names_that_cannot_be_imported_are_refused(name, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", name]) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_is_replaced(project, tmp_path, capsys, monkeypatch):
    # As where `python -m physkit new` is called beside it: Python can import it.
    monkeypatch.syspath_prepend(project.parent)
    before = {p: p.stat().st_mtime_ns for p in project.rglob("*") if p.is_file()}
    assert main(["new", str(project)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert {p: p.stat().st_mtime_ns for p in before} == before
    (tmp_path / "swing").mkdir()
    assert main(["new", str(tmp_path / "swing")]) == 2
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert main(["new", str(tmp_path / "link")]) == 2
    assert main(["new", str(tmp_path / "gone" / "swing")]) == 2
    assert "make it first" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "swing"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(_new, "_FILES", {**_new._FILES, "last.py": "gone.txt"})
    with pytest.raises(FileNotFoundError):
        _new.write_project(tmp_path / "swing", "swing")
    assert not list(tmp_path.iterdir())
