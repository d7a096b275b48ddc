"""What holds for every test."""

import torch

# Tiny tensors: a second thread costs more than it brings, and the test runner has a worker per core already.
torch.set_num_threads(1)
