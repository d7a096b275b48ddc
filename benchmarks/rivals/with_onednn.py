"""oneDNN called directly through its C API: `pip install onednn-cpu-gomp`, or its library's path in ONEDNN_LIBRARY.

oneDNN at its best: primitives are made before, and results and workspace keep their memory from call to call. Weights
are packed before the call in inference and in the backward mode; a training forward packs them in the call, since
training changes them every time. Their gradients stay in oneDNN's own layout. bfloat16 is inference only.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
import functools
import os
import pathlib
import sys
from typing import Any

from cases import Case
from inputs import Numbers
import numpy as np

from rivals import Rival, Unavailable

# Numbers of dnnl_types.h, the same in every oneDNN 3.
CPU, IN_ORDER, ANY, EXEC_ARG_MD, TANH, OVERWRITE = 1, 1, 1, 255, 0x21, 1
BF16, F32 = 2, 3
INFERENCE, TRAINING, BACKWARD = 96, 64, 128
LEFT_TO_RIGHT, BOTH = 1, 3
X, H0, C0, Y, W, R, B, WORKSPACE, FROM, TO = 1, 2, 3, 17, 33, 34, 41, 64, 1, 17
DIFFERENTIAL = 128  # added to an argument's number
# Where oneDNN's blocks stand among torch's: i, f, c, o is torch's own order; u, r, o of r, z, n.
BLOCKS = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2), "rnn": (0,)}
NAMES = {"lstm": "lstm", "gru": "lbr_gru", "rnn": "vanilla_rnn"}
Dims = c_int64 * 12


class Argument(ctypes.Structure):
    _fields_ = (("number", c_int), ("memory", c_void_p))


@functools.cache
def library() -> ctypes.CDLL:
    place = os.environ.get("ONEDNN_LIBRARY") or pathlib.Path(sys.prefix) / "lib" / "libdnnl.so.3"
    try:
        found = ctypes.CDLL(str(place))
    except OSError as error:
        raise Unavailable(f"needs oneDNN 3: pip install onednn-cpu-gomp ({error})") from error
    found.dnnl_primitive_desc_query_md.restype = c_void_p
    found.dnnl_memory_desc_get_size.restype = c_size_t
    return found


def checked(name: str, *arguments: Any) -> None:
    status = getattr(library(), f"dnnl_{name}")(*arguments)
    if status:
        raise Unavailable(f"dnnl_{name} returned status {status}")


def made(name: str, *arguments: Any) -> c_void_p:
    """What a function of oneDNN creates: they write it through their first argument."""
    handle = c_void_p()
    checked(name, byref(handle), *arguments)
    return handle


@functools.cache
def engine() -> tuple[c_void_p, c_void_p]:
    """The engine and its stream."""
    engine = made("engine_create", c_int(CPU), c_size_t(0))
    return engine, made("stream_create", engine, c_uint(IN_ORDER))


def packed_desc(kind: int, *dims: int) -> c_void_p:
    """A layout that oneDNN chooses."""
    return made("memory_desc_create_with_tag", len(dims), Dims(*dims), kind, ANY)


def dense_desc(array: Any) -> c_void_p:
    """The layout of a NumPy array."""
    kind = F32 if array.dtype == np.float32 else BF16
    # NumPy's new axes have a stride of 0, which is none of oneDNN's layouts.
    strides = Dims(*(s // array.itemsize or array.size for s in array.strides))
    return made("memory_desc_create_with_strides", array.ndim, Dims(*array.shape), kind, strides)


class Memory:
    """Bytes in a layout."""

    def __init__(self, desc: Any, array: Any = None) -> None:
        if array is None:
            # Aligned as oneDNN would do it.
            raw = np.zeros(library().dnnl_memory_desc_get_size(desc) + 64, np.uint8)
            start = -raw.ctypes.data % 64
            array = raw[start:]
        self.desc, self.array = desc, array
        self.handle = made("memory_create", desc, engine()[0], c_void_p(array.ctypes.data))


class Primitive:
    """A primitive with its arguments bound; it keeps their memory alive."""

    def __init__(self, desc: c_void_p, arguments: dict[int, Memory]) -> None:
        self.arguments = arguments
        bound = (Argument * len(arguments))(*((n, m.handle.value) for n, m in arguments.items()))
        self.given = (made("primitive_create", desc), engine()[1], c_int(len(arguments)), bound)
        self.execute = library().dnnl_primitive_execute

    def run(self) -> None:
        self.execute(*self.given)


def asked(desc: c_void_p, argument: int) -> c_void_p:
    """The layout that a primitive wants of an argument."""
    return c_void_p(library().dnnl_primitive_desc_query_md(desc, EXEC_ARG_MD, argument))


def reorder(source: Memory, target: Memory) -> Primitive:
    here = engine()[0]
    desc = made("reorder_primitive_desc_create", source.desc, here, target.desc, here, None)
    return Primitive(desc, {FROM: source, TO: target})


class Problem:
    """The arrays of a case as oneDNN's arguments."""

    def __init__(self, case: Case, given: Numbers) -> None:
        self.case, self.given = case, given
        I, H, D, G = case.I, case.H, case.D, case.G
        kind = BF16 if case.dtype == "bfloat16" else F32

        def weight(parts: list[Any]) -> Any:  # [1, D, columns, G, H], laid out as torch does
            blocks = np.stack([p.reshape(G, H, -1)[list(BLOCKS[case.op])] for p in parts])[None]
            return np.ascontiguousarray(blocks).transpose(0, 1, 4, 2, 3)

        def bias(d: int) -> Any:
            i, s = (b[d].astype(np.float32).reshape(G, H) for b in (given.b_input, given.b_state))
            if case.op == "gru":  # u, r, o and what stands inside the reset product
                return np.stack([i[1] + s[1], i[0] + s[0], i[2], s[2]])
            return i + s

        self.plain = {
            X: given.x,
            H0: np.ascontiguousarray(given.h0[None]),
            W: weight(given.W),
            R: weight(given.R),
            B: np.stack([bias(d) for d in range(D)])[None],
        }
        self.descs = {n: dense_desc(self.plain[n]) for n in (X, H0, B)} | {Y: dense_desc(given.dy)}
        self.descs |= {W: packed_desc(kind, 1, D, I, G, H), R: packed_desc(kind, 1, D, H, G, H)}
        if case.op == "lstm":
            self.plain[C0] = np.ascontiguousarray(given.c0[None]).astype(np.float32)
            self.descs[C0] = dense_desc(self.plain[C0])
        self.memory = {n: Memory(dense_desc(a), a) for n, a in self.plain.items()}
        self.memory[Y] = Memory(self.descs[Y])

    def primitive_desc(self, kind: int, hint: c_void_p | None = None) -> c_void_p:
        d, op = self.descs, self.case.op
        inputs = [X, H0, C0] if op == "lstm" else [X, H0]
        weights = [W, R, None, None, B] if op == "lstm" else [W, R, B]
        outputs = [Y, None, None] if op == "lstm" else [Y, None]  # final states are not asked for
        every = [d[n] if n else None for n in (*inputs, *weights, *outputs)]
        words: list[Any] = [engine()[0], c_int(kind)]
        words += [c_int(TANH)] if op == "rnn" else []
        words += [c_int(BOTH if self.case.bidirectional else LEFT_TO_RIGHT), *every]
        backward = kind == BACKWARD
        words += every if backward else []  # gradients have the layouts of what they are of
        words += [c_uint(OVERWRITE if backward else 0)]
        words += [c_float(0), c_float(0)] if op == "rnn" else []
        words += [hint, None] if backward else [None]
        name = f"{NAMES[op]}_{'backward' if backward else 'forward'}_primitive_desc_create"
        return made(name, *words)

    def packing(self, desc: c_void_p) -> tuple[dict[int, Memory], list[Primitive]]:
        """Memory for the weights as a primitive wants them, and what fills it."""
        packed = {n: Memory(asked(desc, n)) for n in (W, R)}
        return packed, [reorder(self.memory[n], packed[n]) for n in packed]

    def bound(self, packed: dict[int, Memory], *more: int) -> dict[int, Memory]:
        names = [X, H0, B, Y, *([C0] if self.case.op == "lstm" else []), *more]
        return {**{n: self.memory[n] for n in names}, **packed}

    def result(self, memory: Memory, *shape: int) -> Any:
        kind = np.float32 if self.case.dtype == "float32" else self.given.x.dtype
        return memory.array[: int(np.prod(shape)) * np.dtype(kind).itemsize].view(kind).reshape(shape)


