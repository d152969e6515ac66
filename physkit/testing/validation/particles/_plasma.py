"""Plasmas: waves of particles on a mesh, light among charges, and charges in magnetic fields."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.integrators import (
    Boris,
    HigueraCary,
    ParticleInCell,
    RelativisticBoris,
    RelativisticMotion,
    Vay,
)
from physkit.observe import Every, Positions, Velocities
from physkit.particles import Particles
from physkit.simulate import Simulation, simulate
from physkit.systems import (
    LANDAU_DAMPING,
    LANDAU_FREQUENCY,
    landau_damping,
    plasma_oscillation,
    two_stream,
    weibel_instability,
)

from .._case import Case, Published


def damping_of_a_langmuir_wave() -> dict[str, Any]:
    """A wave of kλ_D = 0.5, quiet start: frequency and damping from the zeros and peaks of its amplitude."""
    simulation, electrons = landau_damping()
    wave = np.asarray(simulate(simulation, electrons, 200).frames["wave"]).real
    t = 0.1 * np.arange(len(wave))
    zeros = _zero_crossings(t, wave)
    # At first the other, faster damped roots still contribute: leave out the first zero and t < 1.5.
    size = np.abs(wave)
    peaks = [k for k in range(15, len(wave) - 1) if size[k] >= max(size[k - 1], size[k + 1])]
    times, heights = np.array([_refine_peak(t, size, k) for k in peaks]).T
    return {
        "frequency": np.pi / np.polyfit(np.arange(len(zeros) - 1), zeros[1:], 1)[0],
        "damping": np.polyfit(times, np.log(heights), 1)[0],
    }


def frequency_of_a_plasma() -> dict[str, Any]:
    """A long wave in a cold plasma, and in a warm one."""
    found = {}
    for name, speed in (("cold", 0.0), ("warm", 1.0)):
        simulation, electrons = plasma_oscillation(speed)
        wave = np.asarray(simulate(simulation, electrons, 1000).frames["wave"]).real
        zeros = _zero_crossings(0.05 * np.arange(len(wave)), wave)
        found[name] = np.pi / np.polyfit(np.arange(len(zeros)), zeros, 1)[0]
    return found


def growth_of_two_streams() -> dict[str, Any]:
    """Two cold beams as two components on one mesh: growth of the fastest wave."""
    simulation, beams = two_stream(4000)
    frames = simulate(simulation, beams, 200).frames
    wave = np.log(np.abs(np.asarray(frames["wave"])))
    t = 0.1 * np.arange(len(wave))
    growing = (t > 8) & (t < 14)  # the growing root leads, and the beams do not yet roll up
    return {"growth": np.polyfit(t[growing], wave[growing], 1)[0]}


def a_charge_in_crossed_fields() -> dict[str, Any]:
    """Boris's pusher: |v| after 10⁴ steps in B alone, and the drift E×B/B² over 100 whole turns."""
    one = Particles([[0.0, 0.0, 0.0]], [[0.7, -0.3, 0.4]], charge=1.0)
    b = jnp.array([0.3, -0.5, 1.1])
    gyrating = Simulation(Boris(b), 0.3, Every(10, v=Velocities()))
    speed = np.linalg.norm(simulate(gyrating, one, 10_000).frames["v"][:, 0], axis=-1)
    # ω dt/2 = tan(π/4): four steps a turn.
    flat = Particles([[0.0, 0.0]], [[0.7, -0.3]], charge=1.0)
    drifting = Simulation(Boris(1.0, [0.0, 0.2]), 2.0, Every(4, x=Positions()))
    x = np.asarray(simulate(drifting, flat, 400).frames["x"])[:, 0]
    return {
        "change of speed": np.max(np.abs(speed / speed[0] - 1)),
        # 400 steps of 2: over t = 800, whole turns, only the drift is left.
        "drift": np.max(np.abs((x[-1] - x[0]) / 800 - [0.2, 0.0])),
    }


