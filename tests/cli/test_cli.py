"""The command line: words, exit codes, tables."""

import argparse
import sys
import types

import pytest

from physkit.cli import Report, _demo, _report, main
from physkit.cli._demo import CHAPTERS


def test_version_and_help(capsys):
    for words in (["--version"], ["--help"], ["demo", "--help"], ["validate", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 0
    assert "physkit 0." in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["fly"], ["demo", "--wrong"]])
def test_wrong_words(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert "usage: physkit" in capsys.readouterr().err


def test_info(capsys):
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    for word in ("physkit", "jaxlib", "devices", "float64"):
        assert word in out


def test_validate(capsys):
    assert main(["validate", "verlet-order"]) == 0
    out = capsys.readouterr().out
    assert "ok" in out
    assert "verlet-order: slope" in out
    assert "all within tolerance" in out
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
    module.TITLE, module.run = "A chapter", run
    return module


def _demo_run(monkeypatch, tmp_path, *runs, names=()):
    chapters = []
    for k, run in enumerate(runs):
        monkeypatch.setitem(sys.modules, f"chapter_{k}", _chapter(run))
        chapters.append((f"c{k}", f"chapter_{k}"))
    given = argparse.Namespace(chapters=list(names), to=tmp_path / "out", quick=True)
    return _demo.run(given, Report(), tuple(chapters))


def _writes(folder, quick, report):
    assert quick
    (folder / "data.csv").write_text("1,2\n")
    report.wrote(folder / "data.csv")
    report.table(("what", "found"), [("x", 1.25)])


def _fails(folder, quick, report):
    raise ArithmeticError("no digits left")


def test_demo_runs_chapters_and_survives_a_failing_one(monkeypatch, tmp_path, capsys):
    assert _demo_run(monkeypatch, tmp_path, _fails, _writes) == 1
    printed = capsys.readouterr()
    assert "no digits left" in printed.err
    assert "4 B" in printed.out
    assert (tmp_path / "out/c1/data.csv").exists()


def test_demo_chapters_by_name(monkeypatch, tmp_path, capsys):
    assert _demo_run(monkeypatch, tmp_path, _fails, _writes, names=["c1"]) == 0
    assert _demo_run(monkeypatch, tmp_path, _fails, _writes, names=["c7"]) == 2
    assert "available: ['c0', 'c1']" in capsys.readouterr().err


def test_chapters_exist():
    from importlib import import_module

    for _, module in CHAPTERS:
        chapter = import_module(module)
        assert chapter.TITLE
        assert callable(chapter.run)


def test_table():
    text = _report.table(("name", "value"), [("a", 1.5), ("long name", 22), ("b", None)])
    assert text.splitlines() == [
        "name       value",
        "─────────  ─────",
        "a            1.5",
        "long name     22",
        "b",
    ]
    shown = _report.table(("a", "off"), [("x", "+0.1 %"), ("y", "-12.5 %")]).splitlines()
    assert [line[-1] for line in shown] == ["f", "─", "%", "%"]
    assert len({len(line) for line in shown}) == 1
    with pytest.raises(ValueError, match="2 columns"):
        _report.table(("a", "b"), [(1,)])


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (2048, "2 KiB"), (3 << 20, "3 MiB"), (5 << 30, "5 GiB")]
)
def test_size(count, text):
    assert _report.size(count) == text


def test_quiet_leaves_results(capsys):
    report = Report(quiet=True)
    report.say("doing")
    report.result("found")
    assert capsys.readouterr().out == "found\n"
