"""Free energies from samples whose answer is known: MBAR, WHAM, thermodynamic integration."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import physkit as pk
from physkit import sampling
from physkit.core import MissingExtraError, ParameterError, ShapeError

K = np.array([1.0, 2.0, 4.0, 8.0])


def harmonic_samples(frames=4000, seed=0):
    """x of oscillators of stiffness K at k_B T = 1, drawn independently: [states frames]."""
    return np.random.default_rng(seed).normal(size=(len(K), frames)) / np.sqrt(K)[:, None]


def test_mbar_turns_one_spring_into_another():
    """ΔF = ½ k_B T ln k₂/k₁, with errors that fit; the package leaves JAX's precision alone."""
    before = jax.config.jax_enable_x64
    x = harmonic_samples()
    energies = 0.5 * K * x[..., None] ** 2
    found = pk.free_energies(energies, 1.0, subsample=False)
    assert jax.config.jax_enable_x64 == before
    exact = 0.5 * np.log(K)
    assert (np.abs(found.values - exact) <= 4 * found.errors).all()
    assert 0.001 < found.errors[-1] < 0.03
    np.testing.assert_allclose(found.differences[1, 3], exact[3] - exact[1], atol=0.03)
    # ⟨x²⟩ of the last, from the frames of all; and in units of another temperature.
    square = found.mean(x**2, target=energies[:, :, 3])
    assert abs(square.value - 1 / K[3]) < 4 * square.error < 0.02
    hot = pk.free_energies(3 * energies, 3.0, subsample=False)
    np.testing.assert_allclose(hot.values, 3 * found.values, rtol=1e-6, atol=1e-6)


def test_correlated_frames_are_thinned():
    """Every frame five times: a fifth of them is taken, and the error is that of the independent ones."""
    x = harmonic_samples(400)
    energies = 0.5 * K * x[..., None] ** 2
    once = pk.free_energies(energies, 1.0, subsample=False)
    repeated = pk.free_energies(np.repeat(energies, 5, axis=1), 1.0)
    assert all(len(rows) < 600 for rows in repeated.rows)
    assert 0.7 < repeated.errors[-1] / once.errors[-1] < 1.5


def test_states_of_several_temperatures():
    """F/k_B T of one oscillator at T and 2T: −½ ln 2."""
    rng = np.random.default_rng(0)
    T = np.array([1.0, 2.0])
    x = rng.normal(size=(2, 4000)) * np.sqrt(T)[:, None]
    found = pk.free_energies(0.5 * x**2, T, subsample=False)
    assert abs(found.values[1] + 0.5 * np.log(2)) < 4 * found.errors[1] < 0.1
    # Between them, in the state of the same energy.
    warm = found.mean(0.5 * x**2, temperature=1.5)
    assert abs(warm.value - 0.75) < 4 * warm.error < 0.1


def direct_wham(counts, bias):
    """The self-consistent equations, iterated: F of the windows at k_B T = 1."""
    f = np.zeros(len(bias))
    n = counts.sum(axis=1)
    for _ in range(3000):
        p = counts.sum(axis=0) / (n[:, None] * np.exp(f[:, None] - bias)).sum(axis=0)
        f = -np.log((p * np.exp(-bias)).sum(axis=1))
    return f - f[0]


@pytest.mark.slow
def test_umbrella_windows_give_the_profile_of_a_well():
    """Windows on U = 2x²: Gaussians. MBAR within errors; WHAM as its own equations say."""
    k, centers = 10.0, np.linspace(-1.0, 1.0, 9)
    # ½ k (x − c)² + 2 x² is a Gaussian about k c/(k + 4).
    rng = np.random.default_rng(1)
    x = rng.normal(size=(9, 3000)) / np.sqrt(k + 4) + (k * centers / (k + 4))[:, None]
    edges = np.linspace(-0.9, 0.9, 19)
    found = pk.free_energies(sampling.umbrella_energies(x, k, centers), 1.0, subsample=False)
    profile = found.profile(x, edges, target=0.0)
    exact = 2 * profile.centers**2
    exact -= exact.min()
    assert (np.abs(profile.free_energy - exact) < 0.01 + 4 * profile.error).all()
    binned, windows = sampling.wham(x, edges, k, centers, 1.0, subsample=False)
    np.testing.assert_allclose(binned.free_energy, profile.free_energy, atol=0.05)
    inside = np.clip(x, edges[0], edges[-1] - 1e-9)
    _, windows = sampling.wham(inside, edges, k, centers, 1.0, subsample=False)
    counts = np.array([np.histogram(row, edges)[0] for row in inside])
    bias = 0.5 * k * (binned.centers - centers[:, None]) ** 2
    np.testing.assert_allclose(windows.values, direct_wham(counts, bias), atol=1e-5)


WINDOWS = """
import jax
import physkit as pk
from physkit import sampling

jax.config.update("jax_enable_x64", True)


def windows():
    x = sampling.CollectiveVariable(lambda particles: particles.position[0, 0])
    well = pk.ExternalEnergy(lambda t, p: p.position[0, 0] ** 4 - 2 * p.position[0, 0] ** 2)
    bath = pk.BAOAB(well + pk.HarmonicBias(x, stiffness=8.0), temperature=0.3, friction=1.0)
    simulation = pk.Simulation(bath, 0.05, pk.Every(20, x=sampling.CollectiveVariables()))
    center = lambda model: pk.find(model, pk.HarmonicBias).center
    over = pk.SweepAxis(center, [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5], name="center")
    return pk.Sweep((simulation, pk.Particles([[1.0]])), 400_000, over=over, key=0)
"""


