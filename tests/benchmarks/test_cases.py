"""The registry, the peers, and that all of them compute the same numbers."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util

from cases import CASES, GRID, MODES, OPS, TINY, Case
import contest
from inputs import numbers
import pytest
from rivals import PEERS, Unavailable, offer

from benchmarks.suite import small

# JAX warns of every fork after it was loaded; OpenVINO and torch.compile start programs, which use no JAX.
pytestmark = pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")

KINDS = {(c.group, c.op, c.mode, c.bidirectional, c.options): small(c) for c in CASES.values()}


def test_every_case_has_a_known_subject_and_known_peers() -> None:
    for case in CASES.values():
        assert {case.subject, *case.peers} <= PEERS.keys(), case.name
        assert case.subject not in case.peers, case.name
        assert case.mode in MODES, case.name
        assert set(case.options) <= {"peephole", "mask", "lengths", "resets", "dropout"}, case.name


def test_the_grid_has_every_op_in_every_mode_on_every_shape() -> None:
    grid = {(c.op, c.mode, c.T, c.N, c.I, c.H) for c in CASES.values() if c.group == "grid" and not c.bidirectional}
    assert grid == {(op, mode, *sizes) for op in OPS for mode in ("inf", "fwd", "fb", "bwd") for sizes in GRID}


def contestant(peer: str, case: Case) -> contest.Here:
    try:
        return contest.Here(peer, case, numbers(case))
    except Unavailable as reason:
        if peer in ("onednn", "openvino"):
            pytest.skip(f"{peer}: {reason}; docs/benchmarks.md says how to get it")
        raise


def asked(*peers: str) -> list[object]:
    """Each kind of case with each of its peers, of these; peers that other numbers come out of compare nothing."""
    return [
        pytest.param(case, peer, id=f"{case.group}-{case.op}-{case.mode}-{case.shape}-{peer}")
        for case in KINDS.values()
        for peer in case.peers
        if not PEERS[peer].computes_something_else
        if peer in peers or (not peers and not peer.startswith("torch-c"))
    ]


def has_module(case: Case) -> bool:
    """Asked without the benchmarks, which are what is tested."""
    found = importlib.util.find_spec("recurra.torch")
    return found is not None and hasattr(
        importlib.import_module("recurra.torch"), {"rnn": "RNN"}.get(case.op, case.op.upper())
    )


def refused(case: Case, peer: str) -> str:
    """Why a peer has no such case, where that is known before."""
    if peer == "onednn" and case.dtype == "bfloat16" and case.trains:
        return "written for float32 in training"
    return ""


@pytest.mark.parametrize(("case", "peer"), asked())
def test_peers_compute_our_numbers(case: Case, peer: str) -> None:
    if case.subject == "recurra-module" and not has_module(case):
        # TODO(recurra.torch has LSTM, GRU and RNN): drop this branch.
        with pytest.raises(Unavailable, match=r"recurra\.torch has no (LSTM|GRU|RNN)"):
            offer(case.subject, case, numbers(case), 1)
        case = dataclasses.replace(case, subject=case.peers[0])
    if why := refused(case, peer):
        with pytest.raises(Unavailable, match=why):
            offer(peer, case, numbers(case), 1)
        return
    theirs = contestant(peer, case).results()
    ours = contestant(case.subject, case).results()
    assert contest.disagreements(case, ours, theirs) == []
    if case.differentiates:
        wanted = {"y", "dx", "dW", "dR", "db", "dh0"} | ({"dc0"} if case.op == "lstm" else set())
        assert theirs.keys() & ours.keys() >= wanted


# torch.compile is made of parts that torch itself deprecates, and looks at gradients that it then warns of.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["inf", "fb"])
def test_a_compiled_loop_computes_our_numbers(mode: str) -> None:
    case = KINDS["options", "lstm", mode, False, ("peephole", "mask")]
    ours, theirs = (contestant(peer, case).results() for peer in (case.subject, "torch-compile"))
    assert contest.disagreements(case, ours, theirs) == []


def test_wrong_numbers_are_found() -> None:
    ours = contest.Here("recurra", TINY, numbers(TINY)).results()
    assert contest.disagreements(TINY, ours, ours) == []
    wrong = {**ours, "dW": ours["dW"] * 1.01, "dh0": ours["dh0"][:, :1]}
    found = contest.disagreements(TINY, ours, wrong)
    assert [text.split(":")[0] for text in found] == ["dW", "dh0"]
    assert contest.disagreements(TINY, ours, {}) == ["nothing to compare"]


def test_a_library_that_is_missing_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "nobody", dataclasses.replace(PEERS["torch"], file="with_nobody"))
    with pytest.raises(Unavailable, match="with_nobody is not installed"):
        offer("nobody", TINY, numbers(TINY), 1)
