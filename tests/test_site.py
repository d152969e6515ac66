"""What the site is made of beside its pages: reference, gallery, links, equations."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import pytest

from tests.snippets import GUIDES, ROOT

pytest.importorskip("sphinx", reason="the docs extra is not installed")
sys.path.insert(0, str(ROOT / "docs"))

from _site import (
    docstrings,
    gallery,
    inventories,
    links,
    mathml,
    names,
    parts,
    published,
    reference,
    repository,
    used,
)

from physkit.testing.validation import cases


def test_every_public_name_is_in_the_reference_once_with_a_sentence():
    found = names.entries()
    assert len({entry.path for entry in found}) == len(found) > 800
    assert [entry.path for entry in found if entry.is_own and not entry.about] == []
    pages = reference.pages()
    for entry in found:
        assert sum(f":: {entry.path}\n" in text for text in pages.values()) == 1, entry.path


def test_every_folder_is_in_the_reference():
    folders = {p.parent.name for p in (ROOT / "physkit").glob("*/__init__.py")}
    assert folders - {"cli"} <= {layer.split(".")[0] for layer in names.LAYERS}


@pytest.mark.parametrize(
    ("code", "target"),
    [
        ("pk.Pairwise", "physkit.Pairwise"),
        ("Pairwise", "physkit.Pairwise"),
        ("limiters.VanLeer", "physkit.limiters.VanLeer"),
        ("pk.run(simulation, state, steps)", "physkit.run"),
        ("run", None),
        ("x + 1", None),
        ("pk.nothing", None),
    ],
)
def test_code_in_texts_links_to_what_it_names(code, target):
    assert links.target_of(code) == target


def test_large_pages_of_the_reference_are_tables_by_meaning():
    page = reference.pages()["api/integrators.rst"]
    baths = page.split("Thermostats and barostats around them\n---")[1].split(
        "Runge–Kutta methods\n---"
    )[0]
    assert "`pk.StochasticCellRescaling <" in baths
    assert "`pk.RK4 <" not in baths
    own = [entry for entry in names.entries() if entry.page == "systems"]
    assert reference.pages()["api/systems.rst"].count(":py:obj:") == len(own)


def test_the_reference_leads_back_to_pages_that_use_a_name():
    pages = {
        "gallery/a": "`pk.Pairwise(x)`",
        "recipes/b": "f = pk.Pairwise(1)\npk.nothing",
        "c": "",
    }
    found = used.used_in(pages)
    assert found == {"physkit.Pairwise": ["recipes/b", "gallery/a"]}
    text = "".join(reference.pages(found).values())
    assert ":members:\n\n   *Used in* :doc:`/recipes/b`, :doc:`/gallery/a`." in text
    assert used.sentence([str(k) for k in range(9)]).endswith("and 3 more.")
    # Of the pages that are there.
    own = used.used_in(used.guides(ROOT / "docs"))
    assert own["physkit.StochasticCellRescaling"][0] == "recipes/constant-pressure"


def test_docstrings_become_restructured_text():
    text = "The |x| of `a` and b_ times *two*, **Arguments:**, 2*x.\n\n    F = −∇U\n\n- `key`s: random."
    assert docstrings.to_rst(text) == (
        "The \\|x\\| of ``a`` and b\\_ times *two*, **Arguments:**, 2\\*x.\n\n"
        ".. code-block:: text\n   :class: equation\n\n    F = −∇U\n\n\n- ``key``\\ s: random."
    )


def test_equations_become_mathml():
    assert mathml.to_mathml(r"\nabla \cdot u = 0", as_block=True).startswith("<math")
    with pytest.raises(Exception, match="cannot be read"):
        mathml.to_mathml(r"\frac{a}", as_block=False)


def test_links_of_pages_outside_docs_lead_to_pages():
    changelog = repository.pages(ROOT)["generated/changelog.md"]
    assert "](../rigid_bodies.md)" in changelog
    assert "](docs/" not in changelog


def test_inventories_hold_the_names():
    body = inventories.to_inventory("jax", {"jax.jit": "jit.html"}).split(b"zlib.\n", 1)[1]
    assert zlib.decompress(body) == b"jax.jit py:function 1 jit.html -\n"


def test_every_example_is_in_the_gallery_with_a_notebook_of_its_code():
    layout = tomllib.loads(gallery.GROUPS.read_text(encoding="utf-8"))
    assert len(layout["front"]) == 12
    pages = gallery.pages(ROOT / "examples", ROOT / "docs")
    for path in (ROOT / "examples").glob("*.py"):
        example = gallery.read_example(path)
        assert example.title.strip(), path.name
        cells = json.loads(pages[f"gallery/{path.stem}.ipynb"])["cells"]
        code = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(example.code)), path.name


def test_comments_of_a_script_stand_between_its_code():
    code = "# First *this*.\nx = 1\n\ny = 2\n\n# --- then that ---\n\n\ndef f():\n    # inside\n    pass\n"
    assert parts.parts(code.strip()) == [
        ("First \\*this\\*.", "x = 1\n\ny = 2"),
        ("## Then that", "def f():\n    # inside\n    pass"),
    ]


def test_pages_say_how_long_examples_took_and_what_numbers_came_out_when():
    drawn = json.loads(gallery.DRAWN.read_text(encoding="utf-8"))
    # Of long runs of molecules pages say so in words, or nothing: water at full size takes an hour.
    untimed = {"water", "ramachandran", "molten_salt"}
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} - set(drawn) <= untimed
    page = gallery.pages(ROOT / "examples", ROOT / "docs")["gallery/weather.md"]
    assert re.search(r"It took \d+ s of processor time, .* on \d+ [A-Z][a-z]+ 20\d\d\.", page)
    kept = json.loads(published.KEPT.read_text(encoding="utf-8"))
    known = {case.name: case for case in cases()}
    # What is kept is of cases that exist, and still right.
    for name, case in kept.items():
        for number in known[name].published:
            assert number.accepts(case["numbers"][number.name]), (name, number.name)
    assert len(kept) > 80
    pages = published.pages(ROOT)
    assert "off**" not in pages["generated/published-numbers.md"]
    assert re.search(r"\d+ of \d+ numbers computed, \d+ within", pages["generated/last-runs.md"])


def test_examples_that_nobody_grouped_are_an_error(tmp_path):
    (tmp_path / "lonely.py").write_text('"""An example."""\nx = 1\n')
    with pytest.raises(ValueError, match="lonely"):
        gallery.pages(tmp_path, ROOT / "docs")


SOURCE = """
def one():
    'One.'

