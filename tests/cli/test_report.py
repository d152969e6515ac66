"""`physkit report`: one file of HTML that loads nothing, with what the run was, and that a browser shows."""

import dataclasses
import json
import re
import shutil
import subprocess

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

import physkit as pk
from physkit.cli import main
from physkit.cli.pages._report_pictures import draw_picture
from physkit.cli.pages._run_report import _ends_and_mean
from physkit.cli.pages._sweep_report import _draws_result, _state
from physkit.cli.verbs._animate import FrameDrawing
from physkit.core import DamagedFileError
from physkit.fields import Field
from physkit.fit import GradientAudit
from physkit.fit.audit._verdicts import AuditRow
from physkit.geometry import Box, Grid
from tests.cli.test_files import case, check_refused, done  # noqa: F401  fixtures
from tests.html.test_html import checked

SWEEP = """
import physkit as pk


def case():
    simulation, state = pk.systems.double_well()
    record = [pk.Every(10, x=lambda now: now.state.position[0, 0])]
    simulation = pk.Simulation(simulation.integrator, dt=simulation.dt, observers=record)
    over = pk.SweepAxis(lambda m: pk.find(m, pk.Brownian).temperature, [0.1, 0.4], name="<kT>")
    return pk.Sweep((simulation, state), 20, over=over, replicas=2, key=7)
"""


@pytest.fixture(scope="module")
def page(done, tmp_path_factory):  # noqa: F811
    path = tmp_path_factory.mktemp("report") / "r.html"
    assert main(["report", done, "--to", str(path), "--frames", "2", "--quiet"]) == 0
    return path


def test_a_report_of_a_run(page, case, done, capsys, tmp_path):  # noqa: F811
    text = page.read_text()
    found = checked(text)
    for what in (
        "Run r",
        "healthy",
        "step 10 of 10, finished",
        "float64",
        "energy",
        "BAOAB",
        "0.01",
    ):
        assert what in found.text, what
    assert "def burst(t, particles, args):" in found.text  # the case as it was run
    # Curves of energy and film and frames of what moves, all within the file.
    assert found.count["img"] + found.count.get("video", 0) >= 5
    assert not re.search(r'(src|href)="(?!data:|#)', text)
    energies = re.findall(r"<td>energy</td><td>6</td><td>([^<]*)</td>", text)
    assert len(energies) == 1
    assert float(energies[0]) > 0  # the first kinetic energy
    check_refused(capsys, ["report", done, "--to", str(page)], "there already")
    check_refused(capsys, ["report", done, "--to", str(tmp_path / "a.pdf")], "ends in .html")
    check_refused(capsys, ["report", str(tmp_path / "nothing")], "not there")


def test_hostile_texts_in_a_folder_do_nothing(done, tmp_path):  # noqa: F811
    folder = tmp_path / "<b>r"
    shutil.copytree(done, folder)
    request = json.loads((folder / "case.json").read_text())
    request["case"], request["values"] = "<script>alert(1)</script>", ["<img src=x>"]
    (folder / "case.json").write_text(json.dumps(request))
    crash = {"error": "<script>", "message": "<i>", "step": 1, "steps": 2, "checkpoint": "c"}
    (folder / "crash.json").write_text(json.dumps(crash))
    path = tmp_path / "r.html"
    assert main(["report", str(folder), "--to", str(path), "--frames", "0", "--quiet"]) == 1
    found = checked(path.read_text())
    assert "NOT healthy" in found.text
    assert "not there any more" in found.text


def test_a_report_of_a_sweep(tmp_path):
    sweep = tmp_path / "sweep.py"
    sweep.write_text(SWEEP)
    to = str(tmp_path / "s")
    assert main(["sweep", "run", str(sweep), "--to", to, "--chunk-size", "4", "--quiet"]) == 0
    path = tmp_path / "s.html"
    assert main(["report", to, "--to", str(path), "--quiet"]) == 0
    found = checked(path.read_text())
    for what in (
        "Sweep s",
        "4 of 4 members",
        "x: quantiles of 4 members",
        "<kT>",
        "last x",
        "with which numbers",
        "Brownian",
    ):
        assert what in found.text, what
    assert found.count["img"] == 2


def test_names_in_pictures_of_reports_need_be_no_formulas():
    for across in ({"US$ $^x": np.arange(3.0)}, {"$$": np.arange(3.0), "b$ $^": np.ones(3)}):
        draw = _draws_result("last $^ $", np.arange(3.0), across)
        assert "<img" in draw_picture(draw, "results")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, 3.0], ("2", "1", "3", "2", "2", "1")),
        ([1.0, 3.0, np.nan], ("3, 1 of them not finite", "1", "nan", "nan", "2", "1")),
        ([np.inf, np.inf], ("2, 2 of them not finite", "inf", "inf", "nan", "nan", "nan")),
    ],
)
def test_first_and_last_numbers_are_those_recorded(values, said):
    assert _ends_and_mean(np.asarray(values)) == said


