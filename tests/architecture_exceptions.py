"""What the rules of `architecture.py` allow, and why; and words that have a standard term."""

# Concrete classes that a layer may name.
CONCRETE_ALLOWED = {
    ("simulate", "Snapshot"): "what every observer reads",
    ("simulate", "Finite"): "the guard that every simulation has unless told otherwise",
    ("ensemble", "Estimate"): "the type of a mean with its error",
    ("ensemble", "ReplicaExchange"): "what members that exchange their states are advanced by",
    ("ensemble", "Replicas"): "their states",
    ("fit", "Snapshot"): "what every observer reads",
    ("storage", "Particles"): "files of particles hold them: H5MD",
    ("storage", "Field"): "files of fields hold them: netCDF",
}

# Words that this code once used for things that have a standard term.
PRIVATE_WORDS = {
    "pulled": "cotangents, pullback",
    "bars": "cotangents",
    "apart": "local",
    "at_home": "to_default_device",
    "back_in": "restore_rows",
    "restless": "needs_migration",
    "settled": "migrate, converged",
    "strayed": "distance_outside",
    "dealt": "equal_shard",
    "laid": "place",
    "recut": "reshard",
    "cadence": "interval",
    "cadences": "intervals",
    "tripwire": "GuardState",
    "wire": "guard state",
    "lanes": "members, batch",
    "keeper": "RunStorage",
    "book": "file",
    "walk": "forward, backward",
    "unstep": "reverse_step",
    "restep": "step_given_aux",
    "enlarged": "grow_to_fit",
    "retrace": "reversibility_report",
    "bath": "thermostat, heat_bath",
    "of_each": "local_rows",
    "as_the_first": "broadcast_first",
    "need_own": "require_compatible",
}

WORDS_ALLOWED = {
    ("cli", "bars"): "error bars",
    ("plot", "bars"): "error bars",
    ("coupling", "lanes"): "of vector registers",
}

# Where open-ended keyword arguments are the interface itself, not plumbing.
KEYWORDS_ALLOWED = {
    ("physkit/simulate/analysis/_evaluate.py", "evaluate"): "quantities by name, as of Every",
    (
        "physkit/core/numerics/_matrix_products.py",
        "at_full",
    ): "passed on to the function as they are",
    ("physkit/core/calls/_explain.py", "init"): "passes on what the class is built from",
    (
        "physkit/core/calls/_explain.py",
        "call",
    ): "passes on what the function that it stands for is given",
    (
        "physkit/core/calls/_methods.py",
        "call",
    ): "passes on what the method that it stands for is given",
    (
        "physkit/systems/_arguments.py",
        "checked",
    ): "passes on what the function that it stands for is given",
    ("physkit/core/_module.py", "*"): "passes field options on to equinox.field",
    (
        "physkit/core/numerics/_linear_call.py",
        "_abstract_eval",
    ): "how JAX hands a primitive its static parameters",
    (
        "physkit/core/numerics/_custom_jvp.py",
        "__call__",
    ): "passes on what the function that it stands for is given",
    ("physkit/core/_health.py", "check"): "context that the raised error carries",
    ("physkit/core/_terms.py", "__call__"): "calls a wrapped network as it is",
    ("physkit/observe/_observer.py", "__init__"): "names of what is recorded",
    ("physkit/observe/statistics/_averages.py", "__init__"): "names of what is averaged",
    ("physkit/simulate/loop/_carry.py", "replace"): "names of the parts to replace, checked",
    (
        "physkit/simulate/distributed/_sharded_carry.py",
        "replace",
    ): "names of the parts to replace, checked",
    ("physkit/observe/statistics/_first_passage.py", "__init__"): "the user's names of conditions",
    (
        "physkit/ensemble/statistics/_ensemble_statistics.py",
        "nearest",
    ): "the user's names of swept coordinates, checked",
    ("physkit/plot/_style.py", "legend"): "where matplotlib shall put it",
    (
        "physkit/fields/finite_volume/_conservation_law.py",
        "__init_subclass__",
    ): "passes on what the class statement is given",
    ("physkit/particles/_particles.py", "replace"): "names of the arrays to replace, checked",
    ("physkit/particles/_abstract_bodies.py", "replace"): "names of the arrays to replace, checked",
    (
        "physkit/particles/rigid/_rigid_motion.py",
        "replace",
    ): "names of the arrays to replace, checked",
    (
        "physkit/particles/rigid/_rigid_bodies.py",
        "*",
    ): "passes on what RigidBodies is built from",
    ("physkit/fields/_field.py", "replace"): "names of the parts to replace, checked",
    (
        "physkit/fields/_field_arithmetic.py",
        "__array_ufunc__",
    ): "NumPy's protocol, whose options are refused",
}
