"""In a notebook one bar is replaced again and again, by a few messages."""

import sys
import types

from physkit.simulate import Progress
from physkit.simulate.driver import _notebook_progress


class Display:
    """Stands for IPython's `display`: keeps what is shown."""

    def __init__(self):
        self.shown, self.updates = [], []

    def __call__(self, content, raw, display_id):
        assert raw
        assert display_id is True
        self.shown.append(content)
        return self

    def update(self, content, raw):
        assert raw
        self.updates.append(content)


def in_notebook(monkeypatch, kernel):
    display = Display()
    shell = types.SimpleNamespace(kernel=kernel)
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    module = types.ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return display


def test_one_bar_is_updated_in_place(monkeypatch, capsys):
    display = in_notebook(monkeypatch, object())
    bar = Progress(1000, title="<run>")
    for done in range(1, 1001):
        bar.update(done)
    bar.write_line("step 3: grew <b>")
    bar.close()
    assert len(display.shown) == 1
    last = display.updates[-1]
    assert len(display.updates) < 20
    assert "&lt;run&gt;" in last["text/html"]
    assert "grew &lt;b&gt;" in last["text/html"]
    assert "width: 100.0%" in last["text/html"]
    assert "1000/1000 steps" in last["text/plain"]
    assert capsys.readouterr() == ("", "")
    Progress(10, enabled=False).update(10)
    assert len(display.shown) == 1


def test_elsewhere_nothing_is_displayed(monkeypatch, capsys):
    display = in_notebook(monkeypatch, None)  # IPython in a terminal
    bar = Progress(10)
    bar.update(10)
    bar.close()
    assert not display.shown
    assert "10/10" in capsys.readouterr().err
    monkeypatch.delitem(sys.modules, "IPython")
    assert _notebook_progress.find_notebook_output() is None
