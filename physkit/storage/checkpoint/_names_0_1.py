"""Names of classes and fields in files that physkit 0.1 wrote, by today's names.

Files of 0.1 open with any later version: checkpoints name leaves and classes as 0.1 did, and are compared in
those names (see `_version_vocabulary.py`). Whoever renames a class that a state, a carry or a simulation may
hold, or a field of one, adds the pair here; a field that is new since then is None. Trajectories, fields,
series and sweeps hold no names of the code.
"""

# A class today: its name in 0.1. Private classes as well: a state's boundaries hold some.
CLASSES: dict[str, str] = {
    "AdvectionByField": "AdvectionBy",
    "AllPairs": "EveryPair",
    "AllPairsWithin": "EveryWithin",
    "CFLSubsteps": "Courant",
    "CFLSubstepsAux": "CourantAux",
    "CGridShallowWaterState": "StaggeredWater",
    "CartesianComm": "Cartesian",
    "CorrelationState": "CorrelationMemory",
    "CourantViolation": "Exceeded",
    "EquationsOfMotion": "Newton",
    "FieldIncrement": "Change",
    "FieldValues": "Values",
    "FixedPoint": "Lattice",
    "FixedPointParticles": "ParticleLattice",
    "GravityWaveDrift": "Filled",
    "GravityWaveKick": "Pressed",
    "GuardState": "Tripwire",
    "MeshComm": "MeshAxes",
    "Mirror": "Reflect",
    "Ownership": "Share",
    "ParticleIncrement": "Motion",
    "PassiveTracers": "Advected",
    "Periodic": "Wrap",
    "PiecewiseConstant": "Constant",
    "PositivityGuard": "Positive",
    "PositivityViolation": "Breach",
    "PotentialPropagator": "PotentialPhase",
    "ReferenceEnergy": "EnergyAtStart",
    "ScaledFixedPoint": "Ruled",
    "SemilinearAux": "SplitCarried",
    "SemilinearPlan": "SplitPlan",
    "SerialComm": "Serial",
    "ShallowWaterFV": "Flooding",
    "ShallowWaterState": "Water",
    "ShardedCarry": "CutCarry",
    "ShardedNeighborList": "SlabList",
    "ShardedTuples": "SlabTuples",
    "SpaceTimeFunction": "Profile",
    "StepCount": "Count",
    "StreamingBlocks": "Blocks",
    "StructureFactorState": "StructureMemory",
    "ValueComponent": "Part",
    "WaveDrift": "Drift",
    "WaveKick": "Kick",
    "_ConservedInflow": "_Beyond",
}

# A field of whichever class, a user's own as well.
EVERYWHERE: dict[str, str] = {"component": "of"}

# Fields by class.
FIELDS: dict[str, dict[str, str | None]] = {
    "AdvectionByField": {"velocity": "by"},
    "Box": {"periodic": "axes"},
    "CFLSubsteps": {"cfl": "number"},
    "Carry": {"observer_state": "memory", "is_initial": "fresh"},
    "CorrelationState": {"num_samples": "looks"},
    "CourantLimit": {"cfl": "number"},
    "CourantViolation": {"cfl": "number"},
    "CurveMean": {"num_samples": "looks"},
    "Field": {"fixed_point": "lattice"},
    "FieldValues": {"part": None},
    "CompressibleEuler": {"conductivity": None, "keeps_positive": None, "viscosity": None},
    "Forces": {"term_names": None},
    "Gas": {"gamma": None, "scalars": None},
    "HarmonicAngles": {"tuples": "corners"},
    "HarmonicBonds": {"tuples": "ends"},
    "KortewegDeVries": {"nonlinearity": "steepening"},
    "KuramotoSivashinsky": {"nonlinearity": "steepening"},
    "ListedPairs": {
        "row_of_particle": "place",
        "particle_of_row": "first",
        "num_local": "own",
        "reverse": None,
    },
    "Moments": {"sum_of_squares": "spread"},
    "NeighborList": {"num_rebuilds": "rebuilds"},
    "NestedCheckpoint": {"max_unsplit": "flat"},
    "Ownership": {
        "mask": "alive",
        "global_index": "place",
        "num_present": "present",
        "num_leaving": "leaving",
        "send_capacity": "room",
        "num_particles": "total",
        "migration_margin": "margin",
        "box_lengths": "lengths",
    },
    "PairCache": {"neighbors": "list", "current": None},
    "Pairwise": {
        "excluded_partners": "partners",
        "use_neighbor_list": "listed",
        "plan": None,
        "switch_start": None,
    },
    "ParticleMesh": {"interaction": "law"},
    "Particles": {
        "fixed_point": "lattice",
        "ownership": "share",
        "species_names": None,
        "constraints": None,
    },
    "PassiveTracers": {"flow": "by"},
    "Positions": {"sites": None},
    "Reversible": {"range_factor": "room"},
    "ScaledFixedPoint": {"fixed_point": "lattice"},
    "ShardedNeighborList": {
        "row_of_particle": "place",
        "particle_of_row": "first",
        "peak_counts": "needs",
        "num_rebuilds": "rebuilds",
        "reverse": None,
    },
    "ShardedTuples": {"num_owned": "own", "peak_counts": "needs"},
    "Spectrum": {"field_type": None},
    "StreamingBlocks": {"num_samples": "looks"},
    "Tendencies": {"term_names": None},
    "Velocities": {"sites": None},
}

# Fields in the paths of leaves of a state: their names in 0.1, and today's. This way round, as the shapes of a
# state are read from the file's paths when there is no tree yet whose classes could be asked.
STATE_PATHS: dict[str, str] = {"share": "ownership", "alive": "mask"}
