"""The cases by which PyTorch tests its own recurrent modules, on ours: `module_db` of torch.testing."""

from __future__ import annotations

from collections.abc import Iterator
import copy
import io
import pickle
from typing import Any
import warnings

import pytest
import torch

import recurra.torch

pytest.importorskip("expecttest", reason="torch.testing wants it: pip install 'recurra[test]'")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of a missing hypothesis, which only other tests of torch want
    from torch.testing._internal.common_modules import ModuleErrorEnum, ModuleInfo, module_db

NAMES = ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")
INFOS = {info.module_cls.__name__: info for info in module_db if info.module_cls.__name__ in NAMES}
DTYPES = (torch.float32, torch.float64)

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")


def cases(name: str, dtype: torch.dtype, requires_grad: bool) -> Iterator[tuple[torch.nn.Module, Any, Any]]:
    """Our module, its ModuleInput, and torch's module with the same weights."""
    info: ModuleInfo = INFOS[name]
    options: dict[str, Any] = {"with_packed_sequence": True} if name in ("RNN", "GRU") else {}
    inputs = info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=requires_grad, training=True, **options
    )
    for number, given in enumerate(inputs):
        made = given.constructor_input
        torch.manual_seed(number)
        theirs = info.module_cls(*made.args, dtype=dtype, **made.kwargs)
        torch.manual_seed(number)
        yield getattr(recurra.torch, name)(*made.args, dtype=dtype, **made.kwargs), given, theirs


def tensors(value: Any) -> list[torch.Tensor]:
    """The differentiable tensors of nested results or arguments."""
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return [value.data]
    if isinstance(value, tuple | list):
        return [tensor for part in value for tensor in tensors(part)]
    return [value] if isinstance(value, torch.Tensor) else []


def called(module: torch.nn.Module, given: Any) -> list[torch.Tensor]:
    return tensors(module(*given.forward_input.args, **given.forward_input.kwargs))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_forward_equals_torch_and_the_reference_of_the_case(name: str, dtype: torch.dtype) -> None:
    count = 0
    for module, given, theirs in cases(name, dtype, False):
        found = called(module, given)
        torch.testing.assert_close(found, called(theirs, given))
        args = given.forward_input.args
        if given.reference_fn is not None and not isinstance(args[0], torch.nn.utils.rnn.PackedSequence):
            reference = given.reference_fn(module, *args)
            torch.testing.assert_close(found, tensors(reference))
        count += 1
    assert count >= 2


@pytest.mark.parametrize("name", NAMES)
def test_gradients_and_their_gradients_are_right(name: str) -> None:
    for module, given, _ in cases(name, torch.float64, True):
        leaves = [t for t in tensors(given.forward_input.args) if t.requires_grad]
        names = [n for n, _ in module.named_parameters()]

        def outputs(*values: torch.Tensor, module=module, given=given, names=names) -> tuple[torch.Tensor, ...]:
            own = iter(values)
            args = _with_leaves(given.forward_input.args, own)
            return tuple(tensors(torch.func.functional_call(module, dict(zip(names, own, strict=True)), args)))

        values = (*leaves, *(p.detach().requires_grad_() for p in module.parameters()))
        assert torch.autograd.gradcheck(outputs, values, fast_mode=True)
        assert torch.autograd.gradgradcheck(outputs, values, fast_mode=True)


def _with_leaves(value: Any, leaves: Iterator[torch.Tensor]) -> Any:
    """The arguments with their tensors replaced, in order."""
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return value._replace(data=next(leaves))
    if isinstance(value, tuple | list):
        return tuple(_with_leaves(part, leaves) for part in value)
    return next(leaves) if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_those_of_torch_in_kind_and_words(name: str, dtype: torch.dtype) -> None:
    info = INFOS[name]
    count = 0
    for case in info.module_error_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=True):
        made, call = case.module_error_input.constructor_input, case.module_error_input.forward_input
        construct = getattr(recurra.torch, name)
        if case.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR:
            with pytest.raises(case.error_type, match=case.error_regex) as caught:
                construct(*made.args, **made.kwargs)
        else:
            module = construct(*made.args, **made.kwargs)
            with pytest.raises(case.error_type, match=case.error_regex) as caught:
                module(*call.args, **call.kwargs)
        assert isinstance(caught.value, recurra.RecurraError)
        assert str(caught.value).startswith(f"{name}: ")
        count += 1
    assert count >= 4


@pytest.mark.parametrize("name", NAMES)
def test_device_and_dtype_reach_every_parameter(name: str) -> None:
    for _, given, _ in cases(name, torch.float32, False):
        made = given.constructor_input
        module = getattr(recurra.torch, name)(*made.args, device="meta", dtype=torch.float64, **made.kwargs)
        assert {(p.device.type, p.dtype) for p in module.parameters()} == {("meta", torch.float64)}
        with torch.device("meta"):
            module = getattr(recurra.torch, name)(*made.args, **made.kwargs)
        assert {p.device.type for p in module.parameters()} == {"meta"}
        empty = module.to_empty(device="cpu")
        assert {p.device.type for p in empty.parameters()} == {"cpu"}


@pytest.mark.parametrize("name", NAMES)
def test_modules_are_shown_saved_pickled_and_copied_as_torch_does(name: str) -> None:
    for module, given, theirs in cases(name, torch.float32, False):
        assert repr(module) == repr(theirs)
        wanted = called(module, given)
        file = io.BytesIO()
        torch.save(theirs.state_dict(), file)
        file.seek(0)
        fresh = getattr(recurra.torch, name)(*given.constructor_input.args, **given.constructor_input.kwargs)
        fresh.load_state_dict(torch.load(file))
        theirs.load_state_dict(module.state_dict())
        whole = io.BytesIO()
        torch.save(module, whole)
        whole.seek(0)
        others = (fresh, pickle.loads(pickle.dumps(module)), torch.load(whole, weights_only=False))
        for other in (*others, copy.deepcopy(module)):
            assert repr(other) == repr(module)
            assert not {id(p) for p in other.parameters()} & {id(p) for p in module.parameters()}
            for a, b in zip(called(other, given), wanted, strict=True):
                assert torch.equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_tensors_that_are_not_contiguous_do_not_matter(name: str) -> None:
    for module, given, _ in cases(name, torch.float64, True):
        if isinstance(given.forward_input.args[0], torch.nn.utils.rnn.PackedSequence):
            continue
        wanted = called(module, given)
        strided = [
            torch.stack([t.detach(), t.detach()], -1)[..., 0].requires_grad_()
            for t in tensors(given.forward_input.args)
        ]
        args = _with_leaves(given.forward_input.args, iter(strided))
        found = tensors(module(*args))
        torch.testing.assert_close(found, wanted)
        leaves = tensors(given.forward_input.args)
        total, own_total = sum(t.sum() for t in wanted), sum(t.sum() for t in found)
        torch.testing.assert_close(torch.autograd.grad(own_total, strided), torch.autograd.grad(total, leaves))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_train_and_eval_differ_with_dropout_only(name: str) -> None:
    module = getattr(recurra.torch, name)(3, 5, 2, dropout=0.5)
    x = torch.randn(4, 2, 3)
    first, second = module(x)[0], module(x)[0]
    assert not torch.equal(first, second)
    module.eval()
    assert torch.equal(module(x)[0], module(x)[0])
