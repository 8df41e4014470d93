"""Files: models, optimizers and generators as ``.safetensors`` or ``.npz``, by name."""

from __future__ import annotations

from tapetensor.io.files import load as load
from tapetensor.io.files import load_checkpoint as load_checkpoint
from tapetensor.io.files import read as read
from tapetensor.io.files import save as save
from tapetensor.io.files import save_checkpoint as save_checkpoint
from tapetensor.io.files import write as write
from tapetensor.io.names import Loaded as Loaded
from tapetensor.io.state import Notes as Notes
from tapetensor.io.state import load_state_dict as load_state_dict
from tapetensor.io.state import state_dict as state_dict
