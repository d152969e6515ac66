"""What arguments and attributes are called elsewhere, and here. Data only."""

# A word of other codes → what it is called here, where the callee has such a name: the first that fits.
SYNONYMS: dict[str, tuple[str, ...]] = {
    # particles
    "positions": ("position",), "pos": ("position",), "x": ("position", "values"),
    "r": ("position",), "R": ("position",), "coords": ("position", "coordinates"),
    "coordinates": ("position",), "velocities": ("velocity",), "vel": ("velocity",),
    "v": ("velocity",), "V": ("velocity", "potential"), "momentum": ("velocity",),
    "masses": ("mass",), "m": ("mass",), "charges": ("charge",), "q": ("charge",),
    "types": ("species",), "type": ("species",), "elements": ("species",),
    "atom_types": ("species",), "ids": ("id",), "fixed": ("frozen",), "n": ("num_particles",),
    "N": ("num_particles",), "natoms": ("num_particles",), "n_particles": ("num_particles",),
    "box": ("space", "lengths"), "cell": ("space", "vectors", "lengths"), "domain": ("space",),
    "box_size": ("lengths", "space"), "size": ("lengths", "length"), "L": ("lengths", "length"),
    "length": ("lengths",), "pbc": ("periodic",), "boundary": ("periodic", "boundaries"),
    # forces and potentials
    "rcut": ("cutoff",), "r_cut": ("cutoff",), "r_c": ("cutoff",), "rc": ("cutoff",),
    "r_cutoff": ("cutoff",), "cutoff_radius": ("cutoff",), "eps": ("epsilon",), "sig": ("sigma",),
    "buffer": ("skin",), "dr_threshold": ("skin",), "k": ("stiffness", "wavenumber", "kill"),
    "spring_constant": ("stiffness",), "r0": ("length",), "theta0": ("angle",),
    "G": ("constant", "gravitational_constant", "strength"), "g": ("acceleration", "gravity"),
    "gravity": ("acceleration",), "E": ("field",), "function": ("potential",),
    # integrators and baths
    "gamma": ("friction",), "damping": ("friction",), "kT": ("temperature",), "T": ("temperature",),
    "temp": ("temperature",), "kB": ("temperature",), "tau": ("period",), "forces": ("force",),
    "potential": ("force",), "rhs": ("tendency",), "substeps": ("count",), "n_substeps": ("count",),
    "courant": ("cfl",), "cfl_number": ("cfl",),
    # grids, fields, equations
    "cells": ("shape",), "resolution": ("shape",), "num_points": ("shape",), "N_cells": ("shape",),
    "dx": ("spacing",), "extent": ("space",), "values": ("data",), "array": ("data",),
    "bc": ("boundary",), "boundaries": ("boundary",), "boundary_conditions": ("boundary",),
    "nu": ("viscosity", "diffusivity"), "D": ("diffusivity",), "kappa": ("diffusivity",),
    "alpha": ("diffusivity",), "diffusion": ("diffusivity",), "c": ("speed", "velocity"),
    "F": ("feed",), "limiter": ("reconstruction",), "flux": ("riemann",), "solver": ("riemann",),
    # simulations and verbs
    "timestep": ("dt",), "time_step": ("dt",), "delta_t": ("dt",), "step_size": ("dt",),
    "h": ("dt", "hbar"), "observer": ("observers",), "reporters": ("observers",),
    "callbacks": ("observers",), "logger": ("observers",), "guard": ("guards",),
    "n_steps": ("steps",), "num_steps": ("steps",), "nsteps": ("steps",), "nt": ("steps",),
    "iterations": ("steps",), "seed": ("key",), "rng": ("key",), "prng": ("key",),
    "random_key": ("key",), "rng_key": ("key",), "verbose": ("progress",), "output": ("to",),
    "folder": ("to",), "out": ("to",), "path": ("to",), "filename": ("to", "path"),
    "restart": ("resume",), "max_time": ("wall_time",), "walltime": ("wall_time",),
    "every": ("interval", "seconds"), "n_workers": ("workers", "engine"),
    "num_workers": ("workers", "engine"), "gpus": ("devices",), "params": ("where",),
    # observers
    "rmax": ("r_max",), "r_cutoff_max": ("r_max",), "nbins": ("bins",), "num_bins": ("bins",),
    "n_bins": ("bins",), "max_lag": ("lags",), "density": ("density",), "rho": ("density",),
}  # fmt: skip

# A word that is no argument of this callee, and what to do instead.
ADVICE_FOR: dict[str, str] = {
    "dt": "the time step belongs to the simulation: Simulation(integrator, dt=…)",
    "t_end": "give steps=…: a run lasts steps · dt",
    "t_max": "give steps=…: a run lasts steps · dt",
    "tmax": "give steps=…: a run lasts steps · dt",
    "t_final": "give steps=…: a run lasts steps · dt",
    "duration": "give steps=…: a run lasts steps · dt",
    "T_end": "give steps=…: a run lasts steps · dt",
    "Re": "the Reynolds number is 1/viscosity in units of the flow's speed and length",
    "lr": "the learning rate belongs to the method: method=pk.fitting.Optax(optax.adam(0.01))",
    "learning_rate": "the learning rate belongs to the method: method=pk.fitting.Optax(optax.adam(0.01))",
    "optimizer": "give method=pk.fitting.Optax(optax.adam(0.01)), LevenbergMarquardt() or another",
    "scheme": "see its docstring for how derivatives are taken",
    "cutoff": "the cutoff belongs to the force: Pairwise(potential, cutoff=…)",
    "temperature": "give the temperature to a thermostat: BAOAB(force, temperature=…, friction=…)",
    "kB": "temperatures are energies: give k_B T",
    "order": "see its docstring: orders are classes or schemes of their own",
    "hours": "give minutes=…",
}

# An attribute that is no attribute here, by class name or for all ("*").
ATTRIBUTES: dict[str, dict[str, str]] = {
    "Simulation": {
        verb: f"verbs are functions: pk.{verb}(simulation, state, steps)"
        for verb in ("run", "simulate", "init", "step", "diagnose")
    },
    "Field": {
        "shape": "it is field.data.shape; the grid's is field.grid.shape",
        "T": "the values are field.data: field.data.T",
        "mean": "field.integral() / volume, or jnp.mean(field.data)",
        "max": "jnp.max(field.data)",
        "min": "jnp.min(field.data)",
        "sum": "field.integral(), or jnp.sum(field.data)",
        "plot": "pk.plot.field(field)",
    },
    "Grid": {
        "x": "coordinates are grid.coordinates(), one array per axis",
        "N": "the numbers of cells are grid.shape",
        "n": "the numbers of cells are grid.shape",
    },
    "*": {
        "replace": "for a copy with other values: equinox.tree_at(lambda m: m.field, module, value)",
        "numpy": "arrays are its fields: numpy.asarray(of one of them); all: pk.interop.to_numpy(it)",
        "to_numpy": "pk.interop.to_numpy(it)",
        "item": "arrays are its fields: float(of one of them)",
        "copy": "nothing changes in place: no copy is needed",
    },
}
