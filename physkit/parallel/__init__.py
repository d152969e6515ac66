"""Devices and processes: communicators, SPMD programs, and groups of processes."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._collective_trace import (
        Collective as Collective,
        trace_collectives as trace_collectives,
        trace_part_dependence as trace_part_dependence,
    )
    from ._communicator import (
        AbstractComm as AbstractComm,
        CartesianComm as CartesianComm,
        MeshComm as MeshComm,
        SerialComm as SerialComm,
    )
    from ._compilation_cache import (
        cache_folder as cache_folder,
        note_on_compiling as note_on_compiling,
        usable_cores as usable_cores,
        use_compilation_cache as use_compilation_cache,
    )
    from ._device_rows import (
        addressable_rows as addressable_rows,
        gather_to_host as gather_to_host,
        gather_to_host_memory as gather_to_host_memory,
        replicated_row as replicated_row,
        to_default_device as to_default_device,
    )
    from ._device_selection import DevicesLike as DevicesLike, resolve_devices as resolve_devices
    from ._environment import environment_variable as environment_variable, versions as versions
    from ._process_group import (
        ProcessGroup as ProcessGroup,
        initialize as initialize,
        process_group as process_group,
        single_process as single_process,
    )
    from ._process_info import ProcessInfo as ProcessInfo, detect_process as detect_process
    from ._show_versions import installation as installation, show_versions as show_versions
    from ._spmd import (
        BACKEND_VARIABLE as BACKEND_VARIABLE,
        Spmd as Spmd,
        choose_backend as choose_backend,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
