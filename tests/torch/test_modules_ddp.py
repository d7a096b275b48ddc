"""DistributedDataParallel with two gloo processes: gradients and weights as those of one process on the whole batch."""

from __future__ import annotations

import os
from pathlib import Path
import subprocess
import sys

import pytest
import torch

PROGRAM = """
import os
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import recurra.torch

rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
if rank >= 0:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.ModuleDict({
    "lstm": recurra.torch.LSTM(3, 4, 2, bidirectional=True, peephole=True, dtype=torch.float64),
    "gru": torch.nn.GRU(8, 4, batch_first=False, dtype=torch.float64),
})

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = model
    def forward(self, x, lengths):
        y, _ = self.parts["lstm"](x, lengths=lengths)
        return self.parts["gru"](y)[0]

whole = Model()
x = torch.randn(5, 6, 3, dtype=torch.float64)
lengths = torch.tensor([5, 2, 4, 1, 5, 3])
parallel = whole
if rank >= 0:
    x, lengths = x[:, rank::2], lengths[rank::2]
    parallel = DistributedDataParallel(whole)
print(recurra.torch.replace(whole))
optimizer = torch.optim.SGD(whole.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    (parallel(x, lengths) ** 2).mean().backward()
    optimizer.step()
torch.save(whole.state_dict(), f"{folder}/weights{rank}.pt")
if rank >= 0:
    dist.destroy_process_group()
    # gloo's threads outlive the group, and torch 2.13 may abort when they meet an interpreter that ends.
    sys.stdout.flush()
    os._exit(0)
"""


def test_two_processes_train_what_one_does(tmp_path: Path) -> None:
    if not torch.distributed.is_available():
        pytest.skip("this torch was built without torch.distributed")
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(tmp_path)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for rank in (-1, 0, 1)
    ]  # fmt: skip
    for process in started:
        said, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        assert "replaced 1, left 0" in said
    alone, first, second = (torch.load(tmp_path / f"weights{rank}.pt") for rank in (-1, 0, 1))
    for name, value in alone.items():
        assert torch.equal(first[name], second[name])
        torch.testing.assert_close(first[name], value)
