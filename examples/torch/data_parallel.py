"""Train on several processes: the losses are those of one process that sees every batch whole.

    torchrun --nproc-per-node 2 examples/torch/data_parallel.py
    python examples/torch/data_parallel.py

DistributedDataParallel averages gradients over processes while the backward pass still runs. A module of recurra.torch
needs nothing for that: its weights are plain parameters, never flattened into one block. Each process takes every n-th
row of a batch. The task is to add up the marked numbers of a sequence, and sequences have different lengths.

Needs: pip install '.[torch]'
"""

from __future__ import annotations

import argparse
import os
import sys

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from recurra.torch import LSTM

LONGEST = 20


class Adder(nn.Module):
    """One number for each row of x [T, N, 2]."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.lstm = LSTM(2, hidden, num_layers=2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, 1)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        y, _ = self.lstm(x, lengths=lengths)  # [T, N, 2H], zeros behind a row's last step
        return self.head(y.sum(0))[:, 0]


def draw(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers and marks x [T, N, 2], lengths [N], and the sums of the marked numbers within them [N]."""
    numbers = torch.randn(LONGEST, rows, generator=generator)
    marks = (torch.rand(LONGEST, rows, generator=generator) < 0.2).float()
    lengths = torch.randint(1, LONGEST + 1, (rows,), generator=generator)
    is_inside = torch.arange(LONGEST)[:, None] < lengths
    return torch.stack([numbers, marks], -1), lengths, (numbers * marks * is_inside).sum(0)


def train(steps: int, rows: int, seed: int, rank: int, processes: int) -> list[float]:
    """The loss over all rows of each batch, before that step changed the weights; the same in each process."""
    torch.manual_seed(seed)
    model: nn.Module = Adder()
    if distributed.is_initialized():
        model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    generator = torch.Generator().manual_seed(seed)
    losses: list[float] = []
    for _ in range(steps):
        x, lengths, sums = draw(rows, generator)  # each process draws the whole batch, and takes its own rows of it
        own = slice(rank, None, processes)
        loss = F.mse_loss(model(x[:, own], lengths[own]), sums[own])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach()
        if distributed.is_initialized():
            distributed.all_reduce(total)
        losses.append(float(total) / processes)
    return losses


def main(arguments: list[str] | None = None) -> int:
    """Train; the first process prints."""
    parser = argparse.ArgumentParser(
        description="Train an LSTM in several processes.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=100, help="training steps")
    parser.add_argument("--rows", type=int, default=32, help="in a batch, over all processes")
    parser.add_argument("--seed", type=int, default=0, help="of weights and data")
    options = parser.parse_args(arguments)
    # torchrun says so to each process that it starts; alone, this is one process of one.
    rank, processes = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if options.steps < 1:
        parser.error(f"argument --steps: must be 1 or more, got {options.steps}")
    if options.rows < 1 or options.rows % processes:
        # The mean over the processes is the mean over the rows only if each has as many.
        parser.error(f"argument --rows: must be a multiple of the number of processes, {processes}, got {options.rows}")

    if processes > 1:
        distributed.init_process_group("gloo")
    try:
        losses = train(options.steps, options.rows, options.seed, rank, processes)
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
    if rank == 0:
        print(f"{processes} {'process' if processes == 1 else 'processes'}, {options.rows // processes} rows in each")
        for k, loss in enumerate(losses, 1):
            print(f"step {k:3}  loss {loss:.8f}")
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Not sys.exit: a thread of gloo's may still be about to let go of its last work. It takes Python's lock for that,
    # and where Python has begun to end it cannot, and aborts the process (seen with torch 2.13, where these threads
    # outlive destroy_process_group once there was a DistributedDataParallel).
    os._exit(status)
