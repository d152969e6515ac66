"""The notebooks of examples/ are those of their scripts, run without an error, and show what they should."""

import os
import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NOTEBOOKS = runpy.run_path(str(FOLDER / "build.py"))["notebooks"]()
# What the cells of each show, by the beginning of what is shown.
SHOWN = {
    "first_fit": {"pictures": 1, "html": ("Fit", "converged", "Gradient audit")},
    "first_flow": {"pictures": 2, "html": ("Field", "Run of 600 steps", "enstrophy")},
    "first_simulation": {
        "pictures": 1,
        "html": ("Particles", "Simulation", "Run of 400", "data:image/gif|data:video/mp4"),
    },
    "first_sweep": {"pictures": 1, "html": ("Sweep", "Ensemble", "kT")},
    "network_from_scratch": {"pictures": 1, "html": ()},
    "own_force": {"pictures": 0, "html": ("GeneralizedExponential", "<svg", "Gradient audit")},
}
FAST = "first_sweep"


def test_notebooks_are_those_of_their_scripts():
    assert {path.stem for path in NOTEBOOKS} == set(SHOWN)
    for path, text in NOTEBOOKS.items():
        assert path.read_text() == text, "run: python examples/notebooks/build.py"
        assert len(text) < 8_000


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == FAST else [pytest.mark.slow]) for n in SHOWN]
)
def test_a_notebook_runs(name):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    environment = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"}
    # An error in a cell is raised here.
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(env=environment)
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    data = [o["data"] for o in outputs if "data" in o]
    assert sum("image/png" in d for d in data) == SHOWN[name]["pictures"]
    html = "".join(d.get("text/html", "") for d in data)
    for what in SHOWN[name]["html"]:
        assert re.search(what, html), what
    # Progress is one output of a cell, at its end.
    bars = [d["text/html"] for d in data if "border-radius: 3px" in d.get("text/html", "")]
    assert all("100 %" in bar or "fit" in bar for bar in bars)
    if "pk.run(" in "".join(c.source for c in notebook.cells):
        assert len(bars) == 1
    assert not [o for o in outputs if o.get("name") == "stderr" and "steps" in o["text"]]
