"""The tape: what is recorded, how it is replayed backwards, and the gradients that come of it."""

from __future__ import annotations

from tapetensor.tape.pullbacks import Kernel as Kernel
from tapetensor.tape.pullbacks import Pullback as Pullback
from tapetensor.tape.pullbacks import Pullbacks as Pullbacks
from tapetensor.tape.tape import NoneTape as NoneTape
from tapetensor.tape.tape import OwnedTape as OwnedTape
from tapetensor.tape.tape import Tape as Tape
