"""recurra: Apple MPSGraph's recurrent operations, portable and faithful, on any array library."""

from . import _backends as _backends, ops as ops
from ._backends._threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads
from ._dtypes import (
    DType as DType,
    bfloat16 as bfloat16,
    bool_ as bool_,
    complex64 as complex64,
    complex128 as complex128,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from ._errors import (
    ArgumentError as ArgumentError,
    ArgumentTypeError as ArgumentTypeError,
    DeviceError as DeviceError,
    DTypeError as DTypeError,
    FileFormatError as FileFormatError,
    GradientError as GradientError,
    GraphError as GraphError,
    RecurraError as RecurraError,
    RecurraWarning as RecurraWarning,
    ShapeError as ShapeError,
    UnsupportedError as UnsupportedError,
)
from ._executable import Executable as Executable
from ._explain import explain as explain
from ._graph import Graph as Graph
from ._ir import Operation as Operation, Tensor as Tensor
from ._op import ShapedType as ShapedType
from ._stream import Stream as Stream
from ._stream_state import StreamState as StreamState
from .ops._results import (
    GRUGradients as GRUGradients,
    GRUResults as GRUResults,
    LSTMGradients as LSTMGradients,
    LSTMResults as LSTMResults,
    SingleGateRNNGradients as SingleGateRNNGradients,
    SingleGateRNNResults as SingleGateRNNResults,
)
from .ops.activations import Activation as Activation, ParametricActivation as ParametricActivation
from .ops.gru import GRUDescriptor as GRUDescriptor, gru as gru, gru_gradients as gru_gradients
from .ops.lstm import LSTMDescriptor as LSTMDescriptor, lstm as lstm, lstm_gradients as lstm_gradients
from .ops.rnn import (
    SingleGateRNNDescriptor as SingleGateRNNDescriptor,
    single_gate_rnn as single_gate_rnn,
    single_gate_rnn_gradients as single_gate_rnn_gradients,
)
from .ops.states import join_directions as join_directions, split_directions as split_directions


def __getattr__(name: str) -> str:
    if name == "__version__":  # looked up when asked for: reading metadata takes longer than all the rest
        from ._version import __version__

        return __version__
    raise AttributeError(f"module 'recurra' has no attribute {name!r}")