@pytest.mark.slow
def test_umbrella_windows_go_on_after_kill_9(tmp_path):
    """A process that computes windows is killed; what goes on has the bits of windows left alone."""
    (tmp_path / "windows.py").write_text(
        WINDOWS + "\n\npk.sweep(windows(), to='killed', chunk_size=1, progress=False)\n"
    )
    command = [sys.executable, "windows.py"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    victim = subprocess.Popen(command, cwd=tmp_path, env=env)
    chunks = tmp_path / "killed" / "chunks"
    while len(list(chunks.glob("0*.h5"))) < 2:
        assert victim.poll() is None, "it ended before it was killed"
        time.sleep(0.01)
    victim.kill()  # SIGKILL
    assert victim.wait() == -signal.SIGKILL
    assert len(list(chunks.glob("0*.h5"))) < 7
    subprocess.run(command, cwd=tmp_path, env=env, check=True)
    names = {}
    exec(WINDOWS, names)
    with jax.enable_x64(True):
        alone = np.asarray(pk.sweep(names["windows"](), chunk_size=1, progress=False)["x"])
    found = np.asarray(pk.open(tmp_path / "killed")["x"])
    np.testing.assert_array_equal(found, alone)
    assert found.shape == (7, 20_001)


def test_periodic_windows_and_empty_bins():
    energies = sampling.umbrella_energies(
        np.array([[3.1]]), 2.0, np.array([-3.1]), period=2 * np.pi
    )
    np.testing.assert_allclose(energies, (2 * np.pi - 6.2) ** 2)
    x = harmonic_samples(50)
    found = pk.free_energies(0.5 * K * x[..., None] ** 2, 1.0, subsample=False)
    profile = found.profile(x, np.array([50.0, 51.0]), target=0.0)
    assert np.isinf(profile.free_energy[0])
    assert profile.counts[0] == 0


def test_thermodynamic_integration_of_a_spring():
    """⟨∂U/∂k⟩ = 1/(2k): its integral is ½ ln k₂/k₁."""
    k = np.geomspace(1.0, 8.0, 9)
    x = np.random.default_rng(0).normal(size=(9, 4000)) / np.sqrt(k)[:, None]
    found = sampling.thermodynamic_integration(k, 0.5 * x**2)
    assert abs(found.value - 0.5 * np.log(8)) < 4 * found.error < 0.1
    with pytest.raises(ParameterError, match="rise"):
        sampling.thermodynamic_integration(k[::-1], 0.5 * x**2)
    with pytest.raises(ShapeError, match="slopes"):
        sampling.thermodynamic_integration(k, x[0])


def test_what_is_wrong_is_said(monkeypatch):
    x = harmonic_samples(20)
    energies = 0.5 * K * x[..., None] ** 2
    with pytest.raises(ShapeError, match="energies"):
        pk.free_energies(energies[:, :, :2], 1.0)
    with pytest.raises(ParameterError, match="finite"):
        pk.free_energies(np.where(energies > 0.1, np.nan, energies), 1.0)
    with pytest.raises(ParameterError, match="positive"):
        pk.free_energies(energies, -1.0)
    with pytest.raises(ShapeError, match="x must be"):
        pk.free_energies(energies, 1.0, subsample=False).profile(
            x[0], np.array([0.0, 1.0]), target=0.0
        )
    with pytest.raises(ShapeError, match=r"energies \[states frames\]"):
        pk.free_energies(energies[0], 1.0)  # would be as many equal states as frames
    with pytest.raises(ShapeError, match="no frames"):
        pk.free_energies(energies[:, :0], 1.0)
    with pytest.raises(ShapeError, match=r"centers are \[windows\]"):
        sampling.umbrella_energies(x, K, np.zeros(2))
    with pytest.raises(ShapeError, match=r"centers are \[windows\]"):
        sampling.umbrella_energies(np.zeros(3), K, x)
    with pytest.raises(ParameterError, match="say in which state"):
        pk.free_energies(energies, 1.0, subsample=False).mean(x)
    for temperature in (np.ones(2), np.ones((len(K), 1))):
        with pytest.raises(ShapeError, match=f"one for each of {len(K)} states"):
            pk.free_energies(energies, temperature)
    with pytest.raises(ParameterError, match="positive and finite"):
        pk.free_energies(energies, np.inf)  # all values would be NaN
    found = pk.free_energies(energies, 1.0, subsample=False)
    gap = np.where(x > 0.1, np.nan, x)
    for error, text, call in (
        # Its frames would lie in no bin, and the profile be that of the others.
        (ParameterError, "x is NaN", lambda: found.profile(gap, np.array([-1.0, 1.0]), target=0.0)),
        (ParameterError, "x is NaN", lambda: found.mean(gap, target=0.0)),
        (ParameterError, "target is NaN", lambda: found.mean(x, target=gap)),
        (ShapeError, "target must be", lambda: found.mean(x, target=x[:, :5])),
        (ParameterError, "temperature must be", lambda: found.mean(x, target=0.0, temperature=0.0)),
        (ParameterError, "must rise", lambda: found.profile(x, np.array([1.0, -1.0]), target=0.0)),
        (ParameterError, "must rise", lambda: found.profile(x, 8, target=0.0)),
        (ParameterError, "must rise", lambda: sampling.wham(x, 8, K, 0 * K, 1.0)),
    ):
        with pytest.raises(error, match=text):
            call()
    monkeypatch.setitem(sys.modules, "pymbar", None)
    with pytest.raises(MissingExtraError, match=r"physkit\[md\]"):
        pk.free_energies(energies, 1.0)