def test_a_report_of_a_sweep_says_what_is_missing_and_what_failed():
    assert _state(0, 0) == "complete"
    assert _state(3, 0) == "NOT complete: 3 members missing"
    assert _state(0, 2) == "complete; 2 members FAILED"
    assert _state(3, 2) == "NOT complete: 3 members missing; 2 members FAILED"


@pytest.mark.parametrize("is_grid", [True, False])
def test_members_beside_a_grid_are_dots(is_grid):
    x, y = np.meshgrid(np.arange(4.0), np.arange(3.0)) if is_grid else np.random.rand(2, 12)
    ax = plt.figure().add_subplot()
    _draws_result("E", np.arange(12.0), {"x": x.ravel(), "y": y.ravel()})(ax)
    assert isinstance(ax.collections[0], QuadMesh) == is_grid
    np.testing.assert_array_equal(np.sort(ax.collections[0].get_array().ravel()), np.arange(12.0))
    plt.close("all")


@pytest.fixture(scope="module")
def line():
    """The fit of a straight line through points that lie 0.1 beside it in turns."""
    x = np.arange(6.0)
    y = 2 + 3 * x + 0.1 * (-1.0) ** np.arange(6)

    def residuals(m):
        return {"y": (m["offset"] + m["slope"] * x - y) / 0.1}

    where = {"offset": lambda m: m["offset"], "slope": lambda m: m["slope"]}
    model = {"offset": jnp.asarray(1.0), "slope": jnp.asarray(1.0)}
    return pk.fit(residuals, model, where=where, progress=False)


def test_a_fit_is_read_as_it_was_saved(line, tmp_path):
    line.save(tmp_path)
    found = pk.Fit.load(tmp_path)
    assert repr(found) == repr(line)
    assert found.model is None
    for field in dataclasses.fields(line):
        if field.name not in ("model", "residuals", "residuals_before", "spectrum"):
            np.testing.assert_equal(getattr(found, field.name), getattr(line, field.name))
    np.testing.assert_array_equal(found.residuals["['y']"], line.residuals["y"])
    np.testing.assert_array_equal(found.spectrum.directions, line.spectrum.directions)
    path = tmp_path / "fit.nc"
    path.write_bytes(path.read_bytes().replace(b'"converged"', b'"CONVERGED"'))
    with pytest.raises(DamagedFileError):
        pk.Fit.load(tmp_path)


def test_a_report_of_a_fit_with_its_audit(line, tmp_path, capsys):
    folder, path = tmp_path / "line", tmp_path / "line.html"
    line.save(folder)
    audit = GradientAudit((AuditRow("<stiffness>", (2,), "right", order=2.0),), 4, "float64")
    audit.save(folder)
    assert repr(GradientAudit.load(folder)) == repr(audit)
    assert main(["report", str(folder), "--to", str(path), "--quiet"]) == 0
    found = checked(path.read_text())
    for what in ("Fit line", "LevenbergMarquardt", "slope", "converged", "<stiffness>", "order"):
        assert what in found.text, what
    # The descent, a corner plot, correlations, Fisher's spectrum and residuals (too few for quantiles).
    assert found.count["img"] == 5
    wrong = dataclasses.replace(audit, rows=(AuditRow("x", (), "WRONG"),))
    wrong.save(folder)
    assert main(["report", str(folder), "--to", str(path), "--force", "--quiet"]) == 1
    assert "NOT all derivatives are right" in checked(path.read_text()).text


def test_limits_of_a_film_are_of_what_it_draws(tmp_path):
    for shape in ((6, 4), (6,)):
        grid = Grid(Box([2.0, 1.0][: len(shape)]), shape)
        # Two species, of which the first is drawn.
        start = Field(jnp.stack([jnp.full(shape, 1.0).at[0].set(1.2), jnp.full(shape, 90.0)]), grid)
        growth = pk.Function(lambda t, u: u.replace(data=u.data))
        record = pk.Every(1, u=pk.FieldValues())
        to = tmp_path / str(len(shape))
        pk.run(pk.Simulation(pk.RK4(growth), 0.1, record), start, 10, to=to, progress=False)
        series = pk.open(to)["u"]
        film = FrameDrawing(series, list(range(11)))
        ax = Figure().add_subplot()
        film(10, ax)
        if len(shape) == 2:
            low, high = ax.images[0].get_clim()
            assert 1.0 < low < high < 1.2 * np.e
        else:  # the curve is not cut off
            low, high = ax.get_ylim()
            assert low < 1.0
            assert high > 1.2 * np.e


def test_a_browser_shows_it(page, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium")
    picture = tmp_path / "page.png"
    subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,1600",
         f"--user-data-dir={tmp_path}/profile", f"--screenshot={picture}", page.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    from PIL import Image

    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("L"))
    # Text at the top, and pictures below: neither blank nor an error page.
    assert pixels.shape == (1600, 1000)
    assert pixels[:400].std() > 5
    assert pixels[500:].std() > 5
