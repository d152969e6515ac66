"""What notebooks show: values, pictures and nothing that a hostile name could do, in milliseconds."""

import base64
import dataclasses
import io
import re
import time
from html.parser import HTMLParser

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit import html
from physkit.fit import GradientAudit
from physkit.fit.audit._verdicts import AuditRow

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\"'&"
VOID = {"img", "meta", "path", "rect", "br"}


class Checked(HTMLParser):
    """Parses HTML; every element that begins must end, and none may be a script or load anything."""

    def __init__(self):
        super().__init__()
        self.open, self.count, self.text = [], {}, ""

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "iframe", "object", "link")
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("src", "href"):
                assert value.startswith(("data:", "#"))
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data


def checked(text):
    parser = Checked()
    parser.feed(text)
    parser.close()
    assert not parser.open
    return parser


def test_a_script_or_an_open_element_is_found():
    for bad in ("<script></script>", "<div>", '<img src="http://x/y.png">', '<p onclick="x">a</p>'):
        with pytest.raises(AssertionError):
            checked(bad)


def test_particles_show_values_and_a_picture():
    x = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]])
    atoms = pk.Particles(x, mass=2.5, space=pk.Box([4.0, 4.0]), species=[0, 1, 1])
    found = checked(atoms._repr_html_())
    assert found.count["svg"] == 1
    assert found.count["details"] >= 2
    assert "[2.5, 2.5, 2.5]" in found.text
    assert "[4., 4.]" in found.text
    picture = atoms._html_picture_()
    # One point of species 0 and two of species 1, in the colors of the palette.
    dots = re.findall(r'<path d="([^"]*)" stroke="([^"]*)"', picture)
    assert [(d.count("M"), color) for d, color in dots] == [
        (1, html._pictures.COLORS[0]),
        (2, html._pictures.COLORS[1]),
    ]


def test_a_field_is_an_image_of_its_values():
    from PIL import Image

    grid = pk.Grid(pk.Box([1.0, 1.0]), (4, 2))
    values = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, np.nan]])
    found = pk.Field(jnp.asarray(values), grid)._repr_html_()
    checked(found)
    png = base64.b64decode(re.search(r"data:image/png;base64,([^\"]*)", found)[1])
    picture = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
    assert picture.shape == (2, 4, 4)  # x to the right, y upwards
    assert picture[0, 3, 3] == 0  # not finite: transparent
    assert tuple(picture[1, 0, :3]) == (0x44, 0x01, 0x54)  # viridis begins
    assert tuple(picture[1, 3, :3]) == (0xFD, 0xE7, 0x25)  # and ends
    complex_field = pk.Field(jnp.ones((4, 2), complex), grid)
    assert "|z| = 1. everywhere" in checked(complex_field._repr_html_()).text


def test_values_inside_of_a_trace_are_left_out():
    seen = []

    @jax.jit
    def f(x):
        atoms = pk.Particles(x)
        seen.append(atoms._repr_html_())
        return atoms.position

    f(jnp.ones((3, 2)))
    assert "float64[3 2]" in checked(seen[0]).text
    gone = jnp.ones(3)
    gone.delete()
    assert html.describe_values(gone) == ""
    assert html.describe_values(jax.random.key(0)) == ""


def test_hostile_names_are_text():
    @dataclasses.dataclass
    class Thing:
        a: dict

        def _html_picture_(self):
            raise ValueError("no picture")

    class Bad:
        def __repr__(self):
            raise RuntimeError

    for made in (
        html.render_tree({HOSTILE: {HOSTILE: 1.0}, "b": HOSTILE}),
        html.render_tree(Thing({HOSTILE: Bad()}), HOSTILE),
        html.fragment(html.series_table({HOSTILE: np.arange(5.0), "x": HOSTILE})),
        html.page(HOSTILE, html.facts({HOSTILE: HOSTILE})),
        html.image(np.eye(3), caption=HOSTILE),
        html.curve(np.arange(3), np.arange(3.0), caption=HOSTILE),
        GradientAudit((AuditRow(HOSTILE, (), "WRONG", HOSTILE),), 3, "float64")._repr_html_(),
    ):
        checked(made)
        assert "\x1b" not in made
        assert "\u202e" not in made
    assert "Bad" in html.render_tree(Thing({"k": Bad()}))


