"""Storage on disk: checkpoints, recordings of frames, tables, exports, and readers that trust no file."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._atomic import (
        TEMPORARY_PREFIX as TEMPORARY_PREFIX,
        make_folder as make_folder,
        open_atomically as open_atomically,
        read_regular as read_regular,
        remove_temporaries as remove_temporaries,
        replace_atomically as replace_atomically,
        to_path as to_path,
        write_atomically as write_atomically,
    )
    from ._lock import (
        LOCK_NAME as LOCK_NAME,
        FolderLock as FolderLock,
        create_exclusively as create_exclusively,
        describe_writer as describe_writer,
        identify_process as identify_process,
        is_abandoned as is_abandoned,
        is_holder_gone as is_holder_gone,
        read_holder as read_holder,
    )
    from ._npz import write_npz_file as write_npz_file
    from ._provenance import (
        collect_provenance as collect_provenance,
        provenance_changes as provenance_changes,
    )
    from ._untrusted_hdf5 import damaged_error as damaged_error, set_aside as set_aside
    from .checkpoint._checkpoint import (
        RestoredCheckpoint as RestoredCheckpoint,
        load_checkpoint as load_checkpoint,
        read_checkpoint_table as read_checkpoint_table,
        save_checkpoint as save_checkpoint,
    )
    from .checkpoint._checkpoint_folder import Checkpoints as Checkpoints
    from .checkpoint._identity import (
        Identity as Identity,
        IdentityChanges as IdentityChanges,
        compare_identities as compare_identities,
        describe_array as describe_array,
        describe_numbers as describe_numbers,
    )
    from .checkpoint._program_digest import program_digest as program_digest
    from .checkpoint._tree_description import digest as digest, fingerprint as fingerprint
    from .exporters._column_files import (
        write_dataframe as write_dataframe,
    )
    from .exporters._export import export as export
    from .exporters._number_text import shortest_text as shortest_text
    from .recording._frame_sharding import FrameSharding as FrameSharding
    from .recording._labeled_arrays import (
        LabeledArray as LabeledArray,
        as_names as as_names,
        named_columns as named_columns,
        to_dataframe as to_dataframe,
        to_dataset as to_dataset,
    )
    from .recording._load_component import (
        is_trajectory as is_trajectory,
        load_component as load_component,
    )
    from .recording._other_formats import RECORDING_SUFFIXES as RECORDING_SUFFIXES
    from .recording._output import SWEEP_FILE as SWEEP_FILE, Output as Output
    from .recording._recorded_series import Series as Series
    from .recording._recording import Recording as Recording, open as open
    from .recording._series_files import named_leaves as named_leaves
    from .recording._table import (
        Column as Column,
        Table as Table,
        read_table as read_table,
        write_table as write_table,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
