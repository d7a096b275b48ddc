"""The room of `lstm`: its descriptor (spec), equations (reference), functions and op records (build)."""

from .build import lstm as lstm, lstm_gradients as lstm_gradients
from .spec import LSTMDescriptor as LSTMDescriptor
