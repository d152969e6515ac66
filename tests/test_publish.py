"""What is published with the code: metadata, extras, recipes, citation and paper say what is true.

`make package` builds and installs the package itself (`tests/package.py`).
"""

import ast
import re
import tomllib

import pytest

import physkit as pk
from tests.snippets import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def without_version(requirement):
    """`jax[cuda12]>=0.10; python_version < '3.12'` → `jax[cuda12]`."""
    return re.match(r"[\w.-]+(\[[^]]*\])?", requirement)[0]


def extras_table(text):
    """Extra → packages, as the table of the page has them."""
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", text, re.MULTILINE)
    return {name: re.findall(r"`([^`]+)`", packages) for name, packages in rows}


def wrong_extras(text):
    """Rows that differ from pyproject.toml."""
    table = extras_table(text)
    true = {
        name: list(dict.fromkeys(map(without_version, needs))) for name, needs in EXTRAS.items()
    }
    return sorted(name for name in {*table, *true} if table.get(name) != true.get(name))


def test_the_table_of_extras_is_that_of_the_project():
    page = read("docs/install.md")
    assert not wrong_extras(page)
    assert wrong_extras(page.replace("`pyarrow`", "`polars`")) == ["pandas"]
    assert wrong_extras(page + "| `more` | `x` | |\n") == ["more"]


def test_every_extra_that_is_asked_for_exists_and_brings_the_package():
    asked = set()
    for path in (ROOT / "physkit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_extra":
                package, extra = (ast.literal_eval(argument) for argument in node.args[:2])
                asked.add((package.split(".")[0], extra))
    assert ("xarray", "xarray") in asked
    assert ("pyarrow", "pandas") in asked
    for package, extra in asked:
        assert package in [without_version(x).split("[")[0] for x in EXTRAS[extra]]
    named = re.compile(r"physkit\[([\w,-]+)\]")
    pages = [*(ROOT / "physkit").rglob("*.*"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    for page in pages:
        if page.suffix in (".py", ".md", ".txt"):
            for found in named.findall(page.read_text(encoding="utf-8")):
                assert set(found.split(",")) <= {*EXTRAS, "x"}, f"{page}: {found}"


def test_metadata_is_complete_and_names_no_address_that_is_not_ours():
    assert {"name", "description", "readme", "license", "authors", "keywords"} <= set(PROJECT)
    pythons = [c for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert pythons[0].endswith(PROJECT["requires-python"].removeprefix(">="))
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "physkit/py.typed").exists()
    assert "urls" not in PROJECT


def test_the_conda_recipe_needs_what_the_project_needs():
    recipe = read("packaging/conda/meta.yaml")
    assert re.search(r'set version = "(.*)"', recipe)[1] == pk.__version__
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    needed = dict(line.strip("- ").split(" ") for line in run.strip().splitlines())
    assert needed.pop("python") == PROJECT["requires-python"]
    needed["matplotlib"] = needed.pop("matplotlib-base")
    assert {f"{name}{bound}" for name, bound in needed.items()} == set(PROJECT["dependencies"])
    assert PROJECT["scripts"]["physkit"] in recipe


def test_the_container_copies_what_is_there_and_installs_extras_that_exist():
    recipe = read("packaging/Dockerfile")
    for copied in re.findall(r"^COPY (.*) \S+$", recipe, re.MULTILINE):
        for path in copied.split():
            assert (ROOT / path).exists()
            assert f"!{path}\n" in read(".dockerignore")
    extras = re.search(r'"\.\[(.*)\]"', recipe)[1].replace("${CUDA}", "cuda12")
    assert set(extras.split(",")) <= set(EXTRAS)


def citation_faults(text):
    """What CFF 1.2.0 asks for and is not there; of the part of YAML that the file uses."""
    top = dict(re.findall(r"^([\w-]+):[ ]?(.*)$", text, re.MULTILINE))
    faults = [
        f"no {key}" for key in ("cff-version", "message", "title", "authors") if key not in top
    ]
    allowed = {
        "cff-version", "message", "title", "type", "authors", "version", "license", "keywords", "abstract",
        "date-released", "doi", "identifiers", "repository-code", "url", "preferred-citation", "references",
        "contact", "commit", "license-url", "repository", "repository-artifact",
    }  # fmt: skip
    faults += [f"unknown key {key}" for key in set(top) - allowed]
    if top.get("cff-version") != "1.2.0" or top.get("type") not in ("software", "dataset"):
        faults.append("version or type")
    if "date-released" in top and not re.fullmatch(r"\d{4}-\d\d-\d\d", top["date-released"]):
        faults.append("date")
    authors = text.partition("authors:\n")[2].partition("\nversion")[0]
    if not re.fullmatch(r"(  - name: .+\n?)+", authors):
        faults.append("authors")
    return faults


def test_the_citation_is_valid_and_of_this_project():
    text = read("CITATION.cff")
    assert not citation_faults(text)
    assert f"license: {PROJECT['license']}" in text
    assert citation_faults(text.replace("title:", "titel:")) == ["no title", "unknown key titel"]
    assert citation_faults(text.replace("  - name", "  - nickname")) == ["authors"]


def test_the_paper_cites_what_it_lists_and_shows_what_is_there():
    paper, entries = read("paper.md"), read("paper.bib")
    listed = set(re.findall(r"^@\w+\{(\w+),", entries, re.MULTILINE))
    assert set(re.findall(r"@(\w+)", paper)) == listed
    # Every reference can be looked up.
    for entry in entries.split("\n@")[0:]:
        assert re.search(r"^  (doi|url) = \{\S+\}", entry, re.MULTILINE), entry[:60]
    for picture in re.findall(r"\]\(([^)]+\.png)\)", paper):
        assert (ROOT / picture).exists()
    for heading in ("# Summary", "# Statement of need", "# References"):
        assert heading in paper
    assert all(f"ref{{{label}}}" in paper for label in re.findall(r"\\label\{(.*?)\}", paper))


def test_versions_are_shown(capsys):
    pk.show_versions()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["physkit"] == pk.__version__
    assert {without_version(x) for x in PROJECT["dependencies"]} <= set(shown)
    assert shown["devices"].startswith(("cpu:0", "cuda:0", "gpu:0", "tpu:0"))
    assert shown["precision"].startswith("float64")


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    from physkit.core import import_extra

    monkeypatch.setitem(__import__("sys").modules, "nowhere", None)
    with pytest.raises(pk.errors.MissingExtraError, match=r"^it needs nowhere: pip .*\[more\]$"):
        import_extra("nowhere", "more", "it")
