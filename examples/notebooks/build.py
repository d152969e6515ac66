"""Write the notebooks of this folder from its scripts, whose cells begin with `# %%`.

    python examples/notebooks/build.py

Notebooks have no outputs: running them makes these.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).parent


def as_notebook(script: str) -> dict:
    """The notebook of a script: cells of `# %% [markdown]` are text, all others code."""
    cells = []
    for number, part in enumerate(script.split("\n# %%")[1:]):
        head, _, body = part.partition("\n")
        lines = body.strip("\n").split("\n")
        is_text = "[markdown]" in head
        if is_text:
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        source = "\n".join(lines).splitlines(keepends=True)
        cell = {"id": f"cell-{number}", "metadata": {}, "source": source}
        if is_text:
            cells.append({"cell_type": "markdown", **cell})
        else:
            cells.append({"cell_type": "code", "execution_count": None, "outputs": [], **cell})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def notebooks() -> dict[Path, str]:
    """File → text of every notebook of the folder."""
    scripts = sorted(p for p in FOLDER.glob("*.py") if p.name != Path(__file__).name)
    return {
        script.with_suffix(".ipynb"): json.dumps(
            as_notebook("\n" + script.read_text()), indent=1, ensure_ascii=False
        )
        + "\n"
        for script in scripts
    }


if __name__ == "__main__":
    for path, text in notebooks().items():
        path.write_text(text)
