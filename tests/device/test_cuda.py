"""The reference on torch CUDA tensors. CI has no GPU: run these where there is one."""

from __future__ import annotations

import numpy as np
from oracle.cases import OPS, case, reference_results
import pytest
from recurrent.calls import arguments, compute, descriptor, distance, tolerance
import torch

import recurra
from recurra import ops

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU and a CUDA build of torch"),
    pytest.mark.filterwarnings("ignore:gru.* secondary_bias is used only:recurra.RecurraWarning"),
]


def on_gpu(arrays: dict) -> dict:
    return {k: v.cuda() for k, v in arrays.items()}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("op", OPS)
def test_cuda_tensors_agree_with_the_oracle(op: str, seed: int, dtype: str) -> None:
    drawn = case(op, seed).rounded(dtype)
    if dtype != "float64" and 0 < drawn.kink_distance < 0.1:
        pytest.skip(f"an argument lies {drawn.kink_distance:.1e} from a kink: {dtype} cannot tell on which side")
    inputs, gradients_in = (on_gpu(arguments(a, "torch", dtype)) for a in (drawn.inputs, drawn.gradients_in))
    results = compute(op, descriptor(drawn), inputs, gradients_in)
    for got, wanted, backward in zip(results, reference_results(drawn), (False, True), strict=True):
        for name, value in wanted.items():
            tensor = getattr(got, name)
            assert tensor.device.type == "cuda"
            error = distance(tensor.double().cpu().numpy(), value)
            bound = 1e-9 if dtype == "float64" else tolerance(drawn, dtype, backward)
            assert error <= bound, f"{name} is off by {error:.2e}\n{drawn}"


def test_more_rows_than_a_grid_dimension_holds() -> None:
    """pytorch#177834: T*N beyond 65,535."""
    x = np.random.default_rng(0).normal(size=(70, 1000, 12))
    R = np.random.default_rng(1).normal(size=(12, 3))
    on_cpu = recurra.lstm(x, R).h
    np.testing.assert_allclose(recurra.lstm(torch.from_numpy(x).cuda(), torch.from_numpy(R).cuda()).h.cpu(), on_cpu)


def test_a_graph_trains_on_the_gpu() -> None:
    def losses(move) -> list[float]:
        rng = np.random.default_rng(3)
        graph = recurra.Graph(seed=1)
        x = graph.placeholder([None, None, 3], "float64")
        R, W = graph.variable(rng.normal(size=(8, 2)), "R"), graph.variable(rng.normal(size=(8, 3)), "W")
        h = ops.dropout(graph.lstm(x, R, input_weight=W).h, 0.2)
        loss = ops.mean(h * h, keepdims=False)
        steps = [graph.assign(v, v - d) for v, d in graph.gradients(loss, [R, W]).items()]
        fed = move(torch.from_numpy(rng.normal(size=(5, 4, 3))))
        return [float(graph.run({x: fed}, loss, steps)) for _ in range(5)]

    np.testing.assert_allclose(losses(lambda a: a.cuda()), losses(lambda a: a), rtol=1e-10)


def test_arrays_on_two_devices_are_refused() -> None:
    with pytest.raises(
        recurra.DeviceError, match="lstm: recurrent_weight must be on the device of source, cuda:0, got cpu"
    ):
        recurra.lstm(torch.zeros(2, 1, 8).cuda(), torch.zeros(8, 2))


def test_compile_moves_inputs_to_the_gpu() -> None:
    graph = recurra.Graph()
    x = graph.placeholder([2])
    assert graph.compile([x], x * 2.0, device="cuda:0").run([torch.ones(2)]).device.type == "cuda"


def test_run_time_autograd_on_the_gpu_agrees_with_the_gradient_op() -> None:
    R = torch.randn(12, 3, dtype=torch.float64, device="cuda", requires_grad=True)
    x = torch.randn(6, 2, 12, dtype=torch.float64, device="cuda")
    options = recurra.LSTMDescriptor(training=True)
    h, c, z = recurra.lstm(x, R, descriptor=options)
    (h * h).sum().backward()
    gradients = recurra.lstm_gradients(x, R.detach(), 2 * h.detach(), z.detach(), c.detach(), descriptor=options)
    torch.testing.assert_close(R.grad, gradients.recurrent_weight)
