"""Seeded random cases over every option of the contract, and what the oracle says about them.

case("lstm", 17)                     the case
reference_results(case("lstm", 17))  its forward results and gradients, float64 NumPy
"""

from __future__ import annotations

import dataclasses
import functools
import math

import ml_dtypes
import numpy as np
import torch

from oracle.forward import DEFAULTS, Activation, gate_order, kinks, visit
from oracle.gradients import gradients

OPS = tuple(DEFAULTS)

# Name -> the forms it is drawn in: with ONNX's parameters, with others, and with a negative alpha.
ACTIVATIONS: dict[str, tuple[Activation, ...]] = {
    "none": ("none",),
    "relu": ("relu",),
    "tanh": ("tanh",),
    "sigmoid": ("sigmoid",),
    "hard_sigmoid": ("hard_sigmoid", ("hard_sigmoid", 0.3, 0.4), ("hard_sigmoid", -0.25, 0.5)),
    "affine": ("affine", ("affine", 0.6, 0.2), ("affine", -0.5, 0.1)),
    "leaky_relu": ("leaky_relu", ("leaky_relu", 0.2), ("leaky_relu", -0.3)),
    "thresholded_relu": ("thresholded_relu", ("thresholded_relu", 0.1), ("thresholded_relu", -0.4)),
    "scaled_tanh": ("scaled_tanh", ("scaled_tanh", 1.3, 0.6), ("scaled_tanh", -0.8, 1.2)),
    "elu": ("elu", ("elu", 0.5), ("elu", -0.6)),
    "softsign": ("softsign",),
    "softplus": ("softplus",),
}

ROUNDING = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}

# Unbounded gates can make h grow doubly exponentially; a case that passes these is drawn with smaller weights.
LARGEST_RESULT = 8.0
LARGEST_GRADIENT = 200.0

Arrays = dict[str, np.ndarray | None]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One call of an op and of its gradient op: arguments are float64, int or bool arrays, or None where absent.

    `options` has every field of the descriptor that shapes the numbers; `training` and `produce_cell` are the caller's.
    Padded positions (t >= lengths[n]) of source, source_gradient and cell_sequence_gradient are NaN.
    """

    op: str
    seed: int
    options: dict
    inputs: Arrays
    gradients_in: Arrays
    dtype: str = "float64"

    @property
    def activations(self) -> tuple[Activation, ...]:
        return tuple(value for name, value in self.options.items() if name.endswith("activation"))

    @property
    def has_kinks(self) -> bool:
        """Whether f or f' of some activation jumps, so that a small error in x can be a large one in a gradient."""
        return any(kinks(activation) for activation in self.activations)

    @functools.cached_property
    def kink_distance(self) -> float:
        """The least distance of any activation's argument from a kink of it; inf where there is none."""
        nearest = math.inf

        def watch(activation: Activation, x: torch.Tensor) -> None:
            nonlocal nearest
            for kink in kinks(activation):
                nearest = min(nearest, float((x - kink).abs().min()))

        with torch.no_grad():
            visit(self.op, _tensors(self.inputs), self.options, watch)
        return nearest

    @property
    def sizes(self) -> dict[str, int]:
        T, N = self.inputs["source"].shape[:2]
        H = self.inputs["recurrent_weight"].shape[-1]
        W = self.inputs["input_weight"]
        return {"T": T, "N": N, "H": H} if W is None else {"T": T, "N": N, "I": W.shape[-1], "H": H}

    @property
    def id(self) -> str:
        """Short and without spaces, for pytest: what the case is and which of its options are not the default."""
        words = ["".join(f"{letter}{size}" for letter, size in self.sizes.items())]
        words += [
            name if value is True else f"{name}={_text(value)}"
            for name, value in self.options.items()
            if value != DEFAULTS[self.op][name]
        ]
        words += [
            name if name in ("lengths", "resets") else f"{name}{list(value.shape)}".replace(" ", "")
            for name, value in self.inputs.items()
            if value is not None and name not in ("source", "recurrent_weight", "input_weight")
        ]
        return "-".join([f"{self.op}-{self.seed}", *([] if self.dtype == "float64" else [self.dtype]), *words])

    def __str__(self) -> str:
        rounding = "" if self.dtype == "float64" else f".rounded({self.dtype!r})"
        absent = [name for name, value in self.gradients_in.items() if value is None]
        return (
            f"{self.id}\n  gradients not given: {', '.join(absent) or 'none'}"
            f"\n  reproduce: from oracle.cases import case; case({self.op!r}, {self.seed}){rounding}"
        )

    __repr__ = __str__

    def rounded(self, dtype_name: str) -> Case:
        """The case with every float argument rounded through that dtype, still stored as float64."""
        if dtype_name == "float64":
            return self

        def through(arrays: Arrays) -> Arrays:
            return {name: _rounded(array, dtype_name) for name, array in arrays.items()}

        return dataclasses.replace(
            self, inputs=through(self.inputs), gradients_in=through(self.gradients_in), dtype=dtype_name
        )


