"""Sound and elastic waves: exact steps, a monopole, absorbing layers, absorption, speeds."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.fields import AcousticField, ElasticField
from physkit.fields.equations import (
    ConvolutionalPML,
    ElasticWaves,
    KSpaceAcoustics,
    PointSource,
    PowerLawAbsorption,
    WavePulse,
)
from physkit.geometry import Grid
from physkit.integrators import StaggeredLeapfrog
from physkit.observe import Every, Sensors
from physkit.simulate import Simulation, simulate
from physkit.systems import acoustic_monopole, elastic_half_space, monopole_pressure, rayleigh_speed

from .._case import Case, Published


def exact_steps() -> dict[str, Any]:
    """A hump of pressure on a ring of 64 cells, at three lengths of the step up to 0.99 of the limit: the
    largest difference from half of it running each way."""
    grid, speed, steps = Grid([1.0], (64,)), 2.0, 37
    acoustics = KSpaceAcoustics(speed, 3.0)

    def hump(x):
        return jnp.exp(-(((x % 1 - 0.5) / 0.06) ** 2))

    def worst(dt):
        sim = Simulation(StaggeredLeapfrog(acoustics), dt=dt)
        end = simulate(sim, AcousticField.of(grid, {"pressure": hump}), steps).state.pressure.data
        (x,), way = grid.coordinates(), speed * steps * dt
        return jnp.max(jnp.abs(end - 0.5 * (hump(x - way) + hump(x + way))))

    limit = acoustics.longest_step(grid)
    return {"largest error": np.max([jax.jit(worst)(f * limit) for f in (0.3, 0.7, 0.99)])}


def monopole() -> dict[str, Any]:
    """A pulse of fluid at a point between the points of 48 × 48 × 48 cells: the pressure at 8 to 12 cells
    from it, over its peak there."""
    sim, start = acoustic_monopole()
    steps = math.floor(0.78 / float(sim.dt))
    found = np.asarray(jax.jit(lambda s: simulate(sim, s, steps).frames["pressure"])(start))
    t = np.arange(steps + 1)[:, None] * float(sim.dt)
    waveform = sim.integrator.equations.sources[0].waveform
    exact = np.asarray(monopole_pressure(np.array([1 / 6, 0.2, 0.25]), t, waveform))
    error = np.max(np.abs(found - exact), axis=0) / np.max(np.abs(exact), axis=0)
    return {"largest error over the peak": np.max(error)}


def absorbing_layer() -> dict[str, Any]:
    """A point source in the middle of 40 × 40 cells with ten of an absorbing layer around: what differs
    from a box so wide that nothing comes back, two cells from a side and from a corner, over the largest
    pressure there. dB are 20 log₁₀ of amplitudes."""
    pulse, dt, steps = WavePulse(2 * math.pi / 10, 4.0, 20.0), 0.5, 150

    def probe(cells, layer):
        middle, length = cells / 2, float(cells)
        acoustics = KSpaceAcoustics(sources=PointSource([middle, middle], pulse), layer=layer)
        at = [[middle, middle + 18], [middle + 18, middle + 18]]
        sim = Simulation(
            StaggeredLeapfrog(acoustics), dt=dt, observers=Every(1, p=Sensors(at, "pressure"))
        )
        start = acoustics.add_memory(AcousticField.of(Grid([length, length], (cells, cells))))
        return np.asarray(jax.jit(lambda s: simulate(sim, s, steps).frames["p"])(start))

    exact, found = probe(108, None), probe(60, ConvolutionalPML(10))
    error = np.max(np.abs(found - exact), axis=0) / np.max(np.abs(exact), axis=0)
    side, corner = 20 * np.log10(error)
    return {"reflection at a side, dB": side, "reflection at a corner, dB": corner}


def absorption() -> dict[str, Any]:
    """Waves of 8 to 32 wavelengths to a ring of 256 cells in a fluid that absorbs as α₀ω^1.5: how they decay,
    over α₀ω^1.5; the exponent that fits their decay; and how much faster they are than at ω → 0, over what
    causality asks for."""
    y, coefficient, modes = 1.5, 2e-6, np.array([8, 16, 32])
    grid = Grid([1.0], (256,))
    acoustics = KSpaceAcoustics(absorption=PowerLawAbsorption(coefficient, y))
    k = 2 * np.pi * modes
    dt, steps = 0.2 * acoustics.longest_step(grid), 400
    sim = Simulation(
        StaggeredLeapfrog(acoustics),
        dt=dt,
        observers=Every(
            1, waves=lambda now: now.state.pressure.spectrum().coefficients[modes].real
        ),
    )

    def wave(x):
        return sum(jnp.cos(number * x) for number in k)

    start = acoustics.add_memory(AcousticField.of(grid, {"pressure": wave}))
    p = np.asarray(jax.jit(lambda s: simulate(sim, s, steps).frames["waves"])(start))
    decay, omega = [], []
    for mode in p.T:
        triples = np.stack([mode[3:-1], mode[2:-2]], axis=1)
        a, b = np.linalg.lstsq(triples, mode[4:], rcond=None)[0]
        rate = np.log(np.roots([1, -a, -b])[0]) / dt
        decay.append(-rate.real)
        omega.append(abs(rate.imag))
    decay, omega = np.array(decay), np.array(omega)
    alpha = decay * k / omega  # per length
    slope = np.polyfit(np.log(omega), np.log(alpha), 1)[0]
    faster = coefficient * math.tan(0.5 * math.pi * y) * omega ** (y - 1)
    return {
        "largest |α / α₀ω^y − 1|": np.max(np.abs(alpha / (coefficient * omega**y) - 1)),
        "exponent": slope,
        "largest |dispersion / exact − 1|": np.max(np.abs((k / omega - 1) / faster - 1)),
    }


def elastic_speeds() -> dict[str, Any]:
    """Plane P and S waves across 24 × 24 cells, in the direction (2, 1) with 11 cells a wavelength, and across
    12 × 12 × 12 in the direction (1, 1, 1) with 7: the speed over √((λ + 2μ)/ρ) or √(μ/ρ)."""
    lame, mu, rho, out = 2.0, 1.0, 1.5, {}
    for name, cells, numbers, across in (
        ("plane", (24, 24), (2, 1), (-1, 2)),
        ("space", (12, 12, 12), (1, 1, 1), (1, -1, 0)),
    ):
        grid = Grid([1.0] * len(cells), cells)
        waves = ElasticWaves(lame, mu, rho)
        dt = 0.5 * waves.longest_step(grid)
        k = 2 * np.pi * np.array(numbers)
        for kind, along, square in (
            ("P", numbers, (lame + 2 * mu) / rho),
            ("S", across, mu / rho),
        ):

            def motion(*x, part, k=k):
                return part * jnp.cos(sum(a * b for a, b in zip(k, x)))

            values = {
                f"velocity_{axis}": lambda *x, part=float(part), motion=motion: motion(
                    *x, part=part
                )
                for axis, part in zip("xyz", along)
            }
            sim = Simulation(
                StaggeredLeapfrog(waves),
                dt=dt,
                observers=Every(1, v=lambda now: now.state.velocity_x.data.reshape(-1)[0]),
            )
            start = ElasticField.of(grid, values)
            v = np.asarray(jax.jit(lambda s, sim=sim: simulate(sim, s, 60).frames["v"])(start))[1:]
            # Of one frequency: v₊ + v₋ = 2 cos(ω dt) v.
            cosine = np.sum((v[2:] + v[:-2]) * v[1:-1]) / (2 * np.sum(v[1:-1] ** 2))
            speed = math.acos(cosine) / dt / np.linalg.norm(k)
            out[f"{kind} in the {name}, c / exact"] = speed / math.sqrt(square)
    return out


def rayleigh() -> dict[str, Any]:
    """A blow on a half space with λ = μ: the time that the surface wave takes from one sensor to another, four
    S wavelengths on, as its speed over Rayleigh's; and how much of its height is left."""
    sim, start = elastic_half_space(distances=(0.4, 1.2))
    steps = math.ceil(2.0 / float(sim.dt))
    v = np.asarray(jax.jit(lambda s: simulate(sim, s, steps).frames["velocity"])(start))
    # The lag at which both agree best, by spectra with 64 times as many lags.
    spectra = np.fft.rfft(v, 2 * steps, axis=0)
    lags = np.fft.irfft(spectra[:, 1] * spectra[:, 0].conj(), 64 * 2 * steps)
    lag = np.argmax(lags[: 64 * steps]) / 64 * float(sim.dt)
    return {
        "c / c_R": 0.8 / lag / rayleigh_speed(math.sqrt(3), 1.0),
        "height far / near": np.max(np.abs(v[:, 1])) / np.max(np.abs(v[:, 0])),
    }


