"""`pk.Name`: the front page, the families, their stubs and the exports of the layers agree.

`python tests/test_public_api.py` rewrites the stubs from `physkit/_names.py`.
"""

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

import physkit as pk
from physkit._names import FAMILIES, FRONT_PAGE, OTHER_LAYERS, SHOWN_LAYERS

PACKAGE = Path(pk.__file__).parent
ROOT = PACKAGE.parent
MAX_FRONT_PAGE = 130  # names that a user can hold in the head

# Public to other layers and to authors of new physics, not worth a place in scripts: they are imported
# from their layer. Each new name of a layer goes either here or into `physkit/_names.py`.
PLUMBING = {
    "native": {
        "FoundNeighbors", "MapStencil", "NearCells", "NotTranslatableError", "TermsOfPairs", "Tiling",
        "c_compiler", "kernels_are_used", "map_on_gpus", "map_stencil", "native_code_is_used",
        "native_or_xla", "search_neighbors", "sum_on_gpus", "sum_over_partners",
    },
    "coupling": {"require_box_of_grid"},
    "html": {
        "Markup", "curve", "data_uri", "describe_shape", "describe_values", "escape", "expandable", "facts",
        "field_picture", "fragment", "image", "page", "paragraph", "points", "read", "render_tree",
        "sample", "series_table", "span", "table", "tree",
    },
    "core": {
        "ADVICE", "Count", "KeyLike", "as_arguments", "as_arrays", "as_count", "as_generator", "as_key",
        "as_state", "as_state_like", "count_of",
        "is_none", "is_random_key", "is_rectangular", "describe",
        "explain_attribute", "explain_call", "explain_class", "explain_missing_name",
        "explain_traced_values", "find_name", "note_precision", "show_numbers",
        "AbstractExactComponent", "AbstractGrowable", "AbstractResizable",
        "AbstractSlottedComponent", "Aux", "Cache", "EXIT_INTERRUPTED", "EXIT_TRY_AGAIN",
        "FixedPoint", "Frame", "GROWTH_FACTOR", "Key", "Plan", "PyTree", "Rate", "ScaledFixedPoint",
        "State", "StepCount", "StorageKind", "all_finite", "any_in_batch", "as_device_array",
        "as_increment", "as_parameter",
        "at_full_precision", "at_time", "bounded_loop", "index_of_set_bit",
        "build_unchecked", "call_isolated", "call_user_function", "cast_floats",
        "collect_faults", "combine_rates", "concrete_primal", "concrete_value", "cond_for_batch", "depends_on",
        "closure_values", "default_values", "drop_outdated_programs", "explain_exhausted_memory",
        "has_operation", "is_users_class", "read_outside", "refuse_inside_traces", "users_functions",
        "values_outside",
        "drop_fixed_point", "einsum", "evaluate_now", "exact_bits", "find_growables", "float_dtype",
        "barrier_on_the_way_back", "barrier_on_the_way_forward", "fusion_barrier",
        "get_component", "grow_caches", "has_fixed_point", "has_overflow",
        "import_extra", "import_on_use",
        "instantiate_zero_tangents", "invalidate_caches", "is_abstract", "is_concrete", "is_on_cpu",
        "ArrayLayout", "FEW_NUMBERS", "Joined", "StaticPart", "split_arrays",
        "PLAIN_KERNELS", "QUICK_COMPILER_OPTIONS", "gpu_compiler_options",
        "array_bytes", "jit_by_platform", "jit_by_size", "jit_once",
        "LINEAR_CALL", "is_literal", "is_exact_component", "is_tracing", "lagged_products", "linear_call",
        "custom_jvp", "kept_for_derivative", "mark_results", "num_scan_constants", "matmul",
        "names_of_terms", "nonzero_indices", "nonzero_tangents", "numbers_by_name", "tensordot", "vdot",
        "partition_by_tangent", "path_name", "phi_functions", "poison_where", "multiply_by_power_of_two",
        "power_of_two", "power_of_two_above",
        "printable", "programs_of", "put_component",
        "ratio",
        "recomputed", "replace_fields", "replicate", "round_before_add", "safe_arctan2", "safe_divide",
        "separate_kernels", "trace_linear_call", "called_program",
        "require_castable", "require_component", "require_in_range", "require_returned",
        "require_above", "require_nonnegative", "require_positive", "safe_norm", "safe_power", "safe_sqrt",
        "scale_array", "safe_clip", "safe_max", "safe_maximum", "safe_minimum",
        "shard", "shift", "sum_rates", "times_i", "unshard", "vary_alike", "varying_axes", "warn",
        "where_safe", "with_prescribed_values",
        "with_tangent_of", "zero_out_of_range",
    },
    "geometry": {
        "AXES", "AbstractDomain", "Boundaries", "Components", "Coordinates", "Parities", "Parity", "Slab",
        "StrainedSpace",
        "Wall",
        "as_space_time_value", "concatenate_blocks", "determinant", "heights", "inverse_matrix",
        "parse_boundaries", "AnyGrid", "require_box", "shape_for_wall", "shard_array",
        "slab_axis",
        "unknown_boundaries", "unshard_array", "with_comm",
    },
    "fields.elliptic": {"divergence_of_flux", "divide_waves"},
    "fields.lattice_boltzmann": {"require_populations"},
    "fields.operators": {"half_cell_neighbors"},
    "fields": {
        "LayerMemory",
        "band_limited", "hat", "interpolate_at_points",
        "as_rates", "component_fields", "derivative_symbol", "finite_volume_rate",
        "reconstruct_faces", "require_one_grid", "require_same_location", "square_wavenumber",
    },
    "fields.equations": {
        "AbstractGrip", "AcousticPlan", "ElasticPlan", "MaxwellPlan", "SolidHold", "as_solids",
        "ghosted_coordinates",
        "per_component", "require_complex", "require_inside", "symbol_of_laplacian",
    },
    "fields.finite_volume": {
        "RiemannFan", "Variables",
    },
    "observe": {
        "as_observer",
        "AbstractCorrelation", "BlockAverageResult", "observe_replicas", "particles_in", "require_field",
        "require_maxwell",
    },
    "storage": {
        "Column", "FolderLock", "FrameSharding", "Identity", "IdentityChanges", "LOCK_NAME", "LabeledArray",
        "Output", "as_names", "named_columns",
        "RECORDING_SUFFIXES", "RestoredCheckpoint", "SWEEP_FILE", "TEMPORARY_PREFIX", "Table",
        "collect_provenance", "write_npz_file",
        "compare_identities", "create_exclusively", "damaged_error", "describe_array", "describe_numbers",
        "describe_writer", "digest", "fingerprint", "identify_process", "is_abandoned", "is_holder_gone",
        "is_trajectory", "load_component", "make_folder", "named_leaves", "open", "open_atomically",
        "program_digest", "provenance_changes",
        "read_checkpoint_table", "read_holder", "read_regular", "read_table",
        "remove_temporaries", "replace_atomically", "set_aside", "shortest_text", "to_dataframe",
        "to_dataset", "to_path", "write_atomically", "write_dataframe", "write_table",
    },
    "fit": {
        "AUDIT_FILE", "FIT_FILE", "SAMPLES_FILE", "element_labels", "read_samples", "write_samples",
        "AbstractErrors", "AbstractMethod", "AbstractSearch", "Attempt", "Coordinates", "FisherSpectrum",
        "FramesAt", "GradientGrowth", "History", "LossProgram", "ObjectiveInputs", "Problem",
        "ReweightedAverage", "SearchHistory", "SearchOutcome", "SearchRequest", "SearchStart",
        "Selection", "Where", "make_coordinates", "make_problem", "select",
    },
    "ensemble": {
        "AbstractEvolution", "AbstractReduction", "BatchMemory", "BootstrapEstimate", "Design",
        "EnsembleStatistics",
        "ExecutionResult", "FailedMember", "MemberArray", "MemoryStore", "QUANTILES", "SEARCH_FILE",
        "SubmittedWorkers", "SweepFolder", "SweepStatus", "WorkerResult", "collect", "execute",
        "execute_with_workers", "predict_batch_memory", "read_generations", "requeue_this_job",
        "run_worker", "status", "submit",
    },
    "simulate": {
        "AbstractAdjoint", "AdjointCost", "AdjointReport",
        "ChunkAttempt", "ChunkDriver", "ChunkScheduler", "CompiledKinds", "DistributedDomain",
        "FRAME_BYTES", "Growth", "MAX_GROWTHS", "Probe", "Progress",
        "ReversibilityReport", "StopRequest", "advance_member", "check_terms", "compiled_bytes",
        "compiler_options", "count_blocks", "ending_at_once", "frame_bytes_per_block", "init_and_observe",
        "without_garbage_collection",
        "max_blocks_per_chunk",
        "member_code_digest", "observe_initial", "plan_start", "probe", "read_crash_record", "summary",
    },
}  # fmt: skip
PLACED: dict[str, set[str]] = {}
for _layers in (FRONT_PAGE, *(layers for _, layers in FAMILIES.values())):
    for _layer, _names in _layers.items():
        if _layer.split(".")[0] not in SHOWN_LAYERS:
            PLACED.setdefault(_layer, set()).update(_names)