class Two:
    'Two.'
    def three(self):
        'Three.'
"""


def test_sources_link_back_to_where_a_name_is_documented(tmp_path):
    """A file whose names stand under two families."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "_inner.py").write_text(SOURCE)
    (package / "__init__.py").write_text("from ._inner import one as one\n")
    (package / "family.py").write_text("from ._inner import Two as Two\n")
    pages = {
        "index": ".. autofunction:: package.one",
        "family": ".. autoclass:: package.family.Two\n   :members:",
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.rst").write_text(f"{name}\n======\n\n{text}\n")
    parts = ("sphinx.ext.autodoc", "sphinx.ext.viewcode", "_site.source_links")
    (tmp_path / "conf.py").write_text(f"extensions = {list(parts)}\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "docs")])
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", tmp_path, tmp_path / "html"],
        check=True, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    text = (tmp_path / "html/_modules/package/_inner.html").read_text()
    links = re.findall(r'class="viewcode-back" href="\.\./\.\./([^"#]+)#([^"]+)"', text)
    assert len(links) == 3
    for page, anchor in links:
        assert f'id="{anchor}"' in (tmp_path / "html" / page).read_text(), (page, anchor)


def test_no_page_has_the_name_of_one_that_sphinx_writes():
    """It would be replaced without a word: so it was with `search.md`."""
    taken = {"search", "genindex", "py-modindex"}
    assert not [page for page in GUIDES if page.parent.name == "docs" and page.stem in taken]


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in GUIDES:
        inside = False
        for line in page.read_text(encoding="utf-8").splitlines():
            inside = (inside or "{toctree}" in line) and line != "```"
            if inside and line and not line.startswith((":", "`")):
                listed.add((page.parent / f"{line}.md").resolve())
    missing = set(GUIDES) - listed - {ROOT / "docs/index.md"}
    assert not missing, sorted(Path(p).name for p in missing)
