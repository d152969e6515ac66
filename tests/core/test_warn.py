"""Warnings point at the user's line, however deep below it they arise."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import physkit as pk
from physkit.core import warn
from tests.snippets import ROOT

SCRIPT = """\
import physkit as pk
for _ in range(3):
    pk.HarmonicBonds([[0, 1], [1, 0]], stiffness=1.0, length=1.0)
"""


def _run(*words, text=""):
    """What a Python of its own prints of errors."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, *words]
    done = subprocess.run(
        words, input=text, env=settings, capture_output=True, text=True, timeout=120
    )
    return done.stderr


def _told(printed):
    """The warnings of physkit; JAX may say something of its devices before."""
    return [line for line in printed.splitlines() if "PhyskitWarning" in line]


def test_a_script_is_told_of_its_line_and_a_loop_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    printed = _run(script)
    (line,) = _told(printed)
    assert line.startswith(f"{script}:3: PhyskitWarning: 1 of 1 bonds are given more than once")
    assert printed.endswith(SCRIPT.splitlines()[-1].strip() + "\n")


@pytest.mark.parametrize(
    ("words", "text", "place"), [(["-"], SCRIPT, "<stdin>:3"), (["-c", SCRIPT], "", "<string>:3")]
)
def test_what_python_reads_from_its_input_or_the_command_line_has_lines(words, text, place):
    (line,) = _told(_run(*words, text=text))
    assert line.startswith(f"{place}: PhyskitWarning: 1 of 1 bonds")


def test_through_traces_it_is_the_innermost_line_of_users():
    line = sys._getframe().f_lineno + 3

    def rate(x):
        warn("within a program")
        return -x

    with pytest.warns(pk.errors.PhyskitWarning, match="within") as seen:
        jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda _, y: rate(y), x))(jnp.ones(2))
    assert {(w.filename, w.lineno) for w in seen} == {(__file__, line)}


def test_without_a_line_of_users_it_warns_all_the_same(monkeypatch):
    monkeypatch.setattr("physkit.core.calls._warn.is_users_frame", lambda frame: False)
    with pytest.warns(pk.errors.PhyskitWarning, match="nobody"):
        warn("nobody")
