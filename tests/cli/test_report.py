"""`physkit report`: one file of HTML that loads nothing, with what the run was, and that a browser shows."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from physkit.cli import main
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
    for what in ("Sweep s", "4 of 4 members", "x: quantiles of 4 members", "<kT>", "last x"):
        assert what in found.text, what
    assert found.count["img"] == 2


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
