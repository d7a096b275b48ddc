"""Second derivatives through an LSTM: the direction in which a loss bends most, without ever building its Hessian.

    python examples/torch/hessian_vector_product.py

The product of the Hessian and a vector costs about as much as two gradients. Here it is made in three ways: backward
twice, forward over backward, and by differences of gradients. The first two are exact and agree to rounding; the third
says that they are right. Power iteration then finds the Hessian's largest eigenvalue: plain gradient descent diverges
with a learning rate beyond 2 over it.

Needs: pip install '.[torch]'
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
import sys

import torch
from torch import Tensor, nn

from recurra.torch import LSTM

Parameters = dict[str, Tensor]
Loss = Callable[[Parameters], Tensor]


class Model(nn.Module):
    """Reads a sequence and says one number for each row; in float64, so that differences mean something."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.lstm = LSTM(3, hidden, num_layers=2, peephole=True, dtype=torch.float64)
        self.head = nn.Linear(hidden, 1, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][-1])[:, 0]  # [N]


def problem(hidden: int, steps: int, seed: int) -> tuple[Parameters, Loss]:
    """First parameters, and a loss of them: the product of two channels, added up over the sequence."""
    torch.manual_seed(seed)
    model = Model(hidden)
    x = torch.randn(steps, 16, 3, dtype=torch.float64)  # [T, N, I]
    wanted = (x[..., 0] * x[..., 1]).mean(0)

    def loss(parameters: Parameters) -> Tensor:
        # F.mse_loss would do the same, but torch cannot take forward mode over its backward.
        return (torch.func.functional_call(model, parameters, (x,)) - wanted).square().mean()

    return {name: p.detach() for name, p in model.named_parameters()}, loss


# --- the product, three times ---


def backward_twice(loss: Loss, at: Parameters, v: Parameters) -> Parameters:
    """The gradient of (gradient · v)."""
    at = {name: p.clone().requires_grad_() for name, p in at.items()}
    gradients = torch.autograd.grad(loss(at), list(at.values()), create_graph=True)
    along = sum((g * v[name]).sum() for name, g in zip(at, gradients, strict=True))
    return dict(zip(at, torch.autograd.grad(along, list(at.values())), strict=True))


def forward_over_backward(loss: Loss, at: Parameters, v: Parameters) -> Parameters:
    """How the gradient changes along v: one pass, and nothing is kept for a second one."""
    return torch.func.jvp(torch.func.grad(loss), (at,), (v,))[1]


def by_differences(loss: Loss, at: Parameters, v: Parameters, step: float = 1e-5) -> Parameters:
    """The gradients a little ahead and a little behind, to an error of order step²."""
    gradient = torch.func.grad(loss)
    ahead, behind = (gradient({name: p + s * v[name] for name, p in at.items()}) for s in (step, -step))
    return {name: (ahead[name] - behind[name]) / (2 * step) for name in at}


# --- vectors that have the parameters' names ---


def dot(a: Parameters, b: Parameters) -> float:
    return float(sum((a[name] * b[name]).sum() for name in a))


def norm(a: Parameters) -> float:
    return dot(a, a) ** 0.5


def distance(a: Parameters, b: Parameters) -> float:
    """Relative to the second."""
    return norm({name: a[name] - b[name] for name in a}) / norm(b)


def direction(like: Parameters, seed: int) -> Parameters:
    """Random, of length 1."""
    generator = torch.Generator().manual_seed(seed)
    v = {name: torch.randn(p.shape, dtype=p.dtype, generator=generator) for name, p in like.items()}
    return {name: value / norm(v) for name, value in v.items()}


def largest_eigenvalue(loss: Loss, at: Parameters, iterations: int, seed: int = 0) -> float:
    """The eigenvalue of the Hessian that is largest in size, by power iteration."""
    v, eigenvalue = direction(at, seed), 0.0
    for _ in range(iterations):
        product = forward_over_backward(loss, at, v)
        eigenvalue, length = dot(v, product), norm(product)
        v = {name: value / length for name, value in product.items()}
    return eigenvalue


def main(arguments: list[str] | None = None) -> int:
    """Compare the three, then find the largest eigenvalue."""
    parser = argparse.ArgumentParser(
        description="Hessian-vector products through an LSTM.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--hidden", type=int, default=16, help="size of the LSTM's state")
    parser.add_argument("--steps", type=int, default=20, help="length of the sequences")
    parser.add_argument("--iterations", type=int, default=30, help="of the power iteration")
    parser.add_argument("--seed", type=int, default=0, help="of weights, data and directions")
    options = parser.parse_args(arguments)
    for name in ("hidden", "steps", "iterations"):
        if getattr(options, name) < 1:
            parser.error(f"argument --{name}: must be 1 or more, got {getattr(options, name)}")

    at, loss = problem(options.hidden, options.steps, options.seed)
    v = direction(at, options.seed)
    exact = backward_twice(loss, at, v)
    print(f"{sum(p.numel() for p in at.values())} parameters; |H v| = {norm(exact):.6f}")
    print(f"forward over backward, against backward twice: {distance(forward_over_backward(loss, at, v), exact):.1e}")
    print(f"differences of gradients, against the same:    {distance(by_differences(loss, at, v), exact):.1e}")
    top = largest_eigenvalue(loss, at, options.iterations, options.seed)
    print(f"largest eigenvalue of the Hessian: {top:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
