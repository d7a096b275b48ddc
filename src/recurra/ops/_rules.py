"""The shape and dtype rules of the six recurrent operations (contract section 1.1, 5, 9), and their error texts.

One rule per argument. Every rule sees the sizes found so far, where -1 stands for "known at run time only".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .._errors import DTypeError, ShapeError
from .._op import UNKNOWN, Shape, ShapedType

Types = Mapping[str, ShapedType]
_OP_BY_GATES = {1: "single_gate_rnn", 3: "gru", 4: "lstm"}


@dataclass(frozen=True)
class Sizes:
    """The letters of the contract. T and N may be -1."""

    T: int
    N: int
    I: int
    H: int
    D: int
    G: int


def check(op: str, types: Types, gates: int, directions: int) -> Sizes:
    """The sizes of a call whose inputs have these types.

    Raises:
        ShapeError: a rank or size breaks a rule.
        DTypeError: an input that must be floating is not, or two dtypes differ.
    """
    _check_dtypes(op, types)
    sizes = _from_source_and_recurrent_weight(op, types, gates, directions)
    for name, type_ in types.items():
        if name in _RULES:
            sizes = _RULES[name](op, name, type_, sizes)
    return sizes


def _check_dtypes(op: str, types: Types) -> None:
    source = types["source"].dtype
    for name, type_ in types.items():
        if name == "lengths":
            if type_.dtype not in ("int32", "int64"):
                raise DTypeError(f"{op}: lengths must be int32 or int64, got {type_.dtype}")
        elif name == "resets":
            if type_.dtype != "bool":
                raise DTypeError(f"{op}: resets must be bool, got {type_.dtype}; write resets != 0")
        elif name == "mask" and type_.dtype == "bool":
            pass
        elif not type_.dtype.is_float:
            kinds = "float32, float64, float16 or bfloat16" + (", or bool" if name == "mask" else "")
            raise DTypeError(f"{op}: {name} must be {kinds}, got {type_.dtype}")
        elif type_.dtype != source:
            raise DTypeError(f"{op}: {name} must have the dtype of source, {source}, got {type_.dtype}")


def _from_source_and_recurrent_weight(op: str, types: Types, gates: int, directions: int) -> Sizes:
    shape = types["source"].shape
    if len(shape) != 3:
        hint = "; recurra is time-major and has no unbatched form" if len(shape) == 2 else ""
        raise ShapeError(f"{op}: source must have rank 3, [T, N, channels], got {list(shape)}{hint}")
    weight = types["recurrent_weight"].shape
    if UNKNOWN in weight:
        raise ShapeError(f"{op}: recurrent_weight must have a static shape, got {list(weight)}")
    rank = 3 if directions == 2 else 2
    rows = _multiple(gates)
    form = f"[2, {rows}, H]" if directions == 2 else f"[{rows}, H]"
    if len(weight) != rank:
        other = "; is the descriptor meant to be bidirectional?" if len(weight) == 3 and directions == 1 else ""
        why = " when bidirectional," if directions == 2 else ""
        raise ShapeError(f"{op}: recurrent_weight must have rank {rank}, {form},{why} got {list(weight)}{other}")
    hidden = weight[-1]
    if hidden < 1:
        raise ShapeError(f"{op}: recurrent_weight must have H of at least 1, got {list(weight)}")
    wanted = ([2] if directions == 2 else []) + [gates * hidden, hidden]
    if list(weight) != wanted:
        raise ShapeError(
            f"{op}: recurrent_weight must have shape {form} = {wanted}, got {list(weight)}"
            + _other_op(op, weight[-2], hidden, gates)
        )
    channels = shape[2]
    if "input_weight" in types:
        channels = _agree(op, channels, types["input_weight"].shape[-1:])
    else:
        wide = directions * gates * hidden
        if channels not in (wide, UNKNOWN):
            raise ShapeError(
                f"{op}: source must be already projected, [T, N, {_multiple(directions * gates)}] = [T, N, {wide}], "
                f"when input_weight is None, got {list(shape)}"
            )
        channels = wide
    if channels == 0:
        raise ShapeError(f"{op}: source must have at least 1 channel, got {list(shape)}")
    return Sizes(shape[0], shape[1], channels, hidden, directions, gates)


def _other_op(op: str, rows: int, hidden: int, gates: int) -> str:
    if gates == 4 and rows % gates == 0 and rows // gates > hidden:
        return " (projections of the state, PyTorch's proj_size, are not supported)"
    found = rows // hidden if rows % hidden == 0 else 0
    if found == gates or found not in _OP_BY_GATES:
        return ""
    kind = {1: "RNN", 3: "GRU", 4: "LSTM"}[found]
    plural = "gate" if found == 1 else "gates"
    suffix = "_gradients" if op.endswith("_gradients") else ""
    return f" ({kind} weights have {found} {plural}; did you mean {_OP_BY_GATES[found]}{suffix}?)"


def _agree(op: str, channels: int, columns: Shape) -> int:
    known = [s for s in (channels, *columns) if s != UNKNOWN]
    if any(n != known[0] for n in known):  # no set: torch's symbolic sizes have no hash
        raise ShapeError(
            f"{op}: source must have as many channels as input_weight has columns, {columns[0]}, got {channels}"
        )
    return known[0] if known else UNKNOWN


def _without_leading_ones(shape: Shape, rank: int) -> Shape:
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return shape


def _wrong(op: str, name: str, form: str, wanted: list[int], got: Shape, hint: str = "") -> ShapeError:
    return ShapeError(f"{op}: {name} must have shape {form} = {wanted}, got {list(got)}{hint}")


def _form(sizes: Sizes, gates: int | None = None) -> str:
    return _multiple(sizes.D * (sizes.G if gates is None else gates))


def _multiple(count: int) -> str:
    return "H" if count == 1 else f"{count}*H"


def _static(op: str, name: str, type_: ShapedType) -> Shape:
    if not type_.is_static:
        raise ShapeError(f"{op}: {name} must have a static shape, got {list(type_.shape)}")
    return type_.shape


def _input_weight(op: str, name: str, type_: ShapedType, s: Sizes) -> Sizes:
    shape = _static(op, name, type_)
    wanted = [s.D * s.G * s.H, s.I]
    if list(shape) != wanted:
        raise _wrong(op, name, f"[{_form(s)}, I]", wanted, shape)
    return s


def _bias(op: str, name: str, type_: ShapedType, s: Sizes) -> Sizes:
    shape = _static(op, name, type_)
    wanted = s.D * s.G * s.H
    if _without_leading_ones(shape, 1) not in ((wanted,), (1,), ()):
        raise _wrong(op, name, f"[{_form(s)}]", [wanted], shape)
    return s


def _peephole(op: str, name: str, type_: ShapedType, s: Sizes) -> Sizes:
    shape = _static(op, name, type_)
    if s.D == 1 and _without_leading_ones(shape, 1) != (4 * s.H,):
        raise _wrong(op, name, "[4*H]", [4 * s.H], shape)
    if s.D == 2 and shape not in ((2, 4 * s.H), (8 * s.H,)):
        raise _wrong(op, name, "[2, 4*H]", [2, 4 * s.H], shape)
    return s


def _secondary_bias(op: str, name: str, type_: ShapedType, s: Sizes) -> Sizes:
    shape = _static(op, name, type_)
    if _without_leading_ones(shape, 1) != (s.D * s.H,):
        raise _wrong(op, name, f"[{_form(s, 1)}]", [s.D * s.H], shape, " (it belongs to the candidate gate only)")
    return s


def _state(op: str, name: str, type_: ShapedType, s: Sizes) -> Sizes:
    shape = _without_leading_ones(type_.shape, 2)
    if len(shape) != 2 or shape[1] not in (s.D * s.H, UNKNOWN):
        hint = ""
        if s.D == 2 and len(shape) == 3 and shape[0] == 2:
            hint = "; recurra.join_directions turns PyTorch's [2, N, H] into it"
        raise _wrong(op, name, f"[N, {_form(s, 1)}]", [s.N, s.D * s.H], type_.shape, hint)
    if shape[0] == 1 or UNKNOWN in (shape[0], s.N):
        return replace(s, N=shape[0]) if s.N == UNKNOWN and shape[0] > 1 else s
    if shape[0] != s.N:
        raise _wrong(op, name, f"[N, {_form(s, 1)}]", [s.N, s.D * s.H], type_.shape)
    return s


def _mask(op: str, name: str, type_: ShapedType, s: Sizes) -> Sizes:
    shape = type_.shape
    hidden = (s.H, s.D * s.H, 1, UNKNOWN)
    fits = len(shape) <= 3
    fits = fits and (len(shape) < 1 or shape[-1] in hidden)
    fits = fits and (len(shape) < 2 or shape[-2] in (1, s.N, UNKNOWN) or s.N == UNKNOWN)
    fits = fits and (len(shape) < 3 or shape[0] in (1, s.T, UNKNOWN) or s.T == UNKNOWN)
    if not fits:
        wide = _form(s, 1)
        raise ShapeError(
            f"{op}: mask must broadcast to [N, {wide}] = [{s.N}, {s.D * s.H}], or have one mask per step, "
            f"[T, N, {wide}]: it multiplies h[t-1] inside the recurrent product (it is not a sequence mask; "
            f"use lengths), got {list(shape)}"
        )
    return s


def _over_time(channels: Callable[[Sizes], int], form: Callable[[Sizes], str]) -> Callable[..., Sizes]:
    def rule(op: str, name: str, type_: ShapedType, s: Sizes) -> Sizes:
        wanted = (s.T, s.N, channels(s))
        shape = type_.shape
        if len(shape) != 3 or any(a != b and UNKNOWN not in (a, b) for a, b in zip(shape, wanted, strict=True)):
            raise _wrong(op, name, f"[T, N, {form(s)}]", list(wanted), shape)
        return replace(s, T=max(s.T, shape[0]), N=max(s.N, shape[1]))

    return rule


def _lengths(op: str, name: str, type_: ShapedType, s: Sizes) -> Sizes:
    if len(type_.shape) != 1 or (type_.shape[0] != s.N and UNKNOWN not in (type_.shape[0], s.N)):
        raise _wrong(op, name, "[N]", [s.N], type_.shape)
    return replace(s, N=max(s.N, type_.shape[0]))


def _resets(op: str, name: str, type_: ShapedType, s: Sizes) -> Sizes:
    shape = type_.shape
    if len(shape) != 2 or any(a != b and UNKNOWN not in (a, b) for a, b in zip(shape, (s.T, s.N), strict=True)):
        raise _wrong(op, name, "[T, N]", [s.T, s.N], shape)
    return replace(s, T=max(s.T, shape[0]), N=max(s.N, shape[1]))


_hidden_over_time = _over_time(lambda s: s.D * s.H, lambda s: _form(s, 1))

_RULES: dict[str, Callable[..., Sizes]] = {
    "input_weight": _input_weight,
    "bias": _bias,
    "init_state": _state,
    "init_cell": _state,
    "state_gradient": _state,
    "cell_gradient": _state,
    "mask": _mask,
    "peephole": _peephole,
    "secondary_bias": _secondary_bias,
    "lengths": _lengths,
    "resets": _resets,
    "source_gradient": _hidden_over_time,
    "cell_sequence_gradient": _hidden_over_time,
    "cell_output_fwd": _hidden_over_time,
    "output_fwd": _hidden_over_time,
    "z_state": _over_time(lambda s: s.D * s.G * s.H, _form),
}
