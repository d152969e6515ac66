"""Python blocks of Markdown pages, run as a reader would: one page, one script, a fresh process."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Pages that people write; others are made from the code when the site is built.
GUIDES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.md")
    if path.relative_to(ROOT / "docs").parts[0] not in ("api", "gallery", "generated")
)
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")


def python_blocks(text: str) -> str:
    """The ```python blocks of a page as one script whose line numbers are those of the page.

    **Errors:** `ValueError` for a block that is never closed.
    """
    lines, inside, indent, began = [], None, "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        fence = _FENCE.match(line)
        if inside is None and fence:
            inside, indent, began = fence["info"].strip(), fence["indent"], number
            lines.append("")
        elif fence and not fence["info"].strip():
            inside = None
            lines.append("")
        else:
            lines.append(line.removeprefix(indent) if inside == "python" else "")
    if inside is not None:
        raise ValueError(f"the block that begins in line {began} is never closed")
    return "\n".join(lines)


def run_script(script: str, name: str, folder: Path, **environment: str) -> str:
    """What a script prints, run in `folder` by an interpreter with the user's default settings.

    **Errors:** `AssertionError` with the traceback, which names the page and its line.
    """
    path = folder / "snippets.py"
    path.write_text(script, encoding="utf-8")
    start = f"import sys; exec(compile(open({str(path)!r}).read(), {name!r}, 'exec'))"
    # Compiled programs are kept where those of the tests are, not in the user's home.
    # They are compiled as quickly as those of the tests: a page shows that it runs, not how fast.
    kept = ("JAX_COMPILATION_CACHE_DIR", "JAX_DISABLE_MOST_OPTIMIZATIONS")
    settings = {k: v for k, v in os.environ.items() if k in kept or not k.startswith("JAX_")}
    settings |= {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"} | environment
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", "-c", start],
        capture_output=True,
        text=True,
        cwd=folder,
        env=settings,
        timeout=900,
    )
    assert done.returncode == 0, f"{name}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
