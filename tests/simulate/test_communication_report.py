"""What devices send: the minimum that a method needs, and what the compiled program sends."""

import os
import re
import subprocess
import sys
from math import prod

import jax
import jax.numpy as jnp
import pytest

import physkit as pk
from physkit.parallel import trace_collectives
from physkit.simulate import communication_report
from tests.snippets import ROOT


def _diffusion(integrator=pk.Euler):
    u = pk.Field(jnp.ones((64, 48)), pk.Grid([1.0, 1.0], (64, 48)))
    return pk.Simulation(
        integrator(pk.equations.Diffusion(1.0, scheme=pk.schemes.Central(2))), dt=1e-5
    ), u


@pytest.mark.parametrize(
    ("devices", "layers"),  # points of a layer of the block across x, and across y
    [((2, 2), (24, 32)), ((4, 1), (48, 0)), ((1, 4), (0, 64)), ((4, 4), (12, 16))],
)
def test_a_stencil_sends_exactly_one_layer_to_each_neighbor(devices, layers):
    found = communication_report(*_diffusion(), devices)
    minimum = {axis: 2 * points * 8 for axis, points in zip("xy", layers, strict=True) if points}
    assert {along: size for _, along, _, _, size in found.rows()} == minimum
    assert all(m.kind == "neighbors" and m.when == "always" for m in found.messages)
    assert found.bytes == sum(minimum.values())
    assert found.count == 2 * len(minimum)


def test_every_stage_sends(capsys):
    one, four = (
        communication_report(*_diffusion(), (2, 2)),
        communication_report(*_diffusion(pk.RK4), (2, 2)),
    )
    assert (four.bytes, four.count) == (4 * one.bytes, 4 * one.count)
    assert four.seconds(bandwidth=1e9, latency=1e-6) == pytest.approx(16e-6 + four.bytes / 1e9)
    print(four)
    assert (
        "neighbors          x      always             8          1,536" in capsys.readouterr().out
    )


def test_one_device_sends_nothing():
    found = communication_report(*_diffusion(), (1, 1))
    assert found.count == 0
    assert "nothing" in str(found)


def test_512_devices_without_having_them():
    u = pk.Field(jnp.ones((16, 16, 16)), pk.Grid([1.0] * 3, (16, 16, 16)))
    sim = pk.Simulation(
        pk.Euler(pk.equations.Diffusion(1.0, scheme=pk.schemes.Central(2))), dt=1e-5
    )
    assert communication_report(sim, u, (8, 8, 8)).bytes == 6 * 4 * 8


def test_loops_and_branches():
    """A scan counts all its turns; a branch that may not be taken is left out of the sum."""

    def program(comm, x):
        x = jax.lax.scan(lambda x, _: (comm.ring_shift(x, 0, 1), None), x, None, length=3)[0]
        x = jax.lax.cond(x[0] > 0, lambda x: comm.psum(x), lambda x: comm.ring_shift(x, 1, 1), x)
        x = jax.lax.while_loop(lambda x: x[0] > 0, lambda x: comm.ring_shift(x, 1, 1), x)
        return comm.all_to_all(x, 1, 0, 0) + comm.pmax(x)

    found, shapes = trace_collectives(program, (2, 4), jax.ShapeDtypeStruct((8, 16), jnp.float32))
    assert shapes.shape == (8, 16)
    rows = [(m.kind, m.axes, m.bytes, m.count, m.when) for m in found]
    assert rows == [
        ("neighbors", "x", 64, 3, "always"),
        ("sum", "xy", 2 * 7 / 8 * 64, 1, "sometimes"),
        ("neighbors", "y", 64, 1, "in a loop"),
        ("transposition", "y", 3 / 4 * 64, 1, "always"),
        ("extreme", "xy", 2 * 7 / 8 * 64, 1, "always"),
    ]


def test_domains_that_cannot_be_sharded_are_refused():
    with pytest.raises(pk.errors.ShapeError, match="48"):
        communication_report(*_diffusion(), (1, 5))


SCRIPT = """
import jax, jax.numpy as jnp, physkit as pk
from physkit.simulate import communication_report
u = pk.Field(jnp.ones((64, 48)), pk.Grid([1.0, 1.0], (64, 48)))
sim = pk.Simulation(pk.Euler(pk.equations.Diffusion(1.0, scheme=pk.schemes.Central(2))), dt=1e-5)
w = pk.systems.random_vorticity(pk.Grid([6.283, 6.283], (32, 32)), jax.random.key(0))
spectral = pk.Simulation(pk.ETDRK2(pk.equations.VorticityTransport(1e-3)), dt=1e-3)
for sim, state, devices in ((sim, u, (2, 2)), (spectral, w, (4,))):
    pk.run(sim, state, 3, devices=devices, progress=False)
    print(communication_report(sim, state, devices).count)
"""


@pytest.mark.slow
def test_compiled_programs_send_what_was_counted(tmp_path):
    """By the HLO that XLA dumps: `run` on four CPU devices, a stencil and a spectral method."""
    flags = (
        f"--xla_force_host_platform_device_count=4 --xla_dump_to={tmp_path} --xla_dump_hlo_as_text"
    )
    environment = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": str(ROOT), "JAX_ENABLE_X64": "0"}
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # programs that are read are not dumped
    environment.pop("PHYSKIT_SPMD", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    stencil, spectral = map(int, done.stdout.split())
    texts = [p.read_text() for p in sorted(tmp_path.glob("*cpu_after_optimizations.txt"))]
    assert not any("all-gather" in text for text in texts)
    sent = [_sent(text, "collective-permute") for text in texts]
    assert [s for s in sent if s] == [[24 * 4, 24 * 4, 32 * 4, 32 * 4]]
    assert len(max(sent, key=len)) == stencil
    exchanged = [_sent(text, "all-to-all") for text in texts]
    # Beside the step of two stages: the state at the end is shown, and one stage of it examined.
    assert max(map(len, exchanged)) == spectral + 1 + spectral // 2


def _sent(text: str, operation: str) -> list[int]:
    """Bytes of the results of an operation, smallest first."""
    kinds = {"f32": 4, "c64": 8}
    found = re.findall(rf"= \(?(\w+)\[([\d,]*)\]\S* (?:\S+ )*?{operation}(?:-start)?\(", text)
    return sorted(kinds[kind] * prod(map(int, filter(None, n.split(",")))) for kind, n in found)
