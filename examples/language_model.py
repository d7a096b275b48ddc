"""Train a bidirectional LSTM that fills in the masked characters of a text.

    python examples/language_model.py --steps 200

A model that reads in both directions sees the character that an ordinary language model must predict. So some of the
characters are replaced by a mask symbol, and only those are predicted. The text is the prose of Python's own help
(`pydoc_data.topics`), which every CPython carries along.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
import string
import sys
import tempfile
import time

import numpy as np

import recurra
from recurra import Tensor, ops

# A fixed alphabet: the text differs a little from one Python to the next. Whatever is not in it is read as OTHER.
ALPHABET = "\n " + string.ascii_lowercase + string.digits + "!\"'()*+,-./:;=?[]_"
OTHER, MASK = len(ALPHABET), len(ALPHABET) + 1
SYMBOLS = len(ALPHABET) + 2
SHARE_MASKED = 0.15
LAYERS = 3


# --- the text ---


def load_text() -> np.ndarray:
    """The prose as numbers of characters, lower case, with runs of spaces made one."""
    from pydoc_data.topics import topics

    text = " ".join("\n\n".join(topics[key] for key in sorted(topics)).lower().split(" "))
    while "  " in text:
        text = text.replace("  ", " ")
    number = {character: k for k, character in enumerate(ALPHABET)}
    return np.array([number.get(character, OTHER) for character in text], dtype=np.int32)


def batches(text: np.ndarray, batch: int, steps: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Without end: masked characters, the true ones, and 1 where one was masked; each [N, T]."""
    rng = np.random.default_rng(seed)
    while True:
        starts = rng.integers(0, len(text) - steps + 1, batch)
        truth = text[starts[:, None] + np.arange(steps)]
        is_masked = rng.random(truth.shape) < SHARE_MASKED
        is_masked[:, steps // 2] = True  # at least one in each row
        yield np.where(is_masked, np.int32(MASK), truth), truth, is_masked.astype(np.float32)


def to_string(numbers: np.ndarray) -> str:
    """Numbers as characters; the mask is shown as #."""
    return "".join((*ALPHABET, "~", "#")[k] for k in numbers).replace("\n", " ")


# --- the model ---


@dataclass(frozen=True)
class Model:
    """What a user of the graph needs: what is fed, what can be computed, and the variables by name."""

    graph: recurra.Graph
    masked: Tensor  # int32 [N, T]
    truth: Tensor  # int32 [N, T]
    weight: Tensor  # float32 [N, T]
    logits: Tensor  # [N, T, SYMBOLS], without dropout
    loss: Tensor  # mean over the masked characters, without dropout
    training_loss: Tensor  # with dropout
    train: list[recurra.Operation]
    variables: dict[str, Tensor]


def initial_weights(hidden: int, embedding: int, seed: int) -> dict[str, np.ndarray]:
    """Random weights by name. A layer's two directions are stacked: rank 3 in R, one behind the other in W and b."""
    rng = np.random.default_rng(seed)
    reach = hidden**-0.5

    def uniform(*shape: int) -> np.ndarray:
        return rng.uniform(-reach, reach, shape).astype(np.float32)

    weights = {"embedding": rng.standard_normal((SYMBOLS, embedding)).astype(np.float32)}
    for layer in range(LAYERS):
        inputs = embedding if layer == 0 else 2 * hidden
        weights[f"lstm{layer}/W"] = uniform(2 * 4 * hidden, inputs)
        weights[f"lstm{layer}/R"] = uniform(2, 4 * hidden, hidden)
        weights[f"lstm{layer}/b"] = uniform(2 * 4 * hidden)
    weights["head/W"], weights["head/b"] = uniform(2 * hidden, SYMBOLS), np.zeros(SYMBOLS, np.float32)
    return weights


def build(weights: dict[str, np.ndarray], *, dropout: float, learning_rate: float = 3e-3, seed: int = 0) -> Model:
    """The graph of the model and of its training step; `seed` is that of dropout."""
    graph = recurra.Graph(seed=seed)
    variables = {name: graph.variable(value, name) for name, value in weights.items()}
    masked = graph.placeholder([None, None], "int32", name="masked")
    truth = graph.placeholder([None, None], "int32", name="truth")
    weight = graph.placeholder([None, None], "float32", name="weight")

    # Two ways through the same variables: dropout belongs to training alone.
    logits = forward(variables, masked, 0.0)
    training_logits = forward(variables, masked, dropout) if dropout else logits
    loss = masked_loss(logits, truth, weight)
    training_loss = masked_loss(training_logits, truth, weight) if dropout else loss
    train = adam(graph, training_loss, list(variables.values()), learning_rate)
    return Model(graph, masked, truth, weight, logits, loss, training_loss, train, variables)


def forward(variables: dict[str, Tensor], masked: Tensor, dropout: float) -> Tensor:
    """Logits [N, T, SYMBOLS] of characters [N, T]."""
    bidirectional = recurra.LSTMDescriptor(bidirectional=True)
    x = ops.gather(variables["embedding"], masked)  # [N, T, E]
    x = ops.transpose(x, (1, 0, 2))  # [T, N, E]: the recurrent ops have no batch-first form
    for layer in range(LAYERS):
        if layer > 0:
            x = ops.dropout(x, dropout)  # between layers, as in PyTorch
        W, R, b = (variables[f"lstm{layer}/{k}"] for k in "WRb")
        x = recurra.lstm(x, R, input_weight=W, bias=b, descriptor=bidirectional).h  # [T, N, 2H]
    return ops.transpose(x, (1, 0, 2)) @ variables["head/W"] + variables["head/b"]


def masked_loss(logits: Tensor, truth: Tensor, weight: Tensor) -> Tensor:
    """The mean cross-entropy over the positions of weight 1."""
    losses = ops.softmax_cross_entropy(logits, ops.one_hot(truth, SYMBOLS))  # [N, T]
    return (losses * weight).sum() / weight.sum()


def adam(graph: recurra.Graph, loss: Tensor, variables: list[Tensor], learning_rate: float) -> list[recurra.Operation]:
    """The assignments of a step of Adam with PyTorch's defaults."""
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8
    power1, power2 = (graph.variable(1.0, name) for name in ("adam/beta1_power", "adam/beta2_power"))
    power1_now, power2_now = power1 * beta1, power2 * beta2
    updates = [graph.assign(power1, power1_now), graph.assign(power2, power2_now)]
    # PyTorch adds epsilon to the corrected root of v, MPSGraph to the plain one. This makes the two the same.
    epsilon_now = ops.sqrt(1.0 - power2_now) * epsilon
    gradients = graph.gradients(loss, variables)
    for variable in variables:
        m, v = (graph.variable(np.zeros(variable.shape, np.float32), f"adam/{variable.name}/{k}") for k in "mv")
        new = ops.adam(
            learning_rate, beta1, beta2, epsilon_now, power1_now, power2_now, variable, m, v, None, gradients[variable]
        )
        updates += [graph.assign(old, value) for old, value in zip((variable, m, v), new, strict=True)]
    return updates


# --- training ---


def train(model: Model, feed: Iterator[tuple[np.ndarray, ...]], steps: int, *, show: bool = False) -> list[float]:
    """The loss of each step, before that step changed the weights."""
    step = model.graph.compile([model.masked, model.truth, model.weight], model.training_loss, model.train)
    losses: list[float] = []
    start = time.monotonic()
    for k in range(1, steps + 1):
        losses.append(float(step.run(next(feed))))
        if show:
            show_progress(k, steps, float(np.mean(losses[-20:])), time.monotonic() - start)
    return losses


def show_progress(k: int, steps: int, loss: float, spent: float) -> None:
    """One line that is written over on a terminal; elsewhere, ten lines in all."""
    is_terminal = sys.stdout.isatty()
    if is_terminal or k in (1, steps) or k % max(1, steps // 10) == 0:
        text = f"step {k:{len(str(steps))}}/{steps}  loss {loss:.3f}  {spent / k * (steps - k):4.0f} s left"
        end = "" if is_terminal and k < steps else "\n"
        print(f"\r{text}" if is_terminal else text, end=end, flush=True)


def save_and_compare(model: Model, path: Path, masked: np.ndarray) -> np.ndarray:
    """Save the model without dropout, load it, and refuse if it does not compute the same; the logits."""
    executable = model.graph.compile([model.masked], model.logits)
    executable.save(path)
    logits = executable.run([masked])
    loaded = recurra.Executable.load(path).run([masked])
    if not np.array_equal(logits, loaded):
        raise SystemExit(f"{path}: the loaded model computes other numbers than the one that was saved")
    return logits


def main(arguments: list[str] | None = None) -> int:
    """Train, fill in, save, load."""
    options = parse(arguments)
    text = load_text()
    held_out = len(text) // 10
    weights = initial_weights(options.hidden, options.hidden, options.seed)
    model = build(weights, dropout=options.dropout, seed=options.seed)
    parameters = sum(value.size for value in weights.values())
    print(f"{len(text)} characters of text, the last {held_out} held out; {parameters} parameters in {LAYERS} layers")

    feed = batches(text[:-held_out], options.batch, options.seq, options.seed)
    train(model, feed, options.steps, show=True)

    masked, truth, weight = next(batches(text[-held_out:], 32, options.seq, options.seed))
    loss = model.graph.run({model.masked: masked, model.truth: truth, model.weight: weight}, model.loss)
    with tempfile.TemporaryDirectory() as folder:
        logits = save_and_compare(model, options.save or Path(folder) / "model.recurra", masked)
    filled = np.where(weight > 0, logits.argmax(axis=-1), truth)
    right = (filled == truth)[weight > 0].mean()
    print(f"held-out text: loss {float(loss):.3f}, {right:.0%} of the masked characters right; the loaded model agrees")
    for label, row in (("masked", masked), ("filled", filled), ("truth", truth)):
        print(f"  {label:6}  {to_string(row[0])}")
    if options.save:
        print(f"Saved {options.save}")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""

    def count(text: str) -> int:
        if int(text) < 1:
            raise argparse.ArgumentTypeError(f"must be 1 or more, got {text}")
        return int(text)

    def share(text: str) -> float:
        if not 0 <= float(text) <= 1:
            raise argparse.ArgumentTypeError(f"must lie in [0, 1], got {text}")
        return float(text)

    parser = argparse.ArgumentParser(
        description="Train a bidirectional LSTM that fills in masked characters.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--steps", type=count, default=300, help="training steps")
    parser.add_argument("--hidden", type=count, default=64, help="size of each direction's state, and of the embedding")
    parser.add_argument("--batch", type=count, default=32, help="rows of text in a step")
    parser.add_argument("--seq", type=count, default=64, help="characters in a row")
    parser.add_argument("--dropout", type=share, default=0.1, help="between layers, in training")
    parser.add_argument("--seed", type=int, default=0, help="of weights, batches and dropout")
    parser.add_argument("--save", type=Path, help="where to keep the trained model")
    options = parser.parse_args(arguments)
    if options.save and not options.save.parent.is_dir():  # said before the training, not after it
        parser.error(f"argument --save: {options.save.parent} is not a directory")
    return options


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nStopped.")
        sys.exit(130)
