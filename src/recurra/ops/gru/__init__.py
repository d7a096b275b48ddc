"""The room of `gru`: its descriptor (spec), equations (reference), functions and op records (build)."""

from .build import gru as gru, gru_gradients as gru_gradients
from .spec import GRUDescriptor as GRUDescriptor
