"""torch's own checks of a custom op, on many samples: schema, fake tensors, autograd, AOT with dynamic shapes."""

from __future__ import annotations

from oracle.cases import OPS, case
import pytest
import torch
from torch_samples import DESCRIPTORS, gradient_arguments, in_schema, tensors

pytestmark = pytest.mark.filterwarnings("ignore:gru.* secondary_bias is used only:recurra.RecurraWarning")
SEEDS = range(12)


def check(name: str, given: dict, descriptor) -> None:
    args, kwargs = in_schema(name, given, descriptor)
    done = torch.library.opcheck(getattr(torch.ops.recurra, name), args, kwargs)
    assert set(done.values()) == {"SUCCESS"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("op", OPS)
def test_a_forward_op_passes_opcheck(op: str, training: bool, seed: int) -> None:
    drawn = case(op, seed)
    for requires_grad in (False, True):
        check(op, tensors(drawn.inputs, requires_grad), DESCRIPTORS[op](**drawn.options, training=training))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("op", OPS)
def test_a_gradient_op_passes_opcheck(op: str, seed: int) -> None:
    drawn = case(op, seed)
    for requires_grad in (False, True):
        check(f"{op}_gradients", gradient_arguments(drawn, requires_grad), DESCRIPTORS[op](**drawn.options))


@pytest.mark.parametrize("op", OPS)
def test_the_composed_gradients_pass_opcheck(op: str) -> None:
    drawn = case(op, 3)
    descriptor = DESCRIPTORS[op](**drawn.options, training=True)
    args, kwargs = in_schema(op, tensors(drawn.inputs), descriptor)
    cotangents = [torch.ones_like(y) for y in getattr(torch.ops.recurra, op)(*args, **kwargs)]
    done = torch.library.opcheck(torch.ops.recurra.composed_gradients, (op, args, cotangents), kwargs)
    assert set(done.values()) == {"SUCCESS"}
