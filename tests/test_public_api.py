"""`pk.Name`: the lazy table, its `.pyi`, and the folders' own exports tell one story.

`python tests/test_public_api.py` rewrites `physkit/__init__.pyi` from the table.
"""

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

import physkit as pk

PACKAGE = Path(pk.__file__).parent
ROOT = PACKAGE.parent

# Public to other floors and to authors of new physics, not worth a place in every script: they are
# imported from their folder. Each new name of a folder goes either here or into the table.
PLUMBING = {
    "core": {
        "ADVICE", "AbstractGrowable", "Aux", "Cache", "Key", "Plan", "PyTree", "StepCount", "FixedPoint", "Rate", "ScaledFixedPoint", "State", "all_finite",
        "EXIT_INTERRUPTED", "EXIT_TRY_AGAIN", "find", "names_of_terms", "path_name",
        "any_in_batch", "as_increment", "as_parameter", "build_unchecked", "call_user_function", "cast_floats",
        "combine_rates", "concrete_value", "cond_for_batch", "shard", "float_dtype", "unshard", "get_component", "grow_caches",
        "find_growables", "is_abstract", "call_isolated", "collect_faults", "linear_call", "nonzero_tangents", "replicate",
        "invalidate_caches", "has_overflow",
        "power_of_two_above",
        "nonzero_indices", "put_component", "replace_fields",
        "safe_arctan2", "safe_divide", "safe_norm", "safe_power", "safe_sqrt",
        "scale_array", "shift", "zero_out_of_range", "partition_by_tangent", "instantiate_zero_tangents", "round_before_add", "with_tangent_of",
        "where_safe",
    },
    "geometry": {
        "AXES", "Boundaries", "Components", "Parities", "Parity", "Slab", "Wall", "as_space_time_value",
        "parse_boundaries", "shard_array", "determinant", "heights", "inverse_matrix", "unshard_array",
        "concatenate_blocks", "require_box", "require_divisible", "with_comm", "slab_axis", "unknown_boundaries",
    },
    "fields": {
        "as_rates", "derivative_symbol", "reconstruct_faces", "component_fields", "finite_volume_rate",
        "require_one_grid", "require_same_location", "square_wavenumber",
    },
    "fields.equations": {"require_complex", "per_component", "symbol_of_laplacian"},
    "fields.operators": {"RiemannFan", "Variables"},
    "particles": {"Ownership", "mobile_velocity", "widen_migration_margin"},
    "particles.neighbors": {
        "AbstractPairs", "PAIRS_PER_BLOCK", "Cells", "AllPairs", "AllPairsWithin", "Halo", "ListedPairs", "SMALL_SYSTEM",
        "ShardedNeighborList", "all_pairs_within", "capacity_for", "shortfall", "max_over_devices", "sharded_neighbor_list",
    },
    "particles.forces": {
        "AbstractScaledForce", "AbstractTruncated", "PairCache", "ShardedTuples", "TRUNCATIONS",
        "check_truncation",
        "direct_sum", "exact_pair_sum", "pair_sum", "truncated",
    },
    "integrators": {
        "AbstractExponential", "AbstractImplicitExplicit", "AbstractRungeKutta",
        "AbstractSplitting", "AbstractStateless", "ImplicitExplicit", "select_clock", "total_signal_rate",
    },
    "observe": {"AbstractCorrelation", "BlockAverageResult", "Frame", "require_field"},
    "storage": {
        "Column", "FrameSharding", "RECORDING_SUFFIXES", "FolderLock", "Output", "RestoredCheckpoint", "TEMPORARY_PREFIX", "Table", "provenance_changes",
        "read_checkpoint_table", "load_component", "digest", "fingerprint", "read_holder", "is_holder_gone",
        "is_trajectory", "make_folder", "require_xarray", "open", "collect_provenance", "read_table", "identify_process",
        "write_table", "write_atomically", "describe_writer",
    },
    "capacity_for": {
        "AbstractErrors", "AbstractMethod", "Attempt", "FisherSpectrum", "FramesAt",
        "GradientGrowth", "History", "ReweightedAverage", "Selection", "Where", "select",
    },
    "ensemble": {
        "AbstractReduction", "BootstrapEstimate", "Design", "EnsembleStatistics", "FailedMember", "MemberArray",
        "MemoryStore", "BatchMemory", "QUANTILES", "SweepStatus", "SubmittedWorkers", "SweepFolder", "ExecutionResult", "WorkerResult",
        "execute", "execute_with_workers", "collect", "grid", "predict_batch_memory", "random", "status", "submit",
        "run_worker",
    },
    "simulate": {
        "AbstractAdjoint", "AdjointCost", "AdjointReport", "DistributedDomain", "Growth", "LARGE_STATE_BYTES", "ChunkScheduler",
        "Probe", "ReversibilityReport", "StopRequest", "CPU_COMPILER_OPTIONS", "read_crash_record", "observe_initial",
        "advance_member", "probe", "summary", "count_blocks",
    },
}  # fmt: skip
# Reached by the folder's own name: `pk.testing.check_force`, `pk.plot.drift`.
NAMESPACES = ("parallel", "systems", "plot", "testing", "cli")


