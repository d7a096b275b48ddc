"""lengths and resets in the modules: they equal packed sequences, and sequences cut where they say."""

from __future__ import annotations

import itertools
from typing import Any

import nn_pairs
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import recurra.torch

KINDS = nn_pairs.KINDS
T, N, I, H = 7, 4, 3, 5
FORMS = [
    {"num_layers": 1},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
    {"num_layers": 2, "proj_size": 2},
    {"num_layers": 2, "proj_size": 2, "bidirectional": True},
]
CASES = [(kind, form) for kind in KINDS for form in FORMS if kind == "LSTM" or "proj_size" not in form]

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")


def made(kind: str, form: dict[str, Any], seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return getattr(recurra.torch, kind)(I, H, dtype=torch.float64, **form)


def inputs(module: torch.nn.Module, seed: int = 1) -> tuple[torch.Tensor, Any]:
    """x, time-major, and states."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    columns = module.num_layers * (2 if module.bidirectional else 1)
    h = normal(columns, N, module.proj_size or H)
    return normal(T, N, I), ((h, normal(columns, N, H)) if module.mode == "LSTM" else h)


def states(hx: Any) -> tuple[torch.Tensor, ...]:
    return hx if isinstance(hx, tuple) else (hx,)


def called(module: torch.nn.Module, x: torch.Tensor, hx: Any, **options: Any) -> tuple[torch.Tensor, tuple]:
    """The call on time-major x and resets; y time-major too."""
    turned = module.batch_first
    if turned and options.get("resets") is not None:
        options["resets"] = options["resets"].T
    y, last = module(x.transpose(0, 1) if turned else x, hx, **options)
    return (y.transpose(0, 1) if turned else y), states(last)


@pytest.mark.parametrize(("kind", "form"), CASES, ids=str)
def test_lengths_equal_packed_sequences_of_torch_nn_and_padding_may_hold_nan(kind: str, form: dict[str, Any]) -> None:
    module = made(kind, form)
    theirs = getattr(torch.nn, kind)(I, H, dtype=torch.float64, **form)
    theirs.load_state_dict(module.state_dict())
    x, hx = inputs(module)
    lengths = torch.tensor([3, 7, 1, 5])
    x[torch.arange(T)[:, None] >= lengths] = torch.nan
    packed, last = theirs(pack_padded_sequence(x, lengths, enforce_sorted=False), hx)
    wanted = (pad_packed_sequence(packed)[0], *states(last))
    y, own_last = called(module, x, hx, lengths=lengths)
    for a, b in zip((y, *own_last), wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
    loss = sum((t * t).sum() for t in wanted)
    own_loss = sum((t * t).sum() for t in (y, *own_last))
    for a, b in zip(
        torch.autograd.grad(own_loss, list(module.parameters())),
        torch.autograd.grad(loss, list(theirs.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("kind", "form"), CASES, ids=str)
def test_a_row_of_length_zero_ends_where_it_began(kind: str, form: dict[str, Any]) -> None:
    module = made(kind, form)
    x, hx = inputs(module)
    y, last = called(module, x, hx, lengths=torch.tensor([0, 7, 0, 2]))
    assert not y[:, 0].any()
    for given, end in zip(states(hx), last, strict=True):
        assert torch.equal(end[:, [0, 2]], given[:, [0, 2]])
    _, last = called(module, x, None, lengths=torch.tensor([0, 7, 0, 2]))
    assert not any(end[:, [0, 2]].any() for end in last)


@pytest.mark.parametrize(("kind", "form"), [case for case in CASES if not case[1].get("bidirectional")], ids=str)
def test_resets_equal_a_split_of_the_sequence_at_the_boundaries(kind: str, form: dict[str, Any]) -> None:
    module = made(kind, form)
    x, hx = inputs(module)
    resets = torch.zeros(T, N, dtype=torch.bool)
    boundaries = {0: (3,), 1: (), 2: (0, 4), 3: (1, 2, 6)}
    for row, steps in boundaries.items():
        resets[list(steps), row] = True
    y, last = called(module, x, hx, resets=resets)
    for row, steps in boundaries.items():
        given = tuple(s[:, row : row + 1] for s in states(hx))
        cuts = sorted({0, *steps, T})
        parts = []
        for start, stop in itertools.pairwise(cuts):
            initial = None if start in steps else given if kind == "LSTM" else given[0]
            part, given = called(module, x[start:stop, row : row + 1], initial)
            parts.append(part)
        torch.testing.assert_close(y[:, row : row + 1], torch.cat(parts), rtol=0, atol=1e-12)
        for end, own in zip(given, last, strict=True):
            torch.testing.assert_close(own[:, row : row + 1], end, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_resets_cut_both_directions(kind: str) -> None:
    module = made(kind, {"bidirectional": True})
    x, hx = inputs(module)
    resets = torch.zeros(T, N, dtype=torch.bool)
    resets[3] = True
    y, last = called(module, x, hx, resets=resets)

    def halves(tensors: tuple[torch.Tensor, ...], forward: bool) -> Any:
        """The states of one direction, zeros for the other."""
        kept = tuple(torch.stack([s[0] * forward, s[1] * (not forward)]) for s in tensors)
        return kept if kind == "LSTM" else kept[0]

    first, first_last = called(module, x[:3], halves(states(hx), True))
    second, second_last = called(module, x[3:], halves(states(hx), False))
    torch.testing.assert_close(y, torch.cat([first, second]), rtol=0, atol=1e-12)
    for end, a, b in zip(last, second_last, first_last, strict=True):
        torch.testing.assert_close(end, torch.stack([a[0], b[1]]), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kind", "form"), CASES, ids=str)
def test_projected_layers_reset_and_end_as_the_others(kind: str, form: dict[str, Any]) -> None:
    """lengths and resets together: each row equals the row alone, without its padding."""
    module = made(kind, form)
    x, hx = inputs(module)
    lengths = torch.tensor([3, 7, 1, 5])
    resets = torch.rand(T, N, generator=torch.Generator().manual_seed(5)) < 0.3
    y, last = called(module, x, hx, lengths=lengths, resets=resets)
    for row, length in enumerate(lengths.tolist()):
        given = tuple(s[:, row : row + 1] for s in states(hx))
        alone, end = called(
            module, x[:length, row : row + 1], given if kind == "LSTM" else given[0],
            resets=resets[:length, row : row + 1],
        )  # fmt: skip
        torch.testing.assert_close(y[:length, row : row + 1], alone, rtol=0, atol=1e-12)
        assert not y[length:, row].any()
        for a, b in zip(last, end, strict=True):
            torch.testing.assert_close(a[:, row : row + 1], b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_resets_of_a_packed_sequence_are_in_the_order_of_the_rows(kind: str) -> None:
    module = made(kind, {"batch_first": True})
    x, hx = inputs(module)
    lengths = torch.tensor([3, 7, 1, 5])
    resets = torch.rand(N, T, generator=torch.Generator().manual_seed(5)) < 0.3
    packed = pack_padded_sequence(x.transpose(0, 1), lengths, batch_first=True, enforce_sorted=False)
    y, last = module(packed, hx, resets=resets)
    wanted, wanted_last = module(x.transpose(0, 1), hx, lengths=lengths, resets=resets)
    torch.testing.assert_close(pad_packed_sequence(y, batch_first=True)[0], wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(last, wanted_last, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_single_sequences_take_lengths_and_resets(kind: str) -> None:
    module = made(kind, {})
    x, _ = inputs(module)
    resets = torch.tensor([False, False, True, False, False, False, True])
    y, last = module(x[:, 0], lengths=4, resets=resets)
    wanted, wanted_last = module(x[:, :1], lengths=[4], resets=resets[:, None])
    torch.testing.assert_close(y, wanted[:, 0], rtol=0, atol=0)
    torch.testing.assert_close(states(last), tuple(s[:, 0] for s in states(wanted_last)), rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_no_steps_leave_the_states_alone(kind: str) -> None:
    module = made(kind, {"bidirectional": True, "num_layers": 2})
    x, hx = inputs(module)
    y, last = called(module, x[:0], hx)
    assert y.shape == (0, N, 2 * H)
    torch.testing.assert_close(last, states(hx), rtol=0, atol=0)
    assert not any(s.any() for s in called(module, x[:0], None)[1])


@pytest.mark.parametrize("kind", KINDS)
def test_last_states_have_memory_of_their_own(kind: str) -> None:
    module = made(kind, {})
    x, _ = inputs(module)
    with torch.no_grad():
        y, last = module(x)
        before = y.clone()
        for state in states(last):
            state.zero_()
    assert torch.equal(y, before)


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_are_moved_from_the_cpu(kind: str) -> None:
    module = getattr(recurra.torch, kind)(I, H, device="meta")
    y, last = module(torch.empty(T, N, I, device="meta"), lengths=torch.tensor([3, 7, 1, 5]))
    assert y.shape == (T, N, H)
    assert y.device.type == states(last)[0].device.type == "meta"
