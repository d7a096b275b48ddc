"""Layers drawn at random, as a stream and as calls of the op, one layer after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from recurrent.calls import DESCRIPTORS, FORWARD

import recurra

OPS = ("single_gate_rnn", "lstm", "gru")
MAKE = {"lstm": recurra.Stream.lstm, "gru": recurra.Stream.gru, "single_gate_rnn": recurra.Stream.single_gate_rnn}
GATES = {"single_gate_rnn": 1, "lstm": 4, "gru": 3}
NUMPY = {name: np.dtype(name) for name in ("float64", "float32", "float16")} | {
    "bfloat16": np.dtype(ml_dtypes.bfloat16)
}
Arrays = dict[str, Any]


@dataclass
class Layers:
    """The arguments of every layer, and their descriptors."""

    op: str
    dtype: str
    arguments: list[Arrays]
    descriptors: list[Any]

    @property
    def input_size(self) -> int:
        first = self.arguments[0]
        return first["input_weight" if "input_weight" in first else "recurrent_weight"].shape[
            1 if "input_weight" in first else 0
        ]

    def stream(self) -> recurra.Stream:
        """The stream: lists of arguments where there are several layers."""
        if len(self.arguments) == 1:
            return MAKE[self.op](**self.arguments[0], descriptor=self.descriptors[0])
        names = dict.fromkeys(name for given in self.arguments for name in given)
        lists = {name: [given.get(name) for given in self.arguments] for name in names}
        return MAKE[self.op](**lists, descriptor=self.descriptors)

    def op_on(self, source: np.ndarray, resets: np.ndarray | None = None) -> np.ndarray:
        """h of the top layer by calls of the op."""
        for given, descriptor in zip(self.arguments, self.descriptors, strict=True):
            source = FORWARD[self.op](source, **given, resets=resets, descriptor=descriptor).h
        return source

    def frames(self, T: int, N: int, seed: int = 1) -> np.ndarray:
        return drawn(np.random.default_rng(seed), self.dtype, T, N, self.input_size)


def drawn(rng: np.random.Generator, dtype: str, *shape: int, scale: float = 1.0) -> np.ndarray:
    return np.asarray(scale * rng.standard_normal(shape)).astype(NUMPY[dtype])


def layer(
    op: str, I: int | None, H: int, N: int, rng: np.random.Generator, dtype: str = "float32", is_full: bool = True
) -> tuple[Arrays, Any]:
    """Arguments and descriptor of a layer with weights of a trained one's size; I of None: no input_weight."""
    G = GATES[op]
    given: Arrays = {"recurrent_weight": drawn(rng, dtype, G * H, H, scale=0.8 * H**-0.5)}
    if I is not None:
        given["input_weight"] = drawn(rng, dtype, G * H, I, scale=0.8 * I**-0.5)
    options: dict[str, Any] = {"activation": "tanh"} if op == "single_gate_rnn" else {}
    if is_full:
        given |= {
            "bias": drawn(rng, dtype, G * H, scale=0.3),
            "init_state": drawn(rng, dtype, N, H, scale=0.5),
            "mask": drawn(rng, dtype, N, H, scale=0.2) + NUMPY[dtype].type(1),
        }
        if op == "lstm":
            given |= {"init_cell": drawn(rng, dtype, N, H, scale=0.5), "peephole": drawn(rng, dtype, 4 * H, scale=0.2)}
            options = {
                "peephole_output": ("previous", "current")[rng.integers(2)],
                "forget_gate_last": bool(rng.integers(2)),
            }
        if op == "gru":
            options = {name: bool(rng.integers(2)) for name in ("reset_gate_first", "reset_after", "flip_z")}
            if options["reset_after"]:
                given["secondary_bias"] = drawn(rng, dtype, H, scale=0.3)
    return given, DESCRIPTORS[op](**options)


def layers(
    op: str,
    I: int | None,
    hidden: Sequence[int],
    N: int,
    dtype: str = "float32",
    seed: int = 0,
    is_full: bool = True,
) -> Layers:
    """Layers of these sizes."""
    rng = np.random.default_rng(seed)
    made = []
    for H in hidden:
        made.append(layer(op, I, H, N, rng, dtype, is_full))
        I = H
    return Layers(op, dtype, [given for given, _ in made], [descriptor for _, descriptor in made])


def run_in_cuts(
    stream: recurra.Stream,
    state: recurra.StreamState,
    frames: np.ndarray,
    cuts: Sequence[int],
    resets: np.ndarray | None = None,
) -> np.ndarray:
    """h of all frames, fed in pieces of so many steps, the last size again and again: 0 stands for a step."""
    found, done, i = [], 0, 0
    while done < len(frames):
        size = cuts[min(i, len(cuts) - 1)]
        if size == 0:
            found.append(stream.step(frames[done], state)[None])
        else:
            flags = None if resets is None else resets[done : done + size]
            found.append(stream.block(frames[done : done + size], state, resets=flags))
        done, i = done + max(size, 1), i + 1
    return np.concatenate(found)


def assert_same_bits(one: np.ndarray, other: np.ndarray) -> None:
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    bits = np.dtype(f"u{one.dtype.itemsize}")
    np.testing.assert_array_equal(one.view(bits), other.view(bits))


def assert_same_states(one: recurra.StreamState, other: recurra.StreamState) -> None:
    for a, b in zip((*one.h, *one.c), (*other.h, *other.c), strict=True):
        assert_same_bits(a, b)
