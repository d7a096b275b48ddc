"""An op is a record of a few functions; a backend is a thing that offers kernels for ops, or refuses with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
import operator
from typing import Any, Protocol

from ._arrays import Array, Namespace
from ._dtypes import DType, as_dtype
from ._errors import ArgumentTypeError, ShapeError

Shape = tuple[int, ...]
Attrs = Mapping[str, Any]
UNKNOWN = -1  # a size that is known at run time only, as in MPSGraph


@dataclass(frozen=True, init=False)
class ShapedType:
    """A shape and a dtype. A size of -1 is known at run time only; None may be written for it.

    Example:
        >>> ShapedType((None, 8), "float32")
        float32[-1, 8]
    """

    shape: Shape
    dtype: DType

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32") -> None:
        object.__setattr__(self, "shape", as_shape(shape, "ShapedType"))
        object.__setattr__(self, "dtype", as_dtype(dtype, "ShapedType"))

    @classmethod
    def trusted(cls, shape: Shape, dtype: DType) -> ShapedType:
        """The same without looking at the arguments: for shapes that were made by an op or an array."""
        made = object.__new__(cls)
        object.__setattr__(made, "shape", shape)
        object.__setattr__(made, "dtype", dtype)
        return made

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return UNKNOWN not in self.shape

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def as_shape(shape: Any, where: str) -> Shape:
    """A shape with -1 for None, checked.

    Raises:
        ArgumentTypeError: when it is not a sequence of integers.
        ShapeError: when a size is below -1.
    """
    sizes = []
    for given in (shape,) if isinstance(shape, int) else _sized(shape, where):
        try:
            size = UNKNOWN if given is None else operator.index(given)
        except TypeError:
            size = None
        if size is None or isinstance(given, bool):
            raise ArgumentTypeError(f"{where}: shape must hold integers, -1 or None, got {given!r} in {shape!r}")
        if not UNKNOWN <= size < 2**63:
            raise ShapeError(
                f"{where}: sizes in shape must be 0 or more (-1 or None: known at run time), got {shape!r}"
            )
        sizes.append(size)
    return tuple(sizes)


def _sized(shape: Any, where: str) -> Sequence[Any]:
    if shape is None:
        raise ArgumentTypeError(f"{where}: shape must be given (write None for each unknown size), got None")
    try:
        return tuple(shape)
    except TypeError:
        raise ArgumentTypeError(f"{where}: shape must be a sequence of integers, got {shape!r}") from None


@dataclass(frozen=True)
class Op:
    """All that recurra knows of an operation.

    infer: `infer(*input_types, **attrs)` gives the output type, or a tuple of them; raises our errors.
    reference: `reference(xp, *inputs, **attrs)` gives the output, or a tuple of them, in the Array API standard.
    vjp: `vjp(inputs, outputs, cotangents, **attrs)` gives one gradient or None per input, made of ops again. None
        stands for a cotangent that is zero. An op without vjp stops gradients with an error.
    """

    name: str
    infer: Callable[..., ShapedType | tuple[ShapedType, ...]]
    reference: Callable[..., Array | tuple[Array, ...]]
    vjp: Callable[..., Sequence[Any]] | None = None
    # The outputs' names, or how to tell them from the attributes.
    outputs: tuple[str, ...] | Callable[..., tuple[str, ...]] = ("out",)
    # The result may share memory with the first input.
    is_view: bool = False
    # Inputs of which only the shape is read: their memory may go before this op runs.
    shape_only: frozenset[int] = frozenset()
    # `reference` takes `wanted`, a tuple of booleans, and may leave the other outputs None.
    selects_outputs: bool = False
    # Called with the inputs' values before every run: `check_values(*inputs, **attrs)`.
    check_values: Callable[..., None] | None = None

    def output_names(self, attrs: Attrs) -> tuple[str, ...]:
        """The names of the outputs that a node with these attributes has."""
        return self.outputs(**attrs) if callable(self.outputs) else self.outputs

    def infer_all(self, types: Sequence[ShapedType], attrs: Attrs) -> tuple[ShapedType, ...]:
        """The output types, always as a tuple."""
        inferred = self.infer(*types, **attrs)
        return inferred if isinstance(inferred, tuple) else (inferred,)

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


@dataclass(frozen=True)
class NoGradient:
    """What a vjp returns for an input whose gradient does not exist: an error for whoever asks for it."""

    reason: str


OPS: dict[str, Op] = {}


def register(op: Op) -> Op:
    """Make the op known by its name, which must be new."""
    assert op.name not in OPS, f"two ops are named {op.name}"
    OPS[op.name] = op
    return op


@dataclass(frozen=True)
class Refusal:
    """A backend does not offer an op here, because."""

    reason: str


Kernel = Callable[..., Any]  # kernel(xp, *inputs) -> output, or a tuple of outputs


class Backend(Protocol):
    """Offers kernels. The reference backend offers every op, so a plan can always be completed."""

    name: str

    def offer(
        self,
        op: Op,
        types: Sequence[ShapedType],
        attrs: Attrs,
        xp: Namespace,
        device: Any = None,
        inputs: Sequence[Array] | None = None,
    ) -> Kernel | Refusal:
        """A kernel for inputs of these types on this device, or the reason why there is none.

        A plan asks before it has the inputs; then the kernel looks at them when it is called. A kernel may have a
        method `keeping(steady, store)`, which gives a kernel that may prepare the inputs that are steady: constants
        and variables, which keep their values as long as they are the same arrays. What it keeps goes into `store`,
        a dictionary that serves the same step for feeds of every shape.
        """


@dataclass(frozen=True)
class Choice:
    """Which backend runs a step, and why the ones before it do not."""

    kernel: Kernel
    backend: str
    refusals: tuple[tuple[str, str], ...]
    xp: Namespace

    @property
    def reason(self) -> str:
        """The refusals in words."""
        if not self.refusals:
            return "no other backend is installed" if self.backend == "reference" else ""
        return "; ".join(f"{name}: {why}" for name, why in self.refusals)


# Kernels of faster backends plug in here; whoever comes first is asked first. The reference is always there.
BACKENDS: list[Backend] = []
# Called with every choice that is made: how `explain` of an eager call listens.
LISTENERS: list[Callable[[Op, Sequence[ShapedType], Choice], None]] = []


def choose(
    op: Op,
    types: Sequence[ShapedType],
    attrs: Attrs,
    xp: Namespace,
    wanted: tuple[bool, ...],
    device: Any = None,
    inputs: Sequence[Array] | None = None,
) -> Choice:
    """The first backend that offers this op for these inputs."""
    choice = _choose(op, types, attrs, xp, wanted, device, inputs)
    for listener in LISTENERS:
        listener(op, types, choice)
    return choice


def _choose(
    op: Op,
    types: Sequence[ShapedType],
    attrs: Attrs,
    xp: Namespace,
    wanted: tuple[bool, ...],
    device: Any,
    inputs: Sequence[Array] | None,
) -> Choice:
    if op.selects_outputs:
        attrs = {**attrs, "wanted": wanted}
    refusals: list[tuple[str, str]] = []
    for backend in BACKENDS:
        offered = backend.offer(op, types, attrs, xp, device, inputs)
        if not isinstance(offered, Refusal):
            return Choice(offered, backend.name, tuple(refusals), xp)
        refusals.append((backend.name, offered.reason))
    return Choice(partial(op.reference, **attrs), "reference", tuple(refusals), xp)