def filaments_of_two_beams() -> dict[str, Any]:
    """Beams of ±0.5 c, 32 cells a wave, electromagnetic particle-in-cell: the slope of ½ ln ∫H² while it grows
    from e⁴ times its start to a hundredth of the beams' energy; the largest change of ε₀∇·E − ρ over the
    largest ρ."""
    sim, state = weibel_instability(0.5, cells=32)
    pic = sim.integrator
    assert isinstance(pic, ParticleInCell)
    out = jax.jit(lambda s: simulate(sim, s, 340))(state)
    magnetic, t = np.asarray(out.frames["magnetic"]), np.arange(341) * float(sim.dt)
    beams = float(out.frames["kinetic"][0])
    part = (magnetic > np.exp(4) * magnetic[0]) & (magnetic < 0.01 * beams)
    # The first time only: filaments that have merged sway.
    part &= np.arange(341) <= np.argmax(magnetic > 0.01 * beams)
    first, last = (pic.gauss_residual(s).data for s in (state, out.state))
    density = jnp.max(jnp.abs(pic.charge_density(out.state).data))
    return {
        "growth": 0.5 * np.polyfit(t[part], np.log(magnetic[part]), 1)[0],
        "change of ε₀∇·E − ρ": float(jnp.max(jnp.abs(last - first)) / density),
    }


def fast_charges_in_crossed_fields() -> dict[str, Any]:
    """E × B drift at 0.99 c with ω dt = 0.5: distance from the straight line after 200 steps, per length; and
    the change of |u| in pure B."""
    v = 0.99
    u, found = v / (1 - v**2) ** 0.5, {}
    one = Particles([[0.0, 0.0, 0.0]], [[u, 0.0, 0.0]], charge=1.0)
    for name, pusher in (("Vay", Vay()), ("Higuera & Cary", HigueraCary())):
        crossed = RelativisticMotion([0.0, 0.0, 1.0], [0.0, v, 0.0], pusher)
        x = np.asarray(simulate(Simulation(crossed, dt=0.5), one, 200).state.position[0])
        found[f"drift, {name}"] = np.max(np.abs(x - [100 * v, 0, 0])) / (100 * v)
    turning = RelativisticMotion([0.3, 0.5, 2.0], None, RelativisticBoris())
    end = simulate(Simulation(turning, dt=0.5), one, 1000).state.velocity[0]
    found["change of |u|, Boris"] = abs(np.linalg.norm(end) / u - 1)
    return found


def _zero_crossings(t: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where y changes its sign, by straight lines."""
    i = np.nonzero(y[1:] * y[:-1] < 0)[0]
    return t[i] - y[i] * (t[i + 1] - t[i]) / (y[i + 1] - y[i])


def _refine_peak(t: np.ndarray, y: np.ndarray, k: int) -> tuple[float, float]:
    """The summit of the parabola through a peak and its neighbors."""
    a, b, c = y[k - 1 : k + 2]
    shift = (a - c) / (2 * (a - 2 * b + c))
    return t[k] + shift * (t[1] - t[0]), b - (a - c) * shift / 4


CASES = (
    Case(
        "landau-damping",
        damping_of_a_langmuir_wave,
        (
            Published("frequency", LANDAU_FREQUENCY, 0.05, "relative"),
            Published("damping", LANDAU_DAMPING, 0.05, "relative"),
        ),
        "plasma dispersion function; Landau 1946",
    ),
    Case(
        "plasma-oscillation",
        frequency_of_a_plasma,
        (
            Published("cold", 1.0, 0.01, "relative"),
            Published("warm", (1 + 3 * 0.1**2) ** 0.5, 0.01, "relative"),
        ),
        "Bohm & Gross 1949",
    ),
    Case(
        "two-stream",
        growth_of_two_streams,
        (Published("growth", 8**-0.5, 0.02, "relative"),),
        "Birdsall & Langdon 1991, section 5-6",
    ),
    Case(
        "weibel",
        filaments_of_two_beams,
        (
            Published("growth", 0.349573, 0.02, "relative"),
            Published("change of ε₀∇·E − ρ", 0.0, 1e-12, "at most"),
        ),
        "Fried 1959; Esirkepov 2001",
    ),
    Case(
        "relativistic-pushers",
        fast_charges_in_crossed_fields,
        (
            Published("drift, Vay", 0.0, 1e-10, "at most"),
            Published("drift, Higuera & Cary", 0.0, 1e-10, "at most"),
            Published("change of |u|, Boris", 0.0, 1e-12, "at most"),
        ),
        "exact; Vay 2008, Higuera & Cary 2017",
    ),
    Case(
        "boris",
        a_charge_in_crossed_fields,
        (
            Published("change of speed", 0.0, 1e-13, "at most"),
            Published("drift", 0.0, 1e-10, "at most"),
        ),
        "exact",
    ),
)