def exports(init: str) -> list[str]:
    """Names that the text of an `__init__.py` re-exports explicitly, as `X as Y`."""
    found = []
    for node in ast.parse(init).body:
        if isinstance(node, ast.ImportFrom):
            found += [a.asname for a in node.names if a.asname]
    return found


def folder_exports() -> dict[str, set[str]]:
    """Folder (`particles.forces`) → the public names of its `__init__`."""
    found = {}
    for init in PACKAGE.rglob("__init__.py"):
        folder = ".".join(init.parent.relative_to(PACKAGE).parts)
        if folder and folder.split(".")[0] not in NAMESPACES:
            found[folder] = set(exports(init.read_text()))
    return found


def undecided(table, plumbing, folders) -> list[str]:
    """Names that a folder exports and nobody has placed, or that somebody placed and are gone."""
    placed = {name for names in [*table.values(), *plumbing.values()] for name in names}
    found = [
        f"physkit.{folder} exports {name}: put it into _EXPORTS of physkit/__init__.py, "
        "or into PLUMBING of this file"
        for folder, names in folders.items()
        for name in sorted(names - placed)
    ]
    for where in (table, plumbing):
        for folder, names in where.items():
            gone = sorted(set(names) - folders.get(folder, set()))
            found += [f"physkit.{folder} does not export {name}" for name in gone]
    for folder in table:
        both = sorted(set(table[folder]) & plumbing.get(folder, set()))
        found += [f"{folder}.{name} is in both lists" for name in both]
    return found


def stub(table, folders) -> str:
    """The text of `__init__.pyi` for a table of exports."""
    lines = ["# Written by `python tests/test_public_api.py` from the table in __init__.py.", ""]
    lines += [f"from . import {f} as {f}" for f in sorted(folders)]
    for folder, names in table.items():
        shown = "\n".join(f"    {name} as {name}," for name in sorted(names))
        lines.append(f"from .{folder} import (\n{shown}\n)")
    return "\n".join([*lines, "", "__version__: str", ""])


def test_every_public_name_has_its_place():
    assert not (found := undecided(pk._EXPORTS, PLUMBING, folder_exports())), "\n".join(found)


def test_a_name_without_its_place_is_found():
    folders = {"core": {"Module", "param"}}
    assert not undecided({"core": ("Module",)}, {"core": {"param"}}, folders)
    assert undecided({"core": ("Module",)}, {}, folders)
    assert undecided({"core": ("Module", "gone")}, {"core": {"param"}}, folders)
    assert undecided({"core": ("Module",)}, {"core": {"param", "gone"}}, folders)
    assert undecided({"core": ("Module", "param")}, {"core": {"param"}}, folders)


def test_no_name_twice():
    names = [name for names in pk._EXPORTS.values() for name in names] + list(pk._FOLDERS)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("folder", pk._EXPORTS)
def test_names_resolve(folder):
    home = importlib.import_module(f"physkit.{folder}")
    for name in pk._EXPORTS[folder]:
        assert getattr(pk, name) is getattr(home, name)
        assert name in dir(pk)


def test_folders_resolve():
    on_disk = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    verbs = on_disk & set(pk._HOME)  # folders named like the verb in them: `pk.simulate`
    assert set(pk._FOLDERS) == on_disk - verbs
    for name in verbs:
        importlib.import_module(f"physkit.{name}")
        assert getattr(pk, name) is getattr(sys.modules[f"physkit.{name}"], name)
    for name in pk._FOLDERS:
        assert getattr(pk, name) is importlib.import_module(f"physkit.{name}")


def test_an_unknown_name_says_so():
    with pytest.raises(AttributeError, match="Nothing"):
        pk.Nothing  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'Particles'"):
        pk.Particle  # noqa: B018


def test_stub_is_up_to_date():
    written = (PACKAGE / "__init__.pyi").read_text()
    assert written == stub(pk._EXPORTS, pk._FOLDERS), "run: python tests/test_public_api.py"


def test_one_version_everywhere():
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation[1] == pk.__version__
    assert f"## {pk.__version__}" in (ROOT / "CHANGELOG.md").read_text()


if __name__ == "__main__":
    (PACKAGE / "__init__.pyi").write_text(stub(pk._EXPORTS, pk._FOLDERS))
    sys.exit(0)
