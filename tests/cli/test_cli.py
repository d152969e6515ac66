"""The command line: words, exit codes, tables."""

import argparse
import json
import os
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import physkit
from physkit.cli import Report, main
from physkit.cli._main import _VERBS
from physkit.cli.common import _report
from physkit.cli.common._csv import write_table
from physkit.cli.common._load_case import _settings
from physkit.cli.demo import _demo
from physkit.cli.demo._demo import CHAPTERS, Chapter
from physkit.cli.verbs import _doctor
from physkit.core import CapacityError, DiskFullError, FileError, ParameterError, PhyskitWarning
from tests.snippets import ROOT


def test_version_and_help(capsys):
    for words in (["--version"], ["--help"], ["demo", "--help"], ["validate", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 0
    assert "physkit 0." in capsys.readouterr().out


def test_settings_are_of_the_type_that_they_read_as():
    def case(periodic: bool, name: str, n=3, closed=False, size=1.0):
        del periodic, name, n, closed, size

    given = ["periodic=false", "name=a=b", "n=4", "closed=True", "size=2"]
    found = _settings(case, given)
    assert found == {"periodic": False, "name": "a=b", "n": 4, "closed": True, "size": 2.0}
    assert _settings(case, ["periodic=TRUE", "name=7"]) == {"periodic": True, "name": 7}
    with pytest.raises(ValueError, match="true or false, like False"):
        _settings(case, ["periodic=true", "name=x", "closed=no"])


def test_lists_and_tuples_are_settings():
    def case(shape=(8, 8), axes=[0], n=1, name="a", free=None):  # noqa: B006
        pass

    given = ["shape=64,32", "axes=[1, 2]", "n=3", "name=64,32", "free=1e-3"]
    expected = {"shape": (64, 32), "axes": [1, 2], "n": 3, "name": "64,32", "free": 1e-3}
    assert _settings(case, given) == expected
    for wrong in ("shape=64x32", "shape=64", "axes="):
        with pytest.raises(ValueError, match=r"takes a list, like [(\[]"):
            _settings(case, [wrong])


@pytest.mark.parametrize("verb", _VERBS)
def test_every_verb_explains_itself(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert "--quiet" in said
    assert f"examples:\n  physkit {verb}" in said
    first = _VERBS[verb].__doc__.splitlines()[0]
    assert first.endswith(".")
    assert len(first) < 70


def run_python(*words, **environment):
    """Another Python process: how it ended, and its CPU seconds."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    before = os.times()
    done = subprocess.run(
        [sys.executable, *words], env=settings, capture_output=True, text=True, timeout=120
    )
    after = os.times()
    used = after.children_user + after.children_system
    return done, used - before.children_user - before.children_system


def test_help_does_not_wait_for_jax():
    """Under 0.2 s; of CPU, so that a busy machine does not matter."""
    script = (
        "import sys; from physkit.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    )
    script += "\nprint([m for m in ('jax', 'numpy', 'h5py', 'matplotlib') if m in sys.modules])"
    done, _ = run_python("-c", script)
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr
    assert min(run_python("-m", "physkit", "--help")[1] for _ in range(3)) < 0.2


def test_tab_completion_asks_argcomplete(tmp_path):
    """argcomplete is asked, where it is installed; nothing happens where it is not."""
    (tmp_path / "argcomplete.py").write_text(
        "def autocomplete(parser):\n    print('asked', parser.prog)\n"
    )
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    done, _ = run_python("-m", "physkit", "--version", PYTHONPATH=path, _ARGCOMPLETE="1")
    assert "asked physkit" in done.stdout
    done, _ = run_python("-m", "physkit", "--version", PYTHONPATH=path)
    assert "asked" not in done.stdout


def test_physkit_errors_are_one_line_and_an_exit_status(monkeypatch, capsys):
    for error, status in (
        (FileError("a\nb"), 2),
        (DiskFullError("full"), 1),
        (ParameterError("wrong"), 2),
        (CapacityError("much"), 1),
        (FileNotFoundError(2, "No such file", "x"), 2),
        (KeyboardInterrupt(), 130),
    ):

        def raises(args, report, error=error):
            raise error

        monkeypatch.setattr(_VERBS["info"], "run", raises)
        assert main(["info"]) == status
        printed = capsys.readouterr()
        assert printed.err.startswith("physkit: ")
        assert printed.err.count("\n") == 1
    _report.Report().error("another run:\n  dt  is 0.1\n  mass\tis 2")
    assert capsys.readouterr().err == "physkit: another run:\n  dt is 0.1\n  mass is 2\n"
    monkeypatch.setattr(_VERBS["info"], "run", lambda args, report: 1 // 0)
    with pytest.raises(ZeroDivisionError):  # a bug of ours is not hidden
        main(["info"])


@pytest.mark.parametrize("words", [[], ["fly"], ["demo", "--wrong"]])
def test_wrong_arguments_exit_with_2(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert "usage: physkit" in capsys.readouterr().err


def test_info_on_the_installation(capsys):
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    for word in ("physkit", "jaxlib", "devices", "float64"):
        assert word in out

    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["precision"].startswith("float64")


def test_doctor_finds_what_to_mend(capsys, monkeypatch):
    for name in ("JAX_DISABLE_JIT", "JAX_DEBUG_NANS"):
        monkeypatch.delenv(name, raising=False)
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"]
    verdicts = {one["what"]: one["verdict"] for one in found["findings"]}
    assert verdicts["simulating"] == verdicts["devices"] == verdicts["precision"] == "ok"
    monkeypatch.setenv("JAX_DISABLE_JIT", "1")
    monkeypatch.setattr(_doctor, "_check_simulation", lambda: [("MEND", "simulating", "fails")])
    monkeypatch.setattr(_doctor, "_version", lambda name: None if name == "optax" else "0.0.1")
    assert main(["doctor", "--quiet"]) == 1
    out = capsys.readouterr().out
    for words in ("is set: nothing is compiled", "simulating", "pip install -U 'jax>=", "to mend"):
        assert words in out
    assert "\nok " not in out


def test_doctor_names_what_lengthens_compiling_for_gpus(monkeypatch):
    gpu, cpu = (types.SimpleNamespace(platform=platform) for platform in ("gpu", "cpu"))
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert not list(_doctor._check_autotuning([cpu]))
    ((verdict, _, text),) = _doctor._check_autotuning([gpu])
    flag = "--xla_gpu_experimental_enable_fusion_autotuner=false"
    assert verdict == "note"
    assert text.endswith(f"without by XLA_FLAGS={flag}")
    monkeypatch.setenv("XLA_FLAGS", flag)
    assert not list(_doctor._check_autotuning([gpu]))


def test_validate_prints_computed_beside_published(capsys):
    assert main(["validate", "verlet-order"]) == 0
    out = capsys.readouterr().out
    assert "ok" in out
    assert "verlet-order: slope" in out
    assert "all within tolerance" in out
    assert main(["validate", "verlet-order", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"]
    assert found["numbers"][0]["published"] == 2
    assert main(["validate", "--list"]) == 0
    assert main(["validate", "nothing"]) == 2
    assert "available: ['" in capsys.readouterr().err


def test_validate_says_when_a_number_is_off(capsys, monkeypatch):
    from physkit.testing import validation
    from physkit.testing.validation import Case, Published

    off = Case("off", lambda: {"x": 1.1}, (Published("x", 1.0, 0.05),), "nobody 1900")
    files = Case(
        "files", lambda: {"x": 1.0}, (Published("x", 1.0, 0.05),), "—", needs_reference_data=True
    )
    monkeypatch.setattr(validation, "cases", lambda: (off, files))
    monkeypatch.delenv("PHYSKIT_REFERENCE_DATA", raising=False)
    assert main(["validate"]) == 1
    out = capsys.readouterr().out
    assert "OFF" in out
    assert "skipped" in out
    assert "set PHYSKIT_REFERENCE_DATA" in out


def _chapter(run):
    module = types.ModuleType("chapter")
    module.run = run
    return module


def _demo_run(monkeypatch, tmp_path, *runs, names=()):
    chapters = []
    for k, run in enumerate(runs):
        monkeypatch.setitem(sys.modules, f"chapter_{k}", _chapter(run))
        chapters.append(Chapter(f"c{k}", f"chapter_{k}", "A chapter", "what it does"))
    args = argparse.Namespace(chapters=list(names), to=tmp_path / "out", quick=True)
    return _demo.run(args, Report(), tuple(chapters))


def _chapter_that_writes(folder, quick, report):
    assert quick
    (folder / "data.csv").write_text("1,2\n")
    report.file(folder / "data.csv")
    report.table(("what", "found"), [("x", 1.25)])


def _chapter_that_fails(folder, quick, report):
    raise ArithmeticError("no digits left")


def test_demo_runs_chapters_and_survives_a_failing_one(monkeypatch, tmp_path, capsys):
    assert _demo_run(monkeypatch, tmp_path, _chapter_that_fails, _chapter_that_writes) == 1
    printed = capsys.readouterr()
    assert "no digits left" in printed.err
    assert "4 B" in printed.out
    assert (tmp_path / "out/c1/data.csv").exists()


def test_demo_runs_chapters_by_name(monkeypatch, tmp_path, capsys):
    assert (
        _demo_run(monkeypatch, tmp_path, _chapter_that_fails, _chapter_that_writes, names=["c1"])
        == 0
    )
    assert (
        _demo_run(monkeypatch, tmp_path, _chapter_that_fails, _chapter_that_writes, names=["c7"])
        == 2
    )
    assert "available: ['c0', 'c1']" in capsys.readouterr().err


def test_a_chapter_is_announced_before_its_module_is_imported(tmp_path, capsys):
    chapter = Chapter("c", "no_such_module", "A chapter", "what it does")
    args = argparse.Namespace(chapters=[], to=tmp_path, quick=True)
    assert _demo.run(args, Report(), (chapter,)) == 1
    assert "A chapter\n─────────\nwhat it does\n" in capsys.readouterr().out
    code = (
        "import sys; from physkit.cli.demo._demo import CHAPTERS, Report\n"
        "for c in CHAPTERS: Report().title(c.title); Report().info(c.about)\n"
        "print([m for m in ('jax', 'numpy') if m in sys.modules])"
    )
    done, _ = run_python("-c", code)
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr


def test_all_chapters_can_be_imported():
    from importlib import import_module

    for chapter in CHAPTERS:
        assert callable(import_module(chapter.module).run)


def test_tables_are_aligned():
    text = _report.format_table(("name", "value"), [("a", 1.5), ("long name", 22), ("b", None)])
    assert text.splitlines() == [
        "name       value",
        "─────────  ─────",
        "a            1.5",
        "long name     22",
        "b",
    ]
    shown = _report.format_table(("a", "off"), [("x", "+0.1 %"), ("y", "-12.5 %")]).splitlines()
    assert [line[-1] for line in shown] == ["f", "─", "%", "%"]
    assert len({len(line) for line in shown}) == 1
    with pytest.raises(ValueError, match="2 columns"):
        _report.format_table(("a", "b"), [(1,)])


def test_numbers_in_a_csv_file_have_all_their_digits(tmp_path):
    path = tmp_path / "a.csv"
    columns = {
        "step": np.array([12345678901, 12345678902]),
        "x (Å)": np.array([0.1, 1 / 3]),
        "y": np.array([0.1, 1 / 3], np.float32),
        "z": [3, 4.5],
    }
    assert write_table(path, "steps and places", columns) == path
    assert path.read_bytes().decode().splitlines() == [
        "# steps and places",
        "step,x (Å),y,z",
        "12345678901,0.1,0.1,3.0",
        "12345678902,0.3333333333333333,0.33333334,4.5",
    ]
    before = path.read_bytes()
    with pytest.raises(ValueError, match="shorter"):
        write_table(path, "of unequal length", {"a": [1.0, 2.0], "b": [1.0]})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (2048, "2 KiB"), (3 << 20, "3 MiB"), (5 << 30, "5 GiB")]
)
def test_format_size(count, text):
    assert _report.format_size(count) == text


def test_quiet_prints_results_only(capsys):
    report = Report(quiet=True)
    report.info("doing")
    report.result("found")
    assert capsys.readouterr().out == "found\n"


def test_json_prints_nothing_else(capsys):
    report = Report(json=True)
    report.info("doing")
    report.result("found")
    report.title("title")
    report.table(("a",), [(1,)])
    report.json_result({"x": float("nan"), "y": np.float32(0.5), "z": (1, None), "p": Path("a")})
    assert json.loads(capsys.readouterr().out) == {"x": None, "y": 0.5, "z": [1, None], "p": "a"}
    report.error("bell \a and\nline")
    assert capsys.readouterr().err == "physkit: bell ? and line\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (600.0, "10 min"), (7200.0, "2 h"), (864e3, "10 days")]
)
def test_format_duration(seconds, text):
    assert _report.format_duration(seconds) == text


def test_warnings_of_physkit_are_a_line_like_its_errors(monkeypatch, capsys):
    def warns(args, report):
        warnings.warn_explicit("odd\x1b[2J\n  dt  is 2", PhyskitWarning, "case.py", 3)
        warnings.warn_explicit("within", PhyskitWarning, f"{physkit.__path__[0]}/cli/x.py", 4)
        warnings.warn_explicit("other", UserWarning, "case.py", 5)
        return 0

    monkeypatch.setattr(_VERBS["info"], "run", warns)
    monkeypatch.setattr(sys, "argv", [""])  # as in an interactive session
    before = warnings.formatwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # pytest keeps warnings instead of showing them.
        monkeypatch.setattr(
            warnings, "showwarning", lambda *w: print(warnings.formatwarning(*w[:4]), end="")
        )
        assert main(["info"]) == 0
    assert capsys.readouterr().out == (
        "physkit: warning: odd?[2J\n  dt is 2 (line 3 of case.py)\nphyskit: warning: within\n"
        "case.py:5: UserWarning: other\n"
    )
    assert warnings.formatwarning is before
