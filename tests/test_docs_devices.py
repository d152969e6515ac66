"""Simulations on pages give over devices what they give on one, or are refused by name."""

import pytest

from tests.snippets import ROOT, python_blocks, run_script

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = ()

# The pages whose Python starts simulations from states. Sweeps, fits and clusters run other pages' simulations.
PAGES = (
    "README.md",
    "docs/concepts.md",
    "docs/coupling.md",
    "docs/devices.md",
    "docs/equations.md",
    "docs/fields.md",
    "docs/flows.md",
    "docs/what-can-go-wrong.md",
    "docs/write-your-own.md",
)

# Before a page: keep each simulation that it runs. After it: run each of them again, over devices.
BEFORE = """
import jax as _jax, physkit as _pk
_seen = {}
def _keep(run):
    def kept(sim, state, steps=None, *args, **options):
        traced = any(isinstance(x, _jax.core.Tracer) for x in _jax.tree.leaves((sim, state)))
        if not traced and not isinstance(state, _pk.Carry) and not options.get("devices"):
            name = str(_jax.tree.structure((sim, state)))
            _seen.setdefault(name, (sim, state, options.get("key")))
        return run(sim, state, *(() if steps is None else (steps,)), *args, **options)
    return kept
_pk.simulate, _pk.run = _keep(_pk.simulate), _keep(_pk.run)
"""
AFTER = """
from physkit.core import PhyskitError as _Error, float_dtype as _dtype, replace_fields as _replace
from physkit.testing import check_devices as _check
for _sim, _state, _key in _seen.values():
    _sim = _replace(_sim, {"adjoint": _pk.NestedCheckpoint()})
    _steps = _sim.observation_period * max(1, 4 // _sim.observation_period)
    try:
        _check(_sim, _state, _steps, key=_key, gradient=False)
        print("equal", type(_sim.integrator).__name__)
    except _Error as _error:
        print("refused", type(_sim.integrator).__name__, type(_error).__name__, str(_error)[:200])
    except AssertionError as _error:
        # A page may show how a run fails, or an observer that knows no devices, which `run` names, too.
        if not any(what in str(_error) for what in ("is not finite", "differs from device to device")):
            raise
        print("refused", type(_sim.integrator).__name__, str(_error)[:200])
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_simulations_of_a_page_over_devices(page, tmp_path):
    script = python_blocks((ROOT / page).read_text(encoding="utf-8"))
    script = f"exec({BEFORE!r})\n{script}\nexec({AFTER!r})\n"
    out = run_script(script, page, tmp_path)
    assert "equal" in out or "refused" in out, out