def exports(init: str) -> list[str]:
    """Names that the text of an `__init__.py` re-exports explicitly, as `X as Y`."""
    found = []
    for node in ast.walk(ast.parse(init)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found += [a.asname for a in node.names if a.asname]
    return found


def layer_exports() -> dict[str, set[str]]:
    """Layer (`fields.equations`) → the public names of its `__init__`; not of layers that are shown whole."""
    found = {}
    for init in PACKAGE.rglob("__init__.py"):
        layer = ".".join(init.parent.relative_to(PACKAGE).parts)
        if layer and layer.split(".")[0] not in SHOWN_LAYERS and layer != "cli":
            found[layer] = set(exports(init.read_text()))
    return found


def misplaced(placed, plumbing, layers) -> list[str]:
    """Names that a layer exports and nobody has placed, or that somebody placed and are gone."""
    everywhere = {name for names in [*placed.values(), *plumbing.values()] for name in names}
    found = [
        f"physkit.{layer} exports {name}: put it into physkit/_names.py, or into PLUMBING of this file"
        for layer, names in layers.items()
        for name in sorted(names - everywhere)
    ]
    for table in (placed, plumbing):
        for layer, names in table.items():
            gone = sorted(set(names) - layers.get(layer, set()))
            found += [f"physkit.{layer} does not export {name}" for name in gone]
    for layer in placed:
        both = sorted(set(placed[layer]) & plumbing.get(layer, set()))
        found += [f"{layer}.{name} is both public and plumbing" for name in both]
    return found


def stubs() -> dict[Path, str]:
    """File → text of the stubs of the package and of its families."""
    written = "# Written by `python tests/test_public_api.py` from `physkit/_names.py`."
    lines = [written, ""]
    lines += [f"from . import {name} as {name}" for name in sorted(SHOWN_LAYERS + OTHER_LAYERS)]
    lines.append("from ._stubs import (")
    lines += [f"    {name} as {name}," for name in sorted(FAMILIES)]
    lines.append(")")
    lines += [_import(f".{layer}", names) for layer, names in FRONT_PAGE.items()]
    found = {PACKAGE / "__init__.pyi": "\n".join([*lines, "", "__version__: str", ""])}
    for family, (_, layers) in FAMILIES.items():
        lines = [written, "", *(_import(f"physkit.{layer}", n) for layer, n in layers.items())]
        found[PACKAGE / "_stubs" / f"{family}.pyi"] = "\n".join([*lines, ""])
    return found


def _import(module: str, names) -> str:
    shown = "\n".join(f"    {name} as {name}," for name in sorted(names))
    return f"from {module} import (\n{shown}\n)"


def test_every_public_name_is_placed():
    assert not (found := misplaced(PLACED, PLUMBING, layer_exports())), "\n".join(found)


def test_a_misplaced_name_is_found():
    layers = {"core": {"Module", "param"}}
    assert not misplaced({"core": {"Module"}}, {"core": {"param"}}, layers)
    assert misplaced({"core": {"Module"}}, {}, layers)
    assert misplaced({"core": {"Module", "gone"}}, {"core": {"param"}}, layers)
    assert misplaced({"core": {"Module"}}, {"core": {"param", "gone"}}, layers)
    assert misplaced({"core": {"Module", "param"}}, {"core": {"param"}}, layers)


def test_front_page_is_short_and_names_nothing_twice():
    names = [n for names in FRONT_PAGE.values() for n in names]
    names += [*FAMILIES, *SHOWN_LAYERS, *OTHER_LAYERS]
    assert len(set(names)) == len(names)
    assert len([n for names in FRONT_PAGE.values() for n in names]) <= MAX_FRONT_PAGE
    assert set(dir(pk)) <= {*names, "__version__"}


@pytest.mark.parametrize("layer", FRONT_PAGE)
def test_front_page_resolves(layer):
    home = importlib.import_module(f"physkit.{layer}")
    for name in FRONT_PAGE[layer]:
        assert getattr(pk, name) is getattr(home, name)
        assert name in dir(pk)


@pytest.mark.parametrize("family", FAMILIES)
def test_family_resolves_and_completes(family):
    namespace = getattr(pk, family)
    members = [name for names in FAMILIES[family][1].values() for name in names]
    assert dir(namespace) == sorted(members)
    assert namespace.__doc__ == FAMILIES[family][0]
    for layer, names in FAMILIES[family][1].items():
        for name in names:
            assert getattr(namespace, name) is getattr(
                importlib.import_module(f"physkit.{layer}"), name
            )


def test_layers_resolve():
    on_disk = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    front = {name for names in FRONT_PAGE.values() for name in names}
    verbs = on_disk & front  # layers named like the verb in them: `pk.simulate`
    assert {*SHOWN_LAYERS, *OTHER_LAYERS} == on_disk - verbs
    for name in verbs:
        importlib.import_module(f"physkit.{name}")
        assert getattr(pk, name) is getattr(sys.modules[f"physkit.{name}"], name)
    for name in (*SHOWN_LAYERS, *OTHER_LAYERS):
        assert getattr(pk, name) is importlib.import_module(f"physkit.{name}")


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("Nothing", "Nothing"),
        ("Particle", "did you mean 'Particles'"),
        ("VanLeer", "pk.limiters.VanLeer"),
        ("VanLear", "did you mean 'limiters.VanLeer'"),
        ("MartynaTobiasKlein", "it is pk.integrators.MartynaTobiasKlein"),
    ],
)
def test_an_unknown_name_says_where_to_look(missing, says):
    with pytest.raises(AttributeError, match=re.escape(says)):
        getattr(pk, missing)


def test_an_unknown_member_of_a_family_lists_the_others():
    with pytest.raises(AttributeError, match=r"no 'Nothing'; available: .*'VanLeer'"):
        pk.limiters.Nothing  # noqa: B018


@pytest.mark.parametrize(
    ("module", "some"),
    [("physkit", {"Box", "limiters"}), ("physkit.reactions", {"ReactionNetwork"})],
)
def test_a_star_imports_the_public_names(module, some):
    names = {}
    exec(f"from {module} import *", names)
    assert some <= names.keys()
    assert "open" not in names


def test_stubs_are_up_to_date():
    expected = stubs()
    assert {p: p.read_text() for p in expected} == expected, "run: python tests/test_public_api.py"
    assert set((PACKAGE / "_stubs").iterdir()) == {p for p in expected if p.parent.name == "_stubs"}


def test_one_version_everywhere():
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation[1] == pk.__version__
    assert f"## {pk.__version__}" in (ROOT / "CHANGELOG.md").read_text()


if __name__ == "__main__":
    (PACKAGE / "_stubs").mkdir(exist_ok=True)
    for _path, _text in stubs().items():
        _path.write_text(_text)
    sys.exit(0)