def case(op: str, seed: int) -> Case:
    """Case number `seed` of the op; the same on every machine."""
    drawn = _draw(op, np.random.default_rng([OPS.index(op), seed]))
    for exponent in range(12):
        shrunk = Case(op, seed, drawn[0], _shrunk(drawn[1], 0.7**exponent), drawn[2])
        forward, backward = reference_results(shrunk)
        if _largest(forward) <= LARGEST_RESULT and _largest(backward) <= LARGEST_GRADIENT:
            return shrunk
    raise ValueError(f"case({op!r}, {seed}) stays large however small its weights are")


def reference_results(case: Case) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The forward results {"h", "c", "z"} and the gradients by input name, float64."""
    inputs = _tensors(case.inputs)
    with torch.no_grad():
        forward = visit(case.op, inputs, case.options)[0]
    backward = gradients(case.op, inputs, case.options, _tensors(case.gradients_in))
    return (
        {name: value.numpy() for name, value in forward.items()},
        {name: value.numpy() for name, value in backward.items()},
    )


def _draw(op: str, rng: np.random.Generator) -> tuple[dict, Arrays, Arrays]:
    def chance(probability: float) -> bool:
        return bool(rng.random() < probability)

    def pick(items: list | tuple):
        return items[rng.integers(len(items))]

    def normal(scale: float, *shape: int) -> np.ndarray:
        return scale * rng.standard_normal(shape)

    options = _draw_options(op, chance, pick)
    T = 0 if chance(0.04) else pick([1, 2, 3, 5, 7])
    N = 0 if chance(0.04) else pick([1, 2, 3, 5])
    I, H = pick([1, 2, 3, 5]), pick([1, 2, 3, 5])
    D = 2 if options["bidirectional"] else 1
    G = len(gate_order(op, options))
    projected_already = chance(0.25)

    def bias_shape() -> tuple[int, ...]:
        plain = (D * G * H,)
        return pick([plain, plain, plain, plain, (1, *plain), (1, 1, *plain), (1,), (1, 1)])

    def start_shape() -> tuple[int, ...]:
        plain = (N, D * H)
        return pick([plain, plain, plain, (1, *plain), (1, D * H), (1, 1, D * H)])

    def last_gradient() -> np.ndarray | None:
        return normal(1.0, *pick([(N, D * H), (N, D * H), (1, N, D * H)])) if chance(0.6) else None

    inputs: Arrays = {
        "source": normal(1.0, T, N, D * G * H if projected_already else I),
        "recurrent_weight": normal(0.5, *((2, G * H, H) if D == 2 else (G * H, H))),
        "input_weight": None if projected_already else normal(0.5, D * G * H, I),
        "bias": normal(0.5, *bias_shape()) if chance(0.7) else None,
        "init_state": normal(0.8, *start_shape()) if chance(0.75) else None,
        "mask": _draw_mask(rng, pick, T, N, D, H) if chance(0.4) else None,
        "lengths": rng.integers(0, T + 1, N).astype(pick([np.int32, np.int64])) if chance(0.35) else None,
        "resets": rng.random((T, N)) < 0.3 if chance(0.3) else None,
    }
    gradients_in: Arrays = {
        "source_gradient": normal(1.0, T, N, D * H) if chance(0.85) else None,
        "state_gradient": last_gradient(),
    }
    if op == "lstm":
        inputs["init_cell"] = normal(0.8, *start_shape()) if chance(0.75) else None
        peephole_shape = pick([(2, 4 * H), (8 * H,)]) if D == 2 else (4 * H,)
        inputs["peephole"] = normal(0.5, *peephole_shape) if chance(0.5) else None
        gradients_in["cell_gradient"] = last_gradient()
        gradients_in["cell_sequence_gradient"] = normal(1.0, T, N, D * H) if chance(0.4) else None
    if op == "gru":
        inputs["secondary_bias"] = normal(0.5, D * H) if chance(0.65) else None

    if inputs["lengths"] is not None:
        padded = np.arange(T)[:, None] >= inputs["lengths"]
        for arrays, name in (
            (inputs, "source"),
            (gradients_in, "source_gradient"),
            (gradients_in, "cell_sequence_gradient"),
        ):
            if arrays.get(name) is not None:
                arrays[name][padded] = np.nan
    return options, inputs, gradients_in


def _draw_options(op: str, chance, pick) -> dict:
    all_default = chance(0.5)

    def drawn(name: str, default):
        if name.endswith("activation"):
            return default if all_default or chance(0.3) else pick(ACTIVATIONS[pick(list(ACTIVATIONS))])
        if name == "peephole_output":
            return pick(["previous", "current"])
        return chance(0.4)

    return {
        name: drawn(name, default) for name, default in DEFAULTS[op].items() if name not in ("training", "produce_cell")
    }


def _draw_mask(rng: np.random.Generator, pick, T: int, N: int, D: int, H: int) -> np.ndarray:
    """A mask of any shape that 5.9 and 9.3 accept, either dropout's or of any values."""
    shapes = [(N, D * H), (N, D * H), (1, D * H), (D * H,), (N, 1), (1,), ()]
    shapes += [(1, N, D * H), (1, 1, D * H), (T, N, D * H), (T, N, D * H), (T, 1, D * H), (T, N, 1)]
    if D == 2:
        shapes += [(H,), (N, H), (N, H), (1, H), (1, N, H), (T, N, H), (T, N, H)]
    shape = pick(shapes)
    if pick([True, False]):
        return np.where(rng.random(shape) < 0.6, 1 / 0.6, 0.0)
    return np.asarray(1 + 0.5 * rng.standard_normal(shape))


def _shrunk(inputs: Arrays, factor: float) -> Arrays:
    names = ["recurrent_weight", "bias", "peephole", "secondary_bias", "init_state", "init_cell"]
    names.append("source" if inputs["input_weight"] is None else "input_weight")
    return {name: array * factor if name in names and array is not None else array for name, array in inputs.items()}


def _largest(arrays: dict[str, np.ndarray]) -> float:
    # NaN is what overflow leaves behind, so it counts as large.
    return max(float(np.nan_to_num(np.abs(array), nan=np.inf).max(initial=0.0)) for array in arrays.values())


def _rounded(array: np.ndarray | None, dtype_name: str) -> np.ndarray | None:
    if array is None or array.dtype != np.float64:
        return array
    return array.astype(ROUNDING[dtype_name]).astype(np.float64)


def _tensors(arrays: Arrays) -> dict[str, torch.Tensor | None]:
    return {name: None if array is None else torch.from_numpy(array) for name, array in arrays.items()}


def _text(value) -> str:
    return ",".join(str(part) for part in value) if isinstance(value, tuple) else str(value)
