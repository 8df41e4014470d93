"""Modules: the base class, `build` and the layers.

A module has one `forward` for training and inference: the tape of the input says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapetensor.arguments.spellings import missing_from as _missing_from
from tapetensor.nn import init as init
from tapetensor.nn.activations import CELU as CELU
from tapetensor.nn.activations import ELU as ELU
from tapetensor.nn.activations import GELU as GELU
from tapetensor.nn.activations import SELU as SELU
from tapetensor.nn.activations import Abs as Abs
from tapetensor.nn.activations import Cos as Cos
from tapetensor.nn.activations import Exp as Exp
from tapetensor.nn.activations import LeakyReLU as LeakyReLU
from tapetensor.nn.activations import Log as Log
from tapetensor.nn.activations import LogSoftmax as LogSoftmax
from tapetensor.nn.activations import ReLU as ReLU
from tapetensor.nn.activations import Sigmoid as Sigmoid
from tapetensor.nn.activations import SiLU as SiLU
from tapetensor.nn.activations import Sin as Sin
from tapetensor.nn.activations import Softmax as Softmax
from tapetensor.nn.activations import Softplus as Softplus
from tapetensor.nn.activations import Sqrt as Sqrt
from tapetensor.nn.activations import Square as Square
from tapetensor.nn.activations import Tanh as Tanh
from tapetensor.nn.adaptive_pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from tapetensor.nn.adaptive_pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from tapetensor.nn.adaptive_pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from tapetensor.nn.adaptive_pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from tapetensor.nn.attention import MultiHeadAttention as MultiHeadAttention
from tapetensor.nn.attention import UnbiasedMultiHeadAttention as UnbiasedMultiHeadAttention
from tapetensor.nn.build import build as build
from tapetensor.nn.composed_activations import GLU as GLU
from tapetensor.nn.composed_activations import Hardshrink as Hardshrink
from tapetensor.nn.composed_activations import Hardsigmoid as Hardsigmoid
from tapetensor.nn.composed_activations import Hardswish as Hardswish
from tapetensor.nn.composed_activations import Hardtanh as Hardtanh
from tapetensor.nn.composed_activations import Identity as Identity
from tapetensor.nn.composed_activations import LogSigmoid as LogSigmoid
from tapetensor.nn.composed_activations import Mish as Mish
from tapetensor.nn.composed_activations import PReLU as PReLU
from tapetensor.nn.composed_activations import PReLU1d as PReLU1d
from tapetensor.nn.composed_activations import ReLU6 as ReLU6
from tapetensor.nn.composed_activations import Softmin as Softmin
from tapetensor.nn.composed_activations import Softshrink as Softshrink
from tapetensor.nn.composed_activations import Softsign as Softsign
from tapetensor.nn.composed_activations import Tanhshrink as Tanhshrink
from tapetensor.nn.composed_activations import Threshold as Threshold
from tapetensor.nn.containers import AddInto as AddInto
from tapetensor.nn.containers import ParallelAdd as ParallelAdd
from tapetensor.nn.containers import ParallelMul as ParallelMul
from tapetensor.nn.containers import Repeated as Repeated
from tapetensor.nn.containers import ResidualAdd as ResidualAdd
from tapetensor.nn.containers import ResidualMul as ResidualMul
from tapetensor.nn.containers import Sequential as Sequential
from tapetensor.nn.containers import SplitInto as SplitInto
from tapetensor.nn.convolution import Conv1d as Conv1d
from tapetensor.nn.convolution import Conv2d as Conv2d
from tapetensor.nn.convolution import ConvTranspose1d as ConvTranspose1d
from tapetensor.nn.convolution import ConvTranspose2d as ConvTranspose2d
from tapetensor.nn.fields import buffer as buffer
from tapetensor.nn.fields import options as options
from tapetensor.nn.fields import parameter as parameter
from tapetensor.nn.fields import repeat as repeat
from tapetensor.nn.images import Bias2d as Bias2d
from tapetensor.nn.images import Flatten as Flatten
from tapetensor.nn.images import PixelShuffle as PixelShuffle
from tapetensor.nn.images import PixelUnshuffle as PixelUnshuffle
from tapetensor.nn.images import Reshape as Reshape
from tapetensor.nn.images import Unfold as Unfold
from tapetensor.nn.images import Upscale2d as Upscale2d
from tapetensor.nn.images import Upscale2dBy as Upscale2dBy
from tapetensor.nn.linear import Bias1d as Bias1d
from tapetensor.nn.linear import Dropout as Dropout
from tapetensor.nn.linear import DropoutOneIn as DropoutOneIn
from tapetensor.nn.linear import Embedding as Embedding
from tapetensor.nn.linear import Linear as Linear
from tapetensor.nn.linear import UnbiasedLinear as UnbiasedLinear
from tapetensor.nn.module import Module as Module
from tapetensor.nn.normalization import BatchNorm1d as BatchNorm1d
from tapetensor.nn.normalization import BatchNorm2d as BatchNorm2d
from tapetensor.nn.normalization import GroupNorm as GroupNorm
from tapetensor.nn.normalization import InstanceNorm1d as InstanceNorm1d
from tapetensor.nn.normalization import InstanceNorm2d as InstanceNorm2d
from tapetensor.nn.normalization import LayerNorm as LayerNorm
from tapetensor.nn.normalization import RMSNorm as RMSNorm
from tapetensor.nn.pooling import AvgPool1d as AvgPool1d
from tapetensor.nn.pooling import AvgPool2d as AvgPool2d
from tapetensor.nn.pooling import GlobalAvgPool2d as GlobalAvgPool2d
from tapetensor.nn.pooling import GlobalMaxPool2d as GlobalMaxPool2d
from tapetensor.nn.pooling import GlobalMinPool2d as GlobalMinPool2d
from tapetensor.nn.pooling import MaxPool1d as MaxPool1d
from tapetensor.nn.pooling import MaxPool2d as MaxPool2d
from tapetensor.nn.pooling import MinPool2d as MinPool2d
from tapetensor.nn.recurrent import GRU as GRU
from tapetensor.nn.recurrent import LSTM as LSTM
from tapetensor.nn.recurrent import RNN as RNN
from tapetensor.nn.recurrent_cells import GRUCell as GRUCell
from tapetensor.nn.recurrent_cells import LSTMCell as LSTMCell
from tapetensor.nn.recurrent_cells import RNNCell as RNNCell
from tapetensor.nn.stacked_recurrent import StackedGRU as StackedGRU
from tapetensor.nn.stacked_recurrent import StackedLSTM as StackedLSTM
from tapetensor.nn.stacked_recurrent import StackedRNN as StackedRNN
from tapetensor.nn.state_space import DiagonalSSM as DiagonalSSM
from tapetensor.nn.state_space import MambaBlock as MambaBlock
from tapetensor.nn.state_space import SelectiveSSM as SelectiveSSM
from tapetensor.nn.transformer import DecoderBlock as DecoderBlock
from tapetensor.nn.transformer import EncoderBlock as EncoderBlock
from tapetensor.nn.transformer import Transformer as Transformer
from tapetensor.nn.views import Selection as Selection
from tapetensor.nn.views import functional_call as functional_call
from tapetensor.nn.views import inference as inference
from tapetensor.nn.views import is_training as is_training

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a name of other libraries is here."""
        raise _missing_from(__name__, name)
