"""Train a character language model with variational dropout: one mask for a whole sequence, not one for each step.

    python examples/torch/variational_language_model.py --steps 300

Dropout that draws a new mask at each step destroys what a recurrent state keeps. The remedy (Gal and Ghahramani,
"A Theoretically Grounded Application of Dropout in Recurrent Neural Networks", 2016) draws one mask for the sequence,
for the inputs and for the recurrent state. torch.nn cannot do the latter without a loop in Python: here it is
`recurrent_dropout=`. The text is the prose of Python's own help (`pydoc_data.topics`), which every CPython carries.

Needs: pip install '.[torch]'
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
import sys
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from recurra.torch import LSTM

SYMBOLS = 128  # of ASCII
State = tuple[Tensor, Tensor]


# --- the text ---


def load_text() -> Tensor:
    """The prose as ASCII codes, with every run of blanks made one space."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[key] for key in sorted(topics)).encode("ascii", "ignore")
    return torch.frombuffer(bytearray(b" ".join(text.split())), dtype=torch.uint8).long()


def rows_of(text: Tensor, batch: int) -> Tensor:
    """The text cut into that many rows that go on beside each other: [L, N], time first."""
    length = len(text) // batch
    return text[: length * batch].view(batch, length).T.contiguous()


def pieces(rows: Tensor, length: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Characters and the ones after them, [T, N] each, in order."""
    for start in range(0, len(rows) - length, length):
        yield rows[start : start + length], rows[start + 1 : start + length + 1]


def unigram_entropy(text: Tensor) -> float:
    """What a model costs, in nats a character, that knows how often each character comes and nothing else."""
    share = torch.bincount(text, minlength=SYMBOLS) / len(text)
    return float(torch.special.entr(share).sum())


# --- the model ---


def sequence_dropout(x: Tensor, rate: float, is_training: bool) -> Tensor:
    """Dropout of x [T, N, I] with the same elements at all steps."""
    return x * F.dropout(torch.ones_like(x[:1]), rate, is_training)


class LanguageModel(nn.Module):
    """Logits of the next character. Its masks are drawn anew for each piece of text."""

    def __init__(self, hidden: int, dropout: float, recurrent_dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.embedding = nn.Embedding(SYMBOLS, hidden)
        self.lstm = LSTM(hidden, hidden, recurrent_dropout=recurrent_dropout)
        self.head = nn.Linear(hidden, SYMBOLS)

    def forward(self, characters: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """From characters [T, N] and a state: logits [T, N, SYMBOLS], and the state after them."""
        x = sequence_dropout(self.embedding(characters), self.dropout, self.training)  # [T, N, H]
        y, state = self.lstm(x, state)
        return self.head(sequence_dropout(y, self.dropout, self.training)), state


def loss_of(logits: Tensor, truth: Tensor) -> Tensor:
    """Nats a character."""
    return F.cross_entropy(logits.flatten(0, 1), truth.flatten())


def train(model: LanguageModel, rows: Tensor, steps: int, length: int) -> list[float]:
    """Truncated backpropagation through time: each piece starts from the state after the one before it."""
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    losses: list[float] = []
    start = time.monotonic()
    model.train()
    while len(losses) < steps:
        state = None
        for characters, truth in pieces(rows, length):
            logits, state = model(characters, state)
            state = tuple(s.detach() for s in state)
            loss = loss_of(logits, truth)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            if len(losses) in (1, steps) or len(losses) % max(1, steps // 10) == 0:
                print(
                    f"step {len(losses):4}/{steps}  loss {losses[-1]:.3f}  {time.monotonic() - start:3.0f} s",
                    flush=True,
                )
            if len(losses) == steps:
                break
    return losses


@torch.no_grad()
def measure(model: LanguageModel, text: Tensor) -> float:
    """Nats a character of a text, read from its beginning without dropout."""
    model.eval()
    rows = rows_of(text, 1)
    return float(loss_of(model(rows[:-1])[0], rows[1:]))


@torch.no_grad()
def write(model: LanguageModel, beginning: str, length: int, seed: int) -> str:
    """A beginning and what the model goes on with, drawn from its own predictions, frame by frame."""
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    written = list(beginning.encode("ascii"))
    unread, state = torch.tensor(written)[:, None], None
    for _ in range(length):
        logits, state = model(unread, state)
        unread = torch.multinomial(logits[-1].softmax(-1), 1, generator=generator)  # [1, 1]
        written.append(int(unread))
    return bytes(written).decode("ascii", "replace")


def main(arguments: list[str] | None = None) -> int:
    """Train, measure on held-out text, write a line."""
    options = parse(arguments)
    torch.manual_seed(options.seed)
    text = load_text()
    learned, held_out = text[: -len(text) // 10], text[-len(text) // 10 :]
    model = LanguageModel(options.hidden, options.dropout, options.recurrent_dropout)
    print(f"{len(text)} characters of text, the last {len(held_out)} held out")
    train(model, rows_of(learned, options.batch), options.steps, options.seq)
    print(f"held-out text: loss {measure(model, held_out):.3f}, unigram entropy {unigram_entropy(learned):.3f}")
    print(write(model, "The ", 60, options.seed))
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""

    def count(text: str) -> int:
        if int(text) < 1:
            raise argparse.ArgumentTypeError(f"must be 1 or more, got {text}")
        return int(text)

    def rate(text: str) -> float:
        if not 0 <= float(text) < 1:
            raise argparse.ArgumentTypeError(f"must lie in [0, 1), got {text}")
        return float(text)

    parser = argparse.ArgumentParser(
        description="A character language model with variational dropout.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--steps", type=count, default=300, help="training steps")
    parser.add_argument("--hidden", type=count, default=128, help="size of the state and of the embedding")
    parser.add_argument("--batch", type=count, default=32, help="rows of text in a step")
    parser.add_argument("--seq", type=count, default=64, help="characters in a row")
    parser.add_argument("--dropout", type=rate, default=0.1, help="of the LSTM's inputs and outputs")
    parser.add_argument("--recurrent-dropout", type=rate, default=0.2, help="of the LSTM's state")
    parser.add_argument("--seed", type=int, default=0, help="of weights and masks")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nStopped.")
        sys.exit(130)
