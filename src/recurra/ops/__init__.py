"""Every operation, as a function on graph tensors (a node is made) or on arrays (computed at once)."""

from .activations import Activation as Activation
from .casting import cast as cast, reinterpret_cast as reinterpret_cast
from .comparison import (
    clamp as clamp,
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    is_finite as is_finite,
    is_infinite as is_infinite,
    is_nan as is_nan,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_nand as logical_nand,
    logical_nor as logical_nor,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xnor as logical_xnor,
    logical_xor as logical_xor,
    not_equal as not_equal,
    ones_like as ones_like,
    select as select,
    zeros_like as zeros_like,
)
from .cumulative import cummax as cummax, cummin as cummin, cumprod as cumprod, cumsum as cumsum
from .elementwise import (
    add as add,
    atan2 as atan2,
    divide as divide,
    divide_no_nan as divide_no_nan,
    floor_mod as floor_mod,
    maximum as maximum,
    maximum_nan as maximum_nan,
    minimum as minimum,
    minimum_nan as minimum_nan,
    mod as mod,
    multiply as multiply,
    power as power,
    subtract as subtract,
)
from .gru import GRUDescriptor as GRUDescriptor, gru as gru, gru_gradients as gru_gradients
from .indexing import gather as gather, gather_along_axis as gather_along_axis, gather_nd as gather_nd
from .joining import concat as concat, split as split, stack as stack, unstack as unstack
from .loss import (
    softmax_cross_entropy as softmax_cross_entropy,
    softmax_cross_entropy_gradient as softmax_cross_entropy_gradient,
)
from .lstm import LSTMDescriptor as LSTMDescriptor, lstm as lstm, lstm_gradients as lstm_gradients
from .matmul import matmul as matmul, sdpa as sdpa
from .movement import (
    broadcast as broadcast,
    expand_dims as expand_dims,
    flatten_2d as flatten_2d,
    reshape as reshape,
    reverse as reverse,
    squeeze as squeeze,
    swap_axes as swap_axes,
    transpose as transpose,
)
from .neural import (
    elu as elu,
    gelu as gelu,
    hard_sigmoid as hard_sigmoid,
    leaky_relu as leaky_relu,
    leaky_relu_gradient as leaky_relu_gradient,
    log_softmax as log_softmax,
    normalize as normalize,
    relu as relu,
    relu_gradient as relu_gradient,
    sigmoid as sigmoid,
    sigmoid_gradient as sigmoid_gradient,
    softmax as softmax,
    softmax_gradient as softmax_gradient,
    softplus as softplus,
    softsign as softsign,
)
from .optimizers import adam as adam, adam_with_current_learning_rate as adam_with_current_learning_rate, sgd as sgd
from .padding import pad as pad, tile as tile
from .positions import (
    band_part as band_part,
    coordinate_along_axis as coordinate_along_axis,
    non_zero_indices as non_zero_indices,
    one_hot as one_hot,
    shape_of as shape_of,
)
from .random import (
    dropout as dropout,
    random_normal as random_normal,
    random_state as random_state,
    random_tensor as random_tensor,
    random_uniform as random_uniform,
    random_with_state as random_with_state,
)
from .reduction import (
    argmax as argmax,
    argmin as argmin,
    mean as mean,
    reduce_and as reduce_and,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_or as reduce_or,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    variance as variance,
)
from .rnn import (
    SingleGateRNNDescriptor as SingleGateRNNDescriptor,
    single_gate_rnn as single_gate_rnn,
    single_gate_rnn_gradients as single_gate_rnn_gradients,
)
from .scattering import (
    scatter as scatter,
    scatter_along_axis as scatter_along_axis,
    scatter_along_axis_with_data as scatter_along_axis_with_data,
    scatter_nd as scatter_nd,
    scatter_nd_with_data as scatter_nd_with_data,
    scatter_with_data as scatter_with_data,
)
from .slicing import slice as slice, slice_axis as slice_axis, slice_update as slice_update
from .sorting import argsort as argsort, sort as sort, top_k as top_k
from .unary import (
    absolute as absolute,
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atanh as atanh,
    ceil as ceil,
    cos as cos,
    cosh as cosh,
    erf as erf,
    exp as exp,
    exp2 as exp2,
    exp10 as exp10,
    expm1 as expm1,
    floor as floor,
    identity as identity,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    negative as negative,
    reciprocal as reciprocal,
    rint as rint,
    round as round,
    rsqrt as rsqrt,
    sign as sign,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    tan as tan,
    tanh as tanh,
    truncate as truncate,
)

DESCRIPTORS = {d.__name__: d for d in (GRUDescriptor, LSTMDescriptor, SingleGateRNNDescriptor)}
