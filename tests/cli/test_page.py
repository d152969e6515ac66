"""The case and the commands of docs/command-line.md work, one after the other."""

import re
import shlex

import pytest

from physkit.cli import main
from tests.snippets import ROOT

PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


def commands():
    """(words, expected exit status) of every `$ physkit …` line."""
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        lines = block.splitlines()
        for k, line in enumerate(lines):
            if line.startswith("$ "):
                after = lines[k + 1] if k + 1 < len(lines) else ""
                status = re.match(r"exit status (\d+)", after)
                yield shlex.split(line[2:])[1:], int(status[1]) if status else 0


@pytest.mark.slow
def test_commands_of_the_documentation_work(tmp_path, monkeypatch, capsys):
    case, sweep = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[:2]
    (tmp_path / "case.py").write_text(case)
    (tmp_path / "sweep.py").write_text(f"import jax\nimport physkit as pk\n\n{sweep}")
    monkeypatch.chdir(tmp_path)
    done = []
    for words, status in commands():
        assert main(words) == status, (words, capsys.readouterr())
        done.append(words[0])
    assert set(done) == {
        "check", "run", "resume", "info", "plot", "animate", "export", "diagnose", "doctor", "validate",
        "report", "sweep", "new",
    }  # fmt: skip
    written = {p.name for p in tmp_path.iterdir()}
    assert {"melt", "melt.png", "energies.png", "melt.gif", "melt.pvd", "everything.npz"} <= written
    said = capsys.readouterr().out
    for words in (
        "speed",
        "stopped" if "stopped" in said else "finished",
        "is good, step",
        "all within",
    ):
        assert words in said


def test_every_verb_has_a_heading_on_the_page():
    from physkit.cli._main import _VERBS

    headings = " ".join(re.findall(r"^## (.*)$", PAGE, re.MULTILINE))
    assert not [verb for verb in _VERBS if verb not in headings]
