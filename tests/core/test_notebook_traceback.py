"""An error in a notebook: the user's lines, ours folded, and IPython's own traceback where it is asked for."""

import re
import types

import numpy as np
import pytest

import physkit as pk
from physkit.core import ParameterError
from physkit.core.calls import _notebook_traceback


def rendered(error):
    return re.sub(r"\x1b\[\d+m", "", "\n".join(error._render_traceback_()))


def test_users_lines_are_shown_and_ours_folded():
    def start():
        return pk.Particles(np.zeros((3, 4)))

    with pytest.raises(pk.PhyskitError) as caught:
        start()
    text = rendered(caught.value)
    assert "return pk.Particles(np.zeros((3, 4)))" in text
    assert text.index("in start()") < text.index("ShapeError: position must be")
    assert re.search(r"\d+ frames of (physkit|equinox|jaxtyping)", text)
    assert "_particles.py" not in text
    assert text.count("ShapeError") == 1


def test_notes_causes_and_functions_that_we_call():
    error = None
    try:
        try:
            {}["key"]
        except KeyError as cause:
            raise ParameterError("first line\nsecond") from cause
    except ParameterError as raised:
        raised.add_note("a note")
        error = raised
    text = rendered(error)
    assert "caused by KeyError: 'key'" in text
    assert text.endswith("a note")
    assert "second" in text
    # Never raised: there are no lines to show.
    assert rendered(ParameterError("x")) == "\nParameterError: x"


def test_verbose_mode_is_ipythons(monkeypatch):
    asked = []

    class Formatter:
        mode = "Verbose"

        def structured_traceback(self, kind, error, trace):
            asked.append((kind, error, trace))
            return ["all of it"]

    shell = types.SimpleNamespace(InteractiveTB=Formatter(), compile=None)
    monkeypatch.setattr(_notebook_traceback, "_shell", lambda: shell)
    with pytest.raises(ParameterError) as caught:
        raise ParameterError("x")
    assert caught.value._render_traceback_() == ["all of it"]
    Formatter.mode = "Context"
    assert "raise ParameterError" in rendered(caught.value)
    assert len(asked) == 1
