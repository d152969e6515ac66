"""Floor 8: files. Checkpoints, trajectories, fields, series, and reading what is not trusted."""

from ._checkpoint import (
    Checkpoints as Checkpoints,
    Restored as Restored,
    checkpoint_table as checkpoint_table,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from ._component import component as component, is_trajectory as is_trajectory
from ._durable import (
    TEMPORARY as TEMPORARY,
    FolderLock as FolderLock,
    holder_of as holder_of,
    is_gone as is_gone,
    make_folder as make_folder,
    this_process as this_process,
    write_whole as write_whole,
    writer_of as writer_of,
)
from ._export import export as export
from ._output import Output as Output
from ._provenance import changed as changed, provenance as provenance
from ._recording import ENDINGS as ENDINGS, Recording as Recording, Series as Series, open as open
from ._shards import Cutting as Cutting
from ._structure import digest as digest, fingerprint as fingerprint
from ._table import (
    Column as Column,
    Table as Table,
    read_table as read_table,
    write_table as write_table,
)
from ._xarray import need_xarray as need_xarray
