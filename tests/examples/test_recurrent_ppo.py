"""Recurrent PPO of the examples: memory solves what no memory can, and an update sees what the rollout saw."""

from __future__ import annotations

from dataclasses import replace
import re

import gymnasium
import pytest
import torch

from examples import programs

program = programs.load("torch/recurrent_ppo")
T, N = program.STEPS, program.ENVS
ALL = slice(None)


def second_rollout(has_memory: bool = True) -> tuple[torch.nn.Module, program.Rollout]:
    """A policy and a rollout that starts in the middle of episodes."""
    torch.manual_seed(0)
    policy = program.Policy(has_memory=has_memory)
    actor = program.Actor(policy, seed=0)
    actor.rollout()
    return policy, actor.rollout()


# --- what a person sees ---


def test_memory_balances_the_pole_and_no_memory_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([]) == 0
    found = re.search(
        r"^mean return over 100 episodes: ([\d.]+) with an LSTM, ([\d.]+) without memory$",
        capsys.readouterr().out,
        re.MULTILINE,
    )
    assert found is not None
    remembers, forgets = map(float, found.groups())
    assert remembers > 195
    assert 10 < forgets < 80


def test_full_training_solves_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert gymnasium.spec("CartPole-v1").reward_threshold == program.SOLVED
    assert program.main(["--full"]) == 0
    found = re.search(r"^solved: ([\d.]+) over 100 episodes$", capsys.readouterr().out, re.MULTILINE)
    assert found is not None
    assert float(found[1]) >= program.SOLVED


def test_same_seed_repeats_and_another_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    def run(seed: int) -> tuple[float, str]:
        reached = program.train(has_memory=True, updates=2, seed=seed)
        return reached, re.sub(r" +\d+ s:", "", capsys.readouterr().out)

    assert run(3) == run(3)
    assert run(3) != run(4)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--updates", "0"], "argument --updates: must be 1 or more, got 0"),
        (["--full", "--updates", "3"], "argument --updates: not allowed with argument --full"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main(arguments)
    assert says in capsys.readouterr().err


# --- what makes it right ---


def test_update_sees_what_the_rollout_saw() -> None:
    policy, rollout = second_rollout()
    assert rollout.resets[1:].any(0).all(), "an episode begins inside every row"
    taken, entropies, values = program.evaluate(policy, rollout, ALL)
    torch.testing.assert_close(taken, rollout.log_probabilities, rtol=0, atol=1e-5)
    torch.testing.assert_close(values, rollout.returns - rollout.advantages, rtol=0, atol=1e-5)
    assert taken.shape == entropies.shape == (T, N)

    rows = torch.tensor([3, 0])
    some = program.evaluate(policy, rollout, rows)
    torch.testing.assert_close(some[0], taken[:, rows], rtol=0, atol=1e-5)

    # Both matter: where episodes begin, and the state before the first step.
    for changed in (replace(rollout, resets=torch.zeros(T, N, dtype=torch.bool)), replace(rollout, state=None)):
        assert (program.evaluate(policy, changed, ALL)[0] - taken).abs().max() > 1e-4


def test_nothing_crosses_the_beginning_of_an_episode() -> None:
    policy, rollout = second_rollout()
    row = 2
    begin = int(rollout.resets[1:, row].nonzero()[0]) + 1
    seen = rollout.seen.clone()
    seen[:begin, row] += 1
    before, after = (program.evaluate(policy, r, ALL)[2] for r in (rollout, replace(rollout, seen=seen)))
    assert torch.equal(before[begin:, row], after[begin:, row])
    assert not torch.equal(before[:begin, row], after[:begin, row])


def test_episodes_begin_behind_a_step_that_does_not_count() -> None:
    _, rollout = second_rollout()
    assert torch.equal(rollout.resets[1:], ~rollout.counted[:-1])
    assert rollout.seen.shape == (T, N, 2)
    assert rollout.seen[rollout.resets].abs().max() <= 0.05  # where CartPole begins
    assert rollout.counted.float().mean() > 0.8


def test_policy_without_memory_has_no_state() -> None:
    policy, rollout = second_rollout(has_memory=False)
    assert rollout.state is None
    changed = replace(rollout, resets=~rollout.resets)
    assert torch.equal(*(program.evaluate(policy, r, ALL)[0] for r in (rollout, changed)))


def test_advantages_are_discounted_surprises_of_one_episode() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(8, 2, generator=generator, dtype=torch.float64)
    fell, late = torch.zeros(7, 2, dtype=torch.bool), torch.zeros(7, 2, dtype=torch.bool)
    fell[2, 0] = late[4, 1] = True
    found = program.advantages_of(values, fell, fell | late)
    for n in range(2):
        for t in range(7):
            total, weight = 0.0, 1.0
            for k in range(t, 7):
                following = 0.0 if fell[k, n] else float(values[k + 1, n])
                total += weight * (program.REWARD + program.DISCOUNT * following - float(values[k, n]))
                weight *= program.DISCOUNT * program.TRACE
                if fell[k, n] or late[k, n]:
                    break
            assert float(found[t, n]) == pytest.approx(total, abs=1e-12)
