"""Who computes the cases: one file for each library.

Each file has `offer(case, given, variant)`, which gives a `Rival` or raises `Unavailable` with a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import importlib
from typing import Any

from cases import Case
from inputs import Numbers


class Unavailable(Exception):
    """This peer cannot compute this case; the message says why."""


@dataclass(frozen=True)
class Rival:
    """A call to be timed, everything but the call itself prepared."""

    call: Callable[[], Any]
    # What the call returned -> results by name, as NumPy arrays: y, and the gradients dx, dW, dR, db, dh0, dc0.
    named: Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Peer:
    """A name on the command line."""

    file: str  # in this folder
    variant: str = ""  # which of that file's ways
    threads: int = 0  # 0: all cores
    own_process: bool = False  # JAX's threads disturb oneDNN in one process
    computes_something_else: bool = False  # its numbers are not those of the case


PEERS = {
    "recurra": Peer("ours"),
    "recurra-1": Peer("ours", threads=1),
    "recurra-plain": Peer("ours", "plain", computes_something_else=True),
    "recurra-float32": Peer("ours", "float32"),
    "recurra-tensors": Peer("ours", "tensors"),
    "recurra-stream": Peer("ours", "stream"),
    "recurra-module": Peer("modules"),
    "torch": Peer("with_torch"),
    "torch-1": Peer("with_torch", threads=1),
    "torch-loop": Peer("loops", "eager"),
    "torch-script": Peer("loops", "script"),
    "torch-compile": Peer("loops", "compile"),
    "torch-split": Peer("split"),
    "onednn": Peer("with_onednn"),
    "onnxruntime": Peer("with_onnxruntime"),
    "openvino": Peer("with_openvino"),
    "jax": Peer("with_jax", own_process=True),
}


def offer(peer: str, case: Case, given: Numbers, threads: int) -> Rival:
    """The peer's way to compute the case, on so many threads."""
    try:
        module = importlib.import_module(f"rivals.{PEERS[peer].file}")
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed") from error
    return module.offer(case, given, PEERS[peer].variant, threads)
