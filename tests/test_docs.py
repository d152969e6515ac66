"""The code on pages and in examples runs."""

import ast

import pytest

from tests.snippets import GUIDES, ROOT, python_blocks, run_script

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_page_runs[README.md]",
    "test_page_runs[docs/start/first-fit.md]",
    "test_page_runs[docs/command-line.md]",
    "test_page_runs[docs/what-can-go-wrong.md]",
    "test_example_runs[gradient.py]",
    "test_blocks_keep_their_lines_and_share_names",
    "test_a_broken_block_fails_and_names_its_line",
)

PAGES = [ROOT / "README.md", *GUIDES]
# What a page uses of the extras.
NEEDED = {"other-tools.md": ("pandas", "pyarrow", "xarray", "h5netcdf")}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_page_runs(page, tmp_path):
    script = python_blocks(page.read_text(encoding="utf-8"))
    if not script.strip():
        pytest.skip("no Python on this page")
    for package in NEEDED.get(page.name, ()):
        pytest.importorskip(package, reason="an extra is not installed")
    run_script(script, page.relative_to(ROOT).as_posix(), tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_example_runs(example, tmp_path):
    text = example.read_text(encoding="utf-8")
    if "sklearn" in text:
        pytest.importorskip("sklearn", reason="the learn extra is not installed")
    assert ast.get_docstring(ast.parse(text)), "an example begins by saying what it shows"
    run_script(text, example.relative_to(ROOT).as_posix(), tmp_path, PHYSKIT_QUICK="1")


PAGE = """# A page
```python
x = 1
```
```console
$ not python
```
```python no-run
raise SystemExit("must not run")
```
- in a list

  ```python
  print(x + 1)
  ```
"""


def test_blocks_keep_their_lines_and_share_names(tmp_path):
    script = python_blocks(PAGE)
    assert script.splitlines()[2] == "x = 1"
    assert "not python" not in script
    assert run_script(script, "page", tmp_path) == "2\n"


def test_a_broken_block_fails_and_names_its_line(tmp_path):
    script = python_blocks("# A page\n\n```python\nx = 1\nmissing\n```\n")
    with pytest.raises(AssertionError, match=r'"a-page.md", line 5'):
        run_script(script, "a-page.md", tmp_path)
    with pytest.raises(ValueError, match="line 2 is never closed"):
        python_blocks("text\n```python\nx = 1\n")