def offer(case: Case, given: Numbers, variant: str, threads: int) -> Rival:
    if case.options:
        raise Unavailable(f"no {', '.join(case.options)} as recurra's")
    if case.trains and case.dtype != "float32":
        raise Unavailable("written for float32 in training")
    p = Problem(case, given)
    T, N, H, D = case.T, case.N, case.H, case.D

    def y() -> dict[str, Any]:
        return {"y": p.result(p.memory[Y], T, N, D * H)}

    forward_desc = p.primitive_desc(TRAINING if case.trains else INFERENCE)
    packed, packing = p.packing(forward_desc)
    if case.trains:
        p.memory[WORKSPACE] = Memory(asked(forward_desc, WORKSPACE))
    forward = Primitive(forward_desc, p.bound(packed, *([WORKSPACE] if case.trains else [])))
    for primitive in (*packing, forward):
        primitive.run()
    if not case.trains:
        return Rival(forward.run, lambda _: y())
    if case.mode == "fwd":
        return Rival(lambda: [q.run() for q in (*packing, forward)], lambda _: y())

    backward_desc = p.primitive_desc(BACKWARD, forward_desc)
    packed_back, packing_back = p.packing(backward_desc)
    found = {n: Memory(asked(backward_desc, n + DIFFERENTIAL)) for n in p.plain}
    dy = Memory(dense_desc(given.dy), given.dy)
    arguments = p.bound(packed_back, WORKSPACE) | {n + DIFFERENTIAL: m for n, m in found.items()}
    backward = Primitive(backward_desc, arguments | {Y + DIFFERENTIAL: dy})
    plain = {n: Memory(dense_desc(p.plain[n])) for n in (W, R)}
    unpacking = [reorder(found[n], plain[n]) for n in plain]

    def named(_: Any) -> dict[str, Any]:
        for primitive in unpacking:
            primitive.run()
        G, order = case.G, np.argsort(BLOCKS[case.op])
        dW, dR = (p.result(plain[n], D, G, H, k)[:, order].reshape(D, G * H, k) for n, k in ((W, case.I), (R, H)))
        db = p.result(found[B], D, 4 if case.op == "gru" else G, H)
        results = y() | {
            "dx": p.result(found[X], T, N, case.I),
            "dW": dW.reshape(-1, case.I),
            "dR": dR if case.bidirectional else dR[0],
            "db": db[:, order].reshape(-1),
            "dh0": np.concatenate(list(p.result(found[H0], D, N, H)), -1),
        }
        if case.op == "lstm":
            results["dc0"] = np.concatenate(list(p.result(found[C0], D, N, H)), -1)
        return {name: value.copy() for name, value in results.items()}

    for primitive in packing_back:
        primitive.run()
    if case.mode == "bwd":
        return Rival(backward.run, named)
    steps = (*packing, forward, *packing_back, backward)
    return Rival(lambda: [q.run() for q in steps], named)
