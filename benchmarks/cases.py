"""What is timed: every case as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

OPS = ("lstm", "gru", "rnn")
GATES = {"lstm": 4, "gru": 3, "rnn": 1}

# Mode -> what one call computes.
MODES = {
    "inf": "inference",
    "fwd": "training forward",
    "fb": "training forward, then the gradients of everything",
    "bwd": "the gradients of everything, from a forward call made before",
    "step": "one step of one row, with the state of the step before",
}


@dataclass(frozen=True)
class Case:
    """One op in one mode on one shape, and whom it is timed against."""

    group: str
    op: str
    mode: str
    T: int
    N: int
    I: int
    H: int
    bidirectional: bool = False
    dtype: str = "float32"
    options: tuple[str, ...] = ()  # of peephole, mask, lengths, resets, dropout (a mask drawn in every training call)
    peers: tuple[str, ...] = ()  # beside the subject, all that can compute it
    subject: str = "recurra"  # whose time the others' are compared with

    @property
    def shape(self) -> str:
        words = [f"{self.T}x{self.N}x{self.I}x{self.H}", *self.options]
        if self.bidirectional:
            words.append("bidirectional")
        if self.dtype != "float32":
            words.append(self.dtype)
        return "+".join(words)

    @property
    def name(self) -> str:
        return f"{self.group}/{self.op}/{self.mode}/{self.shape}"

    @property
    def D(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def G(self) -> int:
        return GATES[self.op]

    @property
    def trains(self) -> bool:
        return self.mode in ("fwd", "fb", "bwd")

    @property
    def differentiates(self) -> bool:
        return self.mode in ("fb", "bwd")


# T, N, I, H
GRID = (
    (1, 1, 128, 128),
    (100, 1, 256, 256),
    (512, 1, 512, 512),
    (128, 32, 256, 256),
    (64, 64, 512, 512),
    (35, 20, 650, 650),
    (256, 128, 128, 128),
    (32, 256, 1024, 1024),
    (1000, 8, 64, 64),
)
BOTH_DIRECTIONS = (128, 32, 256, 256)
WITH_OPTIONS = ((128, 32, 256, 256), (100, 1, 256, 256), (35, 20, 650, 650), (1000, 8, 64, 64), (1, 1, 128, 128))
IN_BFLOAT16 = GRID
STREAMED = (8, 16, 32, 64, 128, 256, 512)
STEPPED_MODULES = (32, 128, 256, 512)
IN_ONE_CALL = ("inf", "fwd", "fb", "bwd")

ON_GRID = ("recurra-1", "torch", "torch-1", "onednn", "jax")
INFERENCE_ONLY = ("onnxruntime", "openvino")
LOOPS = ("recurra-plain", "torch-loop", "torch-script", "torch-compile", "jax")


def grid() -> Iterator[Case]:
    for op in OPS:
        for mode in IN_ONE_CALL:
            peers = ON_GRID + (INFERENCE_ONLY if mode == "inf" else ())
            for sizes in GRID:
                yield Case("grid", op, mode, *sizes, peers=peers)
            yield Case("grid", op, mode, *BOTH_DIRECTIONS, bidirectional=True, peers=peers)


def options() -> Iterator[Case]:
    """What no fused kernel of a peer has. recurra-plain is the same op without the options."""
    for chosen in (("peephole", "mask"), ("peephole", "mask", "lengths", "resets")):
        for mode in IN_ONE_CALL:
            for sizes in WITH_OPTIONS:
                yield Case("options", "lstm", mode, *sizes, options=chosen, peers=LOOPS)


def resets() -> Iterator[Case]:
    """TorchRL's shape: 3 % of the steps begin an episode. torch-split cuts the rows into episodes and pads them."""
    for op in ("lstm", "gru"):
        for mode in ("inf", "fb"):
            yield Case(
                "resets", op, mode, 128, 128, 256, 256, options=("resets",), peers=("recurra-plain", "torch-split")
            )


def bfloat16() -> Iterator[Case]:
    """recurra-float32 is the same call on float32 arrays."""
    for mode in ("inf", "fb"):
        for sizes in IN_BFLOAT16:
            peers = ("recurra-float32", "recurra-tensors", "torch", "onednn")
            yield Case("bfloat16", "lstm", mode, *sizes, dtype="bfloat16", peers=peers)


def stream() -> Iterator[Case]:
    for op in OPS:
        for H in STREAMED:
            peers = ("recurra", "torch", "torch-1", "onnxruntime", "onednn")
            yield Case("stream", op, "step", 1, 1, H, H, peers=peers, subject="recurra-stream")


def torch_modules() -> Iterator[Case]:
    """recurra.torch's modules: a training step, and one step in eval mode."""

    def with_all_sizes(op: str, chosen: tuple[str, ...], peers: tuple[str, ...]) -> Iterator[Case]:
        trained, stepped = WITH_OPTIONS, [(1, 1, H, H) for H in STEPPED_MODULES]
        for mode, shapes in (("fb", trained), ("step", stepped)):
            for sizes in shapes:
                yield Case("torch", op, mode, *sizes, options=chosen, peers=peers, subject="recurra-module")

    for op in OPS:
        yield from with_all_sizes(op, (), ("torch", "torch-1"))
    yield from with_all_sizes("lstm", ("peephole", "dropout"), ("torch-loop", "torch-script", "torch-compile"))


GROUPS = (grid, options, resets, bfloat16, stream, torch_modules)
CASES = {case.name: case for group in GROUPS for case in group()}

# Small enough for a test, and for a look at whether everything runs.
TINY = Case("tiny", "lstm", "fb", 3, 2, 5, 4, peers=ON_GRID)
