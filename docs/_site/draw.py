"""`python docs/_site/draw.py [NAME …]`: run examples; keep pictures, processor time and what is printed.

Processor time, compilation included: what else the machine does meanwhile hardly changes it.
"""

import datetime
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES, DRAWN = ROOT / "examples", Path(__file__).with_name("drawn.json")


def draw(name: str) -> dict:
    """Run one example in a folder of its own; its pictures go to `examples/`.

    Returns its processor time in seconds, the day, and what it printed.

    **Errors:** `CalledProcessError` where the example fails; its old picture stays.
    """
    environment = os.environ | {
        "MPLBACKEND": "Agg",
        "MATPLOTLIBRC": str(Path(__file__).with_name("matplotlibrc")),
        "PYTHONPATH": str(ROOT),
    }
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        # Programs that were compiled before would make the processor time that of their reading.
        environment["JAX_COMPILATION_CACHE_DIR"] = cache
        began = processor_seconds()
        done = subprocess.run(
            [sys.executable, EXAMPLES / f"{name}.py"],
            cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        seconds = processor_seconds() - began
        for picture in Path(folder).glob(f"{name}.*"):
            if picture.suffix in (".png", ".gif"):
                shutil.copy(picture, EXAMPLES / picture.name)
    found = {"seconds": round(seconds, 1), "on": datetime.date.today().isoformat()}
    printed = done.stdout.strip()
    return found | {"printed": printed} if printed else found


def processor_seconds() -> float:
    """Of all child processes that have ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(chosen: list[str]) -> int:
    """Draw the chosen examples, or all; returns how many failed."""
    known = json.loads(DRAWN.read_text(encoding="utf-8")) if DRAWN.exists() else {}
    failed = 0
    for name in chosen or sorted(path.stem for path in EXAMPLES.glob("*.py")):
        try:
            known[name] = draw(name)
        except subprocess.CalledProcessError as error:
            failed += 1
            print(f"{name} failed: {error}", file=sys.stderr)
            continue
        print(f"{name}: {known[name]['seconds']} s", flush=True)
        # After each: a long session may be stopped.
        text = json.dumps(dict(sorted(known.items())), indent=2, ensure_ascii=False)
        DRAWN.write_text(text + "\n", encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