CASES = (
    Case(
        "k-space-sound",
        exact_steps,
        (Published("largest error", 0.0, 1e-10, "at most"),),
        "d'Alembert 1747; Tabei, Mast & Waag 2002",
    ),
    Case(
        "monopole",
        monopole,
        (Published("largest error over the peak", 0.0, 0.01, "at most"),),
        "Pierce 2019, §4.3",
        slow=True,
    ),
    Case(
        "sound-layer",
        absorbing_layer,
        (
            Published("reflection at a side, dB", -60.0, 0.0, "at most"),
            Published("reflection at a corner, dB", -60.0, 0.0, "at most"),
        ),
        "Roden & Gedney 2000; Treeby & Cox 2010",
        slow=True,
    ),
    Case(
        "power-law-absorption",
        absorption,
        (
            Published("largest |α / α₀ω^y − 1|", 0.0, 0.01, "at most"),
            Published("exponent", 1.5, 0.005),
            Published("largest |dispersion / exact − 1|", 0.0, 0.02, "at most"),
        ),
        "Treeby & Cox 2010, eqs. 9–11",
    ),
    Case(
        "elastic-speeds",
        elastic_speeds,
        tuple(
            Published(f"{kind} in the {where}, c / exact", 1.0, 0.005)
            for where in ("plane", "space")
            for kind in "PS"
        ),
        "Virieux 1986; Levander 1988",
    ),
    Case(
        "rayleigh-wave",
        rayleigh,
        (Published("c / c_R", 1.0, 0.01), Published("height far / near", 1.0, 0.1)),
        "Rayleigh 1885; Lamb 1904",
        slow=True,
    ),
)
