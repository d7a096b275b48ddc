"""Hessian-vector products of the examples: three ways agree, and with a Hessian that was built whole."""

from __future__ import annotations

import re

import pytest
import torch

from examples import programs

program = programs.load("torch/hessian_vector_product")
# torch's forward mode scripts some of its own formulas.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
SMALL = {"hidden": 2, "steps": 5, "seed": 1}


def hessian(at: dict[str, torch.Tensor], loss: object) -> torch.Tensor:
    """All second derivatives, in the order of the parameters."""
    sizes, shapes = [p.numel() for p in at.values()], [p.shape for p in at.values()]

    def flat_loss(flat: torch.Tensor) -> torch.Tensor:
        parts = (part.view(shape) for part, shape in zip(flat.split(sizes), shapes, strict=True))
        return loss(dict(zip(at, parts, strict=True)))

    return torch.func.hessian(flat_loss)(torch.cat([p.flatten() for p in at.values()]))


@pytest.mark.parametrize("sizes", [SMALL, {"hidden": 16, "steps": 20, "seed": 0}], ids=["small", "as it runs"])
def test_products_agree(sizes: dict[str, int]) -> None:
    at, loss = program.problem(**sizes)
    v = program.direction(at, seed=3)
    assert program.norm(v) == pytest.approx(1)
    exact = program.backward_twice(loss, at, v)
    assert exact.keys() == at.keys()
    assert all(value.dtype == torch.float64 and value.any() for value in exact.values())
    assert program.distance(program.forward_over_backward(loss, at, v), exact) < 1e-12
    # Differences are off by step² = 1e-10 times a fourth derivative, and by rounding / step = 1e-11.
    assert program.distance(program.by_differences(loss, at, v), exact) < 1e-7


def test_product_is_that_of_the_hessian() -> None:
    at, loss = program.problem(**SMALL)
    v = program.direction(at, seed=4)
    whole = hessian(at, loss)
    torch.testing.assert_close(whole, whole.T)
    product = torch.cat([p.flatten() for p in program.forward_over_backward(loss, at, v).values()])
    torch.testing.assert_close(product, whole @ torch.cat([p.flatten() for p in v.values()]))


def test_power_iteration_finds_the_largest_eigenvalue() -> None:
    at, loss = program.problem(**SMALL)
    eigenvalues = torch.linalg.eigvalsh(hessian(at, loss))
    largest = eigenvalues[eigenvalues.abs().argmax()]
    assert program.largest_eigenvalue(loss, at, iterations=60) == pytest.approx(float(largest), rel=1e-6)


def test_command_says_how_well_they_agree() -> None:
    text = programs.run("torch/hessian_vector_product", "--hidden", 4, "--steps", 6, "--iterations", 3)
    exact, differences = (float(n) for n in re.findall(r"(?:twice|same): +(\d\.\de-\d+)$", text, re.MULTILINE))
    assert exact < 1e-12
    assert differences < 1e-7
    assert re.search(r"^largest eigenvalue of the Hessian: -?\d+\.\d{4}$", text, re.MULTILINE)


@pytest.mark.parametrize("option", ["--hidden", "--steps", "--iterations"])
def test_wrong_options_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main([option, "0"])
    assert f"argument {option}: must be 1 or more, got 0" in capsys.readouterr().err
