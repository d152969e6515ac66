"""What everything stands on: modules, components, terms, time, health, errors."""

from ._clock import Clock as Clock, StepCount as StepCount
from ._components import (
    AbstractComponent as AbstractComponent,
    as_increment as as_increment,
    at_time as at_time,
    combine_rates as combine_rates,
    get_component as get_component,
    put_component as put_component,
    replicate as replicate,
    require_component as require_component,
    shard as shard,
    shift as shift,
    unshard as unshard,
    with_prescribed_values as with_prescribed_values,
)
from ._errors import (
    CapacityError as CapacityError,
    ClusterError as ClusterError,
    ComponentError as ComponentError,
    ConvergenceError as ConvergenceError,
    CutoffError as CutoffError,
    DamagedFileError as DamagedFileError,
    DeclarationError as DeclarationError,
    DeviceError as DeviceError,
    DiskFullError as DiskFullError,
    FileError as FileError,
    FileInUseError as FileInUseError,
    GradientError as GradientError,
    MismatchError as MismatchError,
    MissingExtraError as MissingExtraError,
    NoEnergyError as NoEnergyError,
    NotReversible as NotReversible,
    NoVirialError as NoVirialError,
    ObjectiveError as ObjectiveError,
    ObserverError as ObserverError,
    OverlapError as OverlapError,
    ParameterError as ParameterError,
    PhyskitError as PhyskitError,
    PhyskitWarning as PhyskitWarning,
    RangeError as RangeError,
    SamplingError as SamplingError,
    SelectionError as SelectionError,
    ShapeError as ShapeError,
    SimulationDiverged as SimulationDiverged,
    StepSizeError as StepSizeError,
    SweepError as SweepError,
    explain_exhausted_memory as explain_exhausted_memory,
    printable as printable,
)
from ._exact_component import (
    AbstractExactComponent as AbstractExactComponent,
    drop_fixed_point as drop_fixed_point,
    exact_bits as exact_bits,
    has_fixed_point as has_fixed_point,
    is_exact_component as is_exact_component,
)
from ._exit_status import (
    EXIT_INTERRUPTED as EXIT_INTERRUPTED,
    EXIT_TRY_AGAIN as EXIT_TRY_AGAIN,
)
from ._faults import ADVICE as ADVICE, Fault as Fault, Faults as Faults
from ._find import find as find, path_name as path_name
from ._fixed_point import (
    FixedPoint as FixedPoint,
    ScaledFixedPoint as ScaledFixedPoint,
    power_of_two_above as power_of_two_above,
    zero_out_of_range as zero_out_of_range,
)
from ._growable import (
    GROWTH_FACTOR as GROWTH_FACTOR,
    AbstractGrowable as AbstractGrowable,
    AbstractResizable as AbstractResizable,
    find_growables as find_growables,
    grow_caches as grow_caches,
    has_overflow as has_overflow,
    invalidate_caches as invalidate_caches,
)
from ._health import (
    Health as Health,
    all_finite as all_finite,
    collect_faults as collect_faults,
)
from ._module import (
    Module as Module,
    as_parameter as as_parameter,
    build_unchecked as build_unchecked,
    call_user_function as call_user_function,
    cast_floats as cast_floats,
    data as data,
    float_dtype as float_dtype,
    is_abstract as is_abstract,
    param as param,
    replace_fields as replace_fields,
    static as static,
)
from ._slotted_component import AbstractSlottedComponent as AbstractSlottedComponent
from ._storage_kind import StorageKind as StorageKind
from ._terms import (
    AbstractTendency as AbstractTendency,
    AbstractTerm as AbstractTerm,
    Function as Function,
    Network as Network,
    Tendencies as Tendencies,
    names_of_terms as names_of_terms,
    sum_rates as sum_rates,
)
from ._types import (
    Aux as Aux,
    Cache as Cache,
    Frame as Frame,
    Key as Key,
    Plan as Plan,
    PyTree as PyTree,
    Rate as Rate,
    State as State,
)
from .calls._arguments import as_arguments as as_arguments
from .calls._concrete import (
    as_device_array as as_device_array,
    concrete_primal as concrete_primal,
    concrete_value as concrete_value,
    evaluate_now as evaluate_now,
    is_concrete as is_concrete,
    is_tracing as is_tracing,
    refuse_inside_traces as refuse_inside_traces,
)
from .calls._conversions import (
    Count as Count,
    KeyLike as KeyLike,
    as_arrays as as_arrays,
    as_count as as_count,
    as_generator as as_generator,
    as_key as as_key,
    as_state as as_state,
    count_of as count_of,
    is_random_key as is_random_key,
    is_rectangular as is_rectangular,
    note_precision as note_precision,
)
from .calls._explain import (
    describe as describe,
    explain_attribute as explain_attribute,
    explain_call as explain_call,
    explain_class as explain_class,
    explain_missing_name as explain_missing_name,
    explain_traced_values as explain_traced_values,
    find_name as find_name,
    show_numbers as show_numbers,
)
from .calls._extras import import_extra as import_extra
from .calls._import_on_use import import_on_use as import_on_use
from .calls._numbers_by_name import numbers_by_name as numbers_by_name
from .calls._ranges import (
    require_castable as require_castable,
    require_in_range as require_in_range,
)
from .calls._returned import (
    as_state_like as as_state_like,
    require_returned as require_returned,
)
from .calls._signs import (
    require_above as require_above,
    require_nonnegative as require_nonnegative,
    require_positive as require_positive,
)
from .calls._warn import warn as warn
from .calls.outside._captured import (
    drop_outdated_programs as drop_outdated_programs,
    read_outside as read_outside,
)
from .calls.outside._code import (
    closure_values as closure_values,
    default_values as default_values,
    is_users_class as is_users_class,
    users_functions as users_functions,
    values_outside as values_outside,
)
from .numerics._batching import any_in_batch as any_in_batch, cond_for_batch as cond_for_batch
from .numerics._custom_jvp import custom_jvp as custom_jvp
from .numerics._dependence import (
    called_program as called_program,
    depends_on as depends_on,
    has_operation as has_operation,
    is_literal as is_literal,
    mark_results as mark_results,
    num_scan_constants as num_scan_constants,
    programs_of as programs_of,
)
from .numerics._extremes import (
    safe_clip as safe_clip,
    safe_max as safe_max,
    safe_maximum as safe_maximum,
    safe_minimum as safe_minimum,
)
from .numerics._lagged_products import lagged_products as lagged_products
from .numerics._linear_call import (
    LINEAR_CALL as LINEAR_CALL,
    linear_call as linear_call,
    trace_linear_call as trace_linear_call,
    vary_alike as vary_alike,
    varying_axes as varying_axes,
)
from .numerics._matrix_products import (
    at_full_precision as at_full_precision,
    einsum as einsum,
    matmul as matmul,
    tensordot as tensordot,
    vdot as vdot,
)
from .numerics._nonzero import (
    index_of_set_bit as index_of_set_bit,
    nonzero_indices as nonzero_indices,
)
from .numerics._placement import (
    PLAIN_KERNELS as PLAIN_KERNELS,
    QUICK_COMPILER_OPTIONS as QUICK_COMPILER_OPTIONS,
    array_bytes as array_bytes,
    gpu_compiler_options as gpu_compiler_options,
    is_on_cpu as is_on_cpu,
    jit_by_platform as jit_by_platform,
    jit_by_size as jit_by_size,
    jit_once as jit_once,
)
from .numerics._poison import poison_where as poison_where
from .numerics._products import (
    multiply_by_power_of_two as multiply_by_power_of_two,
    power_of_two as power_of_two,
    scale_array as scale_array,
    times_i as times_i,
)
from .numerics._rounding import (
    call_isolated as call_isolated,
    fusion_barrier as fusion_barrier,
    round_before_add as round_before_add,
    separate_kernels as separate_kernels,
    with_tangent_of as with_tangent_of,
)
from .numerics._safe import (
    phi_functions as phi_functions,
    ratio as ratio,
    safe_arctan2 as safe_arctan2,
    safe_divide as safe_divide,
    safe_norm as safe_norm,
    safe_power as safe_power,
    safe_sqrt as safe_sqrt,
    where_safe as where_safe,
)
from .numerics._tangents import (
    barrier_on_the_way_back as barrier_on_the_way_back,
    barrier_on_the_way_forward as barrier_on_the_way_forward,
    instantiate_zero_tangents as instantiate_zero_tangents,
    is_none as is_none,
    kept_for_derivative as kept_for_derivative,
    nonzero_tangents as nonzero_tangents,
    partition_by_tangent as partition_by_tangent,
    recomputed as recomputed,
)
from .numerics._units import (
    SI as SI,
    UnitSystem as UnitSystem,
    atomic as atomic,
    lennard_jones_units as lennard_jones_units,
    metal as metal,
    molecular as molecular,
    real as real,
)
from .programs._array_layout import (
    FEW_NUMBERS as FEW_NUMBERS,
    ArrayLayout as ArrayLayout,
    Joined as Joined,
)
from .programs._bounded_loop import bounded_loop as bounded_loop
from .programs._static_part import StaticPart as StaticPart, split_arrays as split_arrays
