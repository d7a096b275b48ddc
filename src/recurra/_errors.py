"""The exceptions of recurra.

RecurraError
 ├─ ShapeError       (ValueError)           a rank or a size is wrong
 ├─ DTypeError       (TypeError)            a dtype is wrong, or two differ that must agree
 ├─ DeviceError      (ValueError)           arrays of different libraries or devices
 ├─ ArgumentError    (ValueError)           any other bad value of an argument
 ├─ ArgumentTypeError (TypeError)           an argument is not the kind of thing that is wanted
 ├─ GraphError       (ValueError)           a graph is used wrongly: feeds, targets, foreign tensors
 ├─ GradientError    (ValueError)           something is not differentiable
 ├─ FileFormatError  (ValueError)           a saved file cannot be read
 └─ UnsupportedError (NotImplementedError)  understood, and not offered
RecurraWarning       (UserWarning)

Every message has four parts: the op, the argument, the rule, what came.
"""

from __future__ import annotations


class RecurraError(Exception):
    """Base of all errors that recurra raises on purpose."""


class ShapeError(RecurraError, ValueError):
    """A rank or a size is wrong."""


class DTypeError(RecurraError, TypeError):
    """A dtype is wrong, or two dtypes differ that must agree."""


class DeviceError(RecurraError, ValueError):
    """Arrays of different libraries or devices were mixed."""


class ArgumentError(RecurraError, ValueError):
    """An argument has a value that its rule does not allow."""


class ArgumentTypeError(RecurraError, TypeError):
    """An argument is not the kind of object that is wanted."""


class GraphError(RecurraError, ValueError):
    """A graph is used wrongly: feeds, targets, tensors of another graph."""


class GradientError(RecurraError, ValueError):
    """A gradient was asked for that does not exist."""


class FileFormatError(RecurraError, ValueError):
    """A saved file is damaged, newer than this version, or not one of ours."""


class UnsupportedError(RecurraError, NotImplementedError):
    """Understood, and not offered."""


class RecurraWarning(UserWarning):
    """Something legal that is probably a mistake."""
