"""Every shipped system, small, with the units of its numbers."""

from collections.abc import Callable
from typing import Any, NamedTuple

from physkit.testing import Units

Unit = Callable[[Units], float]


def one(u: Units) -> float:
    return 1.0


def rate(u: Units) -> float:
    return 1 / u.time


def amount(u: Units) -> float:
    """Of anything that is counted, or has no dimension of mechanics: its own unit."""
    return u.temperature


class Case(NamedTuple):
    """A small version of a system.

    - `small`: arguments. `steps`: to run.
    - `unit`: of its fields or arrays, by component where there are several.
    - `fixed`: units that cannot be changed, as the system's equations are written in them, and `why`.
    - `units`: rows of UNITS that are others here, as what a waveform drives.
    """

    small: dict[str, Any]
    unit: Unit | dict[str, Unit] | None = None
    fixed: tuple[str, ...] = ()
    why: str = ""
    steps: int = 4
    units: dict[str, Unit] = {}  # noqa: RUF012


MECHANICS = ("length", "time", "mass")


RATES_OF_ONE = "a reaction of three molecules, u²v, and one of one have rate constants of 1"


CASES = {
    # Gravity
    "kepler": Case({}),
    "figure_eight": Case({}),
    "giant_planets": Case({}),
    "zeldovich_pancake": Case({"count": 32, "cells": 16}),
    "particle_mesh_universe": Case({"cells": 8}),
    # Atoms and one Brownian particle
    "lennard_jones_melt": Case({"cells": 4}, steps=10),
    "lennard_jones_box": Case({"every": 2}),
    "liquid_argon": Case({"cells": 4}, steps=50),
    "kob_andersen": Case({"cells": 4, "every": 2}),
    "kremer_grest_melt": Case({"cells": (5, 5, 4), "beads": 5, "every": 2}),
    "water_box": Case(
        {"cells": 3, "cutoff": 0.4},
        fixed=(*MECHANICS, "temperature"),
        why="it records kelvin and g/cm³",
    ),
    "go_model": Case(
        {"every": 2},
        fixed=(*MECHANICS, "temperature"),
        why="contacts are counted by lengths in its record",
    ),
    "double_well": Case({}, fixed=("length",), why="its wells are at −1 and 1"),
    # Plasmas
    "plasma_wave": Case({"count": 512, "cells": 16}),
    "landau_damping": Case({"count": 1024}),
    "plasma_oscillation": Case({}),
    "two_stream": Case({"count": 256, "cells": 16}),
    # In the plane, charges are lines: charge per length.
    "weibel_instability": Case(
        {"cells": 8, "per_cell": 1, "amplitude": 0.1, "every": 2},
        units={
            "ElectromagneticField.Hz": lambda u: u.charge / u.time,
            "Maxwell.vacuum_permittivity": lambda u: u.charge**2 * u.time**2 / u.mass / u.volume,
            "Maxwell.vacuum_permeability": lambda u: u.mass / u.charge**2,
        },
    ),
    "two_species_plasma": Case({"particles": 64, "cells": 16}),
    # Gas
    "sound_wave": Case({"cells": 16}),
    "kelvin_helmholtz": Case({"cells": 16}),
    "jeans_wave": Case({"cells": 16}),
    "viscous_shear": Case({"cells": 8}),
    "brio_wu": Case({"cells": 32}),
    "orszag_tang": Case({"cells": 16}),
    "sedov": Case({"cells": 32}, steps=2),
    "shock_tube": Case(
        {"left": (1.0, 0.75, 1.0), "right": (0.125, 0.0, 0.1), "dt": 1e-3, "cells": 32}
    ),
    "sod": Case({"cells": 32}),
    # Flows
    "taylor_green_2d": Case({"resolution": 16, "every": 2}, rate),
    "taylor_green_3d": Case({"resolution": 8, "every": 2}, lambda u: u.speed),
    "decaying_turbulence": Case({"resolution": 16, "every": 2}, rate),
    "kolmogorov_flow": Case({"resolution": 16, "every": 2}, rate),
    "probed_flow": Case({"resolution": 32}, rate),
    "particle_laden_taylor_green": Case({"count": 50, "cells": 16}, {"flow": lambda u: u.speed}),
    "lid_driven_cavity": Case({"cells": 8}),
    "convection_cell": Case({"cells": 8, "record": 2}, {"heat": amount}),
    "lattice_cavity": Case({"cells": 8}),
    "lattice_convection": Case({"cells": 8, "record": 2}),
    "shan_chen_droplet": Case({"cells": 12, "radius": 3.0}),
    "cylinder_in_channel": Case(
        {"cells": 12},
        units={"_Parabola.mean": lambda u: u.speed},
        fixed=("length",),
        why="what enters is a function of place in metres",
    ),
    "settling_disk": Case(
        {"cells": 16},
        fixed=(*MECHANICS, "temperature"),
        why="gravity and a channel in centimetres and grams",
    ),
    "surface_quasi_geostrophic": Case({"resolution": 8, "every": 2}, lambda u: u.speed),
    "stommel_gyre": Case({"cells": 8, "record": 2}),
    "acoustic_monopole": Case(
        {"cells": 8}, units={"WavePulse.amplitude": lambda u: u.mass / u.time}
    ),
    # In three steps nothing is in its layers yet, which remember numbers of several units.
    "elastic_half_space": Case({"cells": 104}, steps=3, units={"WavePulse.amplitude": one}),
    "electromagnetic_cavity": Case({"cells": (6, 5, 4)}),
    "dielectric_slab": Case({"cells": 12}),
    "thacker_bowl": Case({"cells": 16}),
    "barotropic_jet": Case(
        {"truncation": 6, "every": 2},
        one,
        fixed=("length", "time"),
        why="the Earth, in metres and seconds",
    ),
    "mountain_flow": Case(
        {"truncation": 6, "every": 2},
        one,
        fixed=("length", "time"),
        why="the Earth, in metres and seconds",
    ),
    "rossby_haurwitz_wave": Case(
        {"truncation": 6, "every": 2},
        one,
        fixed=("length", "time"),
        why="the Earth, in metres and seconds",
    ),
    "baroclinic_channel": Case({"cells": (6, 6, 4), "every": 2}),
    "baroclinic_turbulence": Case(
        {"cells": 8, "every": 2}, rate, ("length",), "∇⁸ over lengths of atoms is beyond float32"
    ),
    # Reactions
    "brusselator": Case(
        {"cells": (16,), "every": 2}, one, (*MECHANICS[1:], "temperature"), RATES_OF_ONE
    ),
    "gray_scott": Case(
        {"cells": (16, 16), "every": 2}, one, (*MECHANICS[1:], "temperature"), RATES_OF_ONE
    ),
    "fisher_front": Case({"cells": 64, "every": 2}, amount),
    "fitzhugh_nagumo": Case(
        {"cells": (8, 8), "every": 2},
        one,
        (*MECHANICS[1:], "temperature"),
        "v − v³/3 has a rate of 1",
    ),
    "keller_segel": Case({"cells": (8, 8), "every": 2}, amount),
    "porous_medium": Case({"cells": 8, "every": 2}, amount),
    # Patterns
    "allen_cahn": Case({"cells": (8, 8), "every": 2}, one),
    "swift_hohenberg": Case({"cells": (8, 8), "every": 2}, lambda u: u.length**-2),
    "phase_field_crystal": Case({"cells": (8, 8), "every": 2}, lambda u: u.length**-2),
    "complex_ginzburg_landau": Case({"cells": (8, 8), "every": 2}, amount),
    "spinodal_decomposition": Case(
        {"cells": (16, 16), "every": 2},
        one,
        (*MECHANICS, "temperature"),
        "cells, interfaces and wells of 1",
    ),
    # Waves
    "burgers_wave": Case({"cells": 32, "every": 2}, lambda u: u.speed),
    "kdv_solitons": Case({"cells": 64, "every": 2}, amount),
    "kuramoto_sivashinsky": Case({"cells": 32, "every": 2}, amount),
    "plucked_string": Case(
        {"cells": 20, "every": 2},
        {"displacement": amount, "velocity": lambda u: rate(u) * amount(u)},
    ),
    "coherent_state": Case({"cells": 16}, lambda u: u.length**-0.5),
    "tunneling": Case(
        {"cells": 256, "length": 64.0, "packet_width": 2.0, "every": 2}, lambda u: u.length**-0.5
    ),
    # Spins
    "ising_model": Case({"cells": (8, 8)}, None, (*MECHANICS, "temperature"), "J = 1, sites of 1"),
    "potts_model": Case({"cells": (8, 8)}, None, (*MECHANICS, "temperature"), "J = 1, sites of 1"),
    # Qubits
    "ising_quench": Case({"spins": 4}, one, (*MECHANICS, "temperature"), "ħ = 1, couplings of 1"),
    # Molecules
    "oregonator": Case({}, None, (*MECHANICS, "temperature"), "rates are Gillespie's numbers"),
    "schloegl": Case({}, None, (*MECHANICS, "temperature"), "x and time are pure numbers"),
    # Ordinary differential equations
    "hare_and_lynx": Case({}, amount, steps=20),
    "lorenz": Case(
        {}, one, (*MECHANICS, "temperature"), "Lorenz's x, y, z and time are pure numbers"
    ),
}
