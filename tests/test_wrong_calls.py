"""Two hundred wrong calls: none ends in a raw error of JAX, Equinox, NumPy or Python, or in a wrong number."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.try_calls import judge_error
from tests.wrong_calls import WRONG


def test_every_wrong_call_explains_itself(tmp_path):
    """In a process of its own: single precision, annotations not checked, as in a script."""
    script = Path(__file__).with_name("try_calls.py")
    kept = "JAX_DISABLE_MOST_OPTIMIZATIONS"  # small programs need no others
    environment = {
        k: v for k, v in os.environ.items() if k == kept or not k.startswith(("JAX_", "PHYSKIT_"))
    }
    root = str(script.parent.parent)
    environment |= {"PYTHONPATH": root, "JAX_PLATFORMS": "cpu", "MPLBACKEND": "Agg"}
    # A call that is accepted after all may write: in a folder of its own.
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    faults = json.loads(done.stdout.splitlines()[-1])
    assert not faults, "\n".join(faults)


def test_there_are_enough_and_the_judge_sees_raw_errors():
    assert len(list(filter(None, WRONG.splitlines()))) >= 120
    assert "raw" in judge_error(TypeError("unsupported operand type(s)"), "")
