"""`python docs/_site/draw.py [NAME …]`: run examples, keep their pictures and the processor time of each.

Processor time, compilation included: what else the machine does meanwhile hardly changes it.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES, SECONDS = ROOT / "examples", Path(__file__).with_name("seconds.json")


def draw(name: str) -> float:
    """Run one example in a folder of its own; its pictures go to `examples/`. Returns its processor time, s.

    **Errors:** `CalledProcessError` where the example fails; its old picture stays.
    """
    environment = os.environ | {
        "MPLBACKEND": "Agg",
        "MATPLOTLIBRC": str(Path(__file__).with_name("matplotlibrc")),
        "PYTHONPATH": str(ROOT),
    }
    with tempfile.TemporaryDirectory() as folder:
        began = processor_seconds()
        subprocess.run(
            [sys.executable, EXAMPLES / f"{name}.py"], cwd=folder, env=environment, check=True
        )
        seconds = processor_seconds() - began
        for picture in Path(folder).glob(f"{name}.*"):
            if picture.suffix in (".png", ".gif"):
                shutil.copy(picture, EXAMPLES / picture.name)
    return seconds


def processor_seconds() -> float:
    """Of all child processes that have ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(chosen: list[str]) -> int:
    """Draw the chosen examples, or all; returns how many failed."""
    known = json.loads(SECONDS.read_text(encoding="utf-8")) if SECONDS.exists() else {}
    failed = 0
    for name in chosen or sorted(path.stem for path in EXAMPLES.glob("*.py")):
        try:
            known[name] = round(draw(name), 1)
        except subprocess.CalledProcessError as error:
            failed += 1
            print(f"{name} failed: {error}", file=sys.stderr)
            continue
        print(f"{name}: {known[name]} s", flush=True)
        # After each: a long session may be stopped.
        SECONDS.write_text(
            json.dumps(dict(sorted(known.items())), indent=2) + "\n", encoding="utf-8"
        )
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