def test_pictures_of_odd_numbers():
    for y in ([1.0, 1.0], [np.nan, np.nan], [0.0, np.inf], [1.0], [], [1.0, np.nan, 2.0, 3.0]):
        checked(html.curve(np.arange(len(y)), np.asarray(y)))
    # A number that is missing breaks the line.
    assert html.curve(np.arange(5), np.array([0, 1, np.nan, 1, 2.0])).count("M") == 2
    for x in (np.zeros((0, 2)), np.zeros((1, 3)), np.full((2, 2), np.nan), np.ones((4, 1)) * 1e30):
        checked(html.points(x))
    for shape in ((5,), (3, 4), (1, 300), (4, 4, 4), (2, 2, 2, 2)):
        checked(html.field_picture(np.ones(shape)))


def test_large_and_deep_things_take_milliseconds_and_little_space():
    rng = np.random.default_rng(0)
    many = pk.Particles(jnp.asarray(rng.normal(size=(1_000_000, 3)).astype(np.float32)))
    grid = pk.Grid(pk.Box([1.0, 1.0, 1.0]), (128, 128, 128))
    deep = {"a": 1}
    for _ in range(50):
        deep = {"a": deep, "b": [deep, *range(300)]}
    field = pk.Field(jnp.zeros((128, 128, 128), jnp.float32), grid)
    for thing in (many, field, deep):
        begin = time.process_time()
        made = html.render_tree(thing)
        # 50 ms is what a reader does not notice; a crowded machine takes a few times as long.
        assert time.process_time() - begin < 0.25
        assert len(checked(made).text) < 40_000
        assert len(made) < 100_000
    values = np.broadcast_to(np.float32(3), (10**6, 10**6))  # 4 TB, if anybody copied it
    assert html.describe_values(values) == "3. everywhere"


def test_a_module_of_networks_and_functions():
    net = pk.Network(eqx.nn.MLP(2, 2, 4, 1, key=jax.random.key(0)))
    text = checked(net._repr_html_()).text
    assert "MLP" in text
    assert "float64[4 2]" in text


def test_a_run_a_result_and_a_recording(tmp_path):
    sim, state = pk.systems.kepler()
    sim = pk.Simulation(sim.integrator, dt=0.01, observers=[pk.Every(5, energy=pk.TotalEnergy())])
    run = pk.run(sim, state, 20, progress=False)
    found = checked(run._repr_html_())
    assert "Run of 20 steps to step 20" in found.text
    assert found.count["svg"] >= 1
    assert f"{float(run['energy'][-1]):.6g}"[:6] in found.text
    result = pk.simulate(sim, state, 5)
    assert "no faults" in checked(result._repr_html_()).text
    faulty = eqx.tree_at(lambda r: r.health.bits, result, jnp.asarray(1, jnp.int32))
    assert "no faults" not in checked(faulty._repr_html_()).text
    to = pk.run(sim, state, 20, to=tmp_path / "r", progress=False)
    assert str(tmp_path) in checked(to._repr_html_()).text
    assert "energy" in checked(pk.open(tmp_path / "r")._repr_html_()).text
    assert "dt = 0.01" in checked(sim._repr_html_()).text


def test_a_sweep_an_ensemble_and_a_fit():
    sim, state = pk.systems.kepler()
    sim = pk.Simulation(sim.integrator, dt=0.01, observers=[pk.Every(5, energy=pk.TotalEnergy())])
    axis = pk.SweepAxis(lambda model: model[0].dt, [0.01, 0.02], name="<dt>")
    sweep = pk.Sweep((sim, state), 5, over=axis)
    assert "2 members of 5 steps" in checked(sweep._repr_html_()).text
    ensemble = pk.sweep(sweep, progress=False)
    assert "<dt>" in checked(ensemble._repr_html_()).text
    x = jnp.arange(6.0)
    data = 2 * x + 1 + 0.1 * jnp.cos(5 * x)
    model = {"slope": jnp.array(1.0), "offset": jnp.array(0.0)}
    found = pk.fit(
        lambda m: m["slope"] * x + m["offset"] - data,
        model,
        where={"slope": lambda m: m["slope"], "offset": lambda m: m["offset"]},
        progress=False,
    )
    text = checked(found._repr_html_()).text
    assert "converged" in text
    assert "correlations" in text
    assert f"{float(found.values['slope']):.2f}" in text
    lost = dataclasses.replace(found, converged=False, reason=HOSTILE)
    assert "NOT CONVERGED" in checked(lost._repr_html_()).text
