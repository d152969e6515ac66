"""Floor 1: devices. What a program may say to the others, and how one program runs on all of them."""

from ._comm import (
    AbstractComm as AbstractComm,
    Cartesian as Cartesian,
    MeshAxes as MeshAxes,
    Serial as Serial,
)
from ._detect import Place as Place, detected as detected
from ._placement import Placement as Placement, placed as placed
from ._rows import (
    at_home as at_home,
    on_host as on_host,
    one_row as one_row,
    own_rows as own_rows,
)
from ._spmd import VARIABLE as VARIABLE, Spmd as Spmd, chosen_backend as chosen_backend
from ._start import Job as Job, alone as alone, job as job, start as start
from ._surroundings import environment as environment, versions as versions
from ._traffic import Message as Message, messages as messages
