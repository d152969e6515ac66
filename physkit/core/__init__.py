"""Floor 0: what everything stands on. Modules, components, terms, time, health, errors."""

from ._batching import any_in_batch as any_in_batch, cond_for_batch as cond_for_batch
from ._clock import Clock as Clock, Count as Count
from ._complex import scaled as scaled
from ._components import (
    AbstractComponent as AbstractComponent,
    Rate as Rate,
    State as State,
    as_change as as_change,
    combine as combine,
    cut as cut,
    gathered as gathered,
    get as get,
    on_each as on_each,
    put as put,
    shift as shift,
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
    ObjectiveError as ObjectiveError,
    ObserverError as ObserverError,
    OverlapError as OverlapError,
    ParameterError as ParameterError,
    PhyskitError as PhyskitError,
    RangeError as RangeError,
    SamplingError as SamplingError,
    SelectionError as SelectionError,
    ShapeError as ShapeError,
    SimulationDiverged as SimulationDiverged,
    StepSizeError as StepSizeError,
    SweepError as SweepError,
)
from ._growth import (
    AbstractGrowable as AbstractGrowable,
    grow as grow,
    growables as growables,
    outdated as outdated,
    overflow as overflow,
)
from ._health import (
    ADVICE as ADVICE,
    Fault as Fault,
    Faults as Faults,
    Health as Health,
    all_finite as all_finite,
    judge as judge,
)
from ._lattice import (
    Lattice as Lattice,
    Ruled as Ruled,
    isolated as isolated,
    power_above as power_above,
    small as small,
    valued as valued,
)
from ._linear import (
    linear_call as linear_call,
    moving as moving,
    split_moving as split_moving,
    tangent_like as tangent_like,
)
from ._module import (
    Module as Module,
    as_parameter as as_parameter,
    assembled as assembled,
    call_with as call_with,
    cast_floats as cast_floats,
    concrete as concrete,
    data as data,
    float_dtype as float_dtype,
    is_abstract as is_abstract,
    param as param,
    replaced as replaced,
    static as static,
)
from ._places import first_places as first_places
from ._safe import (
    safe_arctan2 as safe_arctan2,
    safe_divide as safe_divide,
    safe_norm as safe_norm,
    safe_power as safe_power,
    safe_sqrt as safe_sqrt,
    unfused as unfused,
    where_safe as where_safe,
)
from ._terms import (
    AbstractTendency as AbstractTendency,
    AbstractTerm as AbstractTerm,
    Function as Function,
    Network as Network,
    Tendencies as Tendencies,
)
