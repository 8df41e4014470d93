"""Training on many ranks: processes that MPI starts and connects, each with a share of the batch.

    mpiexec -n 4 python train.py

needs the extra ``mpi`` (``pip install tapetensor[mpi]``), which brings mpi4py and, as the run time,
mpich. Importing this package imports neither; `world` does.
"""

from __future__ import annotations

from tapetensor.distributed.communicator import Communicator as Communicator
from tapetensor.distributed.communicator import alone as alone
from tapetensor.distributed.communicator import leave_unstarted as _leave_unstarted
from tapetensor.distributed.communicator import world as world
from tapetensor.distributed.reducer import Reducer as Reducer
from tapetensor.distributed.reducer import data_parallel as data_parallel
from tapetensor.distributed.transport import guard_the_start as _guard_the_start

_guard_the_start(_leave_unstarted)
