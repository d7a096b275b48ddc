"""Balance a pole whose speed is hidden: PPO with an LSTM, and the same PPO without memory.

    python examples/torch/recurrent_ppo.py           # both policies, the same small budget
    python examples/torch/recurrent_ppo.py --full    # the LSTM alone, until CartPole is solved

CartPole's observation is cut to the positions of cart and pole. Whoever sees only those cannot tell a pole that rises
from one that falls, so a policy without memory stays poor however long it trains. An LSTM can tell.

Episodes end at any step of a rollout [T, N]. The update runs the whole rollout through the LSTM in one call: `resets`
says at which steps an episode begins, and there no state crosses from the step before.

Needs: pip install '.[examples]'
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
import sys
import time

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from recurra.torch import LSTM

SOLVED = 475.0  # the mean return over 100 episodes that gymnasium asks for of CartPole-v1; 500 is all there is
EPISODES = 100
SEEN = [0, 2]  # of [cart position, cart velocity, pole angle, pole velocity]
SCALE = torch.tensor([1.0, 5.0])  # metres and radians, to about one
STEPS, ENVS = 128, 16  # T and N of a rollout
DISCOUNT, TRACE, CLIP = 0.99, 0.95, 0.2
REWARD = 1 - DISCOUNT  # for each step, so that values lie in [0, 1]

State = tuple[Tensor, Tensor]


class Policy(nn.Module):
    """Logits of the two actions, and the value, from what is seen; with an LSTM in the middle or a plain layer."""

    def __init__(self, *, has_memory: bool, hidden: int = 32) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(len(SEEN), hidden), nn.Tanh())
        self.memory = LSTM(hidden, hidden) if has_memory else None
        self.layer = None if has_memory else nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh())
        self.action, self.value = nn.Linear(hidden, 2), nn.Linear(hidden, 1)

    def forward(self, seen: Tensor, state: State | None, resets: Tensor) -> tuple[Tensor, Tensor, State | None]:
        """From seen [T, N, 2] and resets [T, N]: logits [T, N, 2], values [T, N], and the state after the last step."""
        x = self.encoder(seen * SCALE)  # [T, N, H]
        if self.memory is None:
            y = self.layer(x)
        else:
            y, state = self.memory(x, state, resets=resets)
        return self.action(y), self.value(y).squeeze(-1), state


# --- episodes ---


class HiddenVelocity:
    """N CartPoles side by side that show positions only. After an episode's last step, one more step starts the next.

    That step's action changes nothing (gymnasium's autoreset): it is not `counted`.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.envs = gymnasium.make_vec("CartPole-v1", num_envs=count, vectorization_mode="vector_entry_point")
        observation, _ = self.envs.reset(seed=seed)
        self.seen = self._cut(observation)  # [N, 2]
        self.begins = torch.ones(count, dtype=torch.bool)  # is `seen` an episode's first?
        self.counted = torch.ones(count, dtype=torch.bool)  # does the next action count?

    def _cut(self, observation: np.ndarray) -> Tensor:
        return torch.from_numpy(observation[:, SEEN])

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Act; whether each pole fell, and whether each episode ended, by a fall or by the limit of time."""
        observation, _, fell, late, _ = self.envs.step(actions.numpy())
        over = torch.from_numpy(fell | late)
        self.seen, self.begins, self.counted = self._cut(observation), ~self.counted, ~over
        return torch.from_numpy(fell), over


@dataclass(frozen=True)
class Rollout:
    """T steps of N environments; every tensor is [T, N, ...], but the states [1, N, H] are those before step 0."""

    state: State | None
    seen: Tensor
    resets: Tensor
    actions: Tensor
    log_probabilities: Tensor  # of the actions, as they were taken
    counted: Tensor
    advantages: Tensor
    returns: Tensor


class Actor:
    """Plays a policy and keeps, from one rollout to the next, the environments and the policy's state."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self.policy = policy
        self.world = HiddenVelocity(ENVS, seed)
        self.state: State | None = None
        self.generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def rollout(self) -> Rollout:
        first, rows = self.state, []
        for _ in range(STEPS):
            seen, resets, counted = self.world.seen, self.world.begins, self.world.counted
            logits, values, self.state = self.policy(seen[None], self.state, resets[None])
            log_probabilities = logits[0].log_softmax(-1)  # [N, 2]
            actions = torch.multinomial(log_probabilities.exp(), 1, generator=self.generator)  # [N, 1]
            fell, over = self.world.step(actions[:, 0])
            taken = log_probabilities.gather(-1, actions)[:, 0]
            rows.append((seen, resets, actions[:, 0], taken, counted, values[0], fell, over))
        seen, resets, actions, taken, counted, values, fell, over = map(torch.stack, zip(*rows, strict=True))
        # The state stays as it is: this looks one step ahead, and the next rollout sees that step again.
        after = self.policy(self.world.seen[None], self.state, self.world.begins[None])[1]
        advantages = advantages_of(torch.cat([values, after]), fell, over)
        return Rollout(first, seen, resets, actions, taken, counted, advantages, advantages + values)


def advantages_of(values: Tensor, fell: Tensor, over: Tensor) -> Tensor:
    """Generalized advantages [T, N] from values [T + 1, N].

    An episode that ran out of time goes on in the value of what was seen last; nothing follows a pole that fell.
    """
    surprises = REWARD + DISCOUNT * values[1:] * ~fell - values[:-1]
    advantages, following = torch.empty_like(surprises), torch.zeros_like(surprises[0])
    for t in reversed(range(len(surprises))):
        following = surprises[t] + DISCOUNT * TRACE * following * ~over[t]
        advantages[t] = following
    return advantages


# --- learning ---


def evaluate(policy: Policy, rollout: Rollout, rows: Tensor | slice) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities of the taken actions, entropies and values [T, n] of some environments, with gradients."""
    state = None if rollout.state is None else tuple(s[:, rows] for s in rollout.state)
    logits, values, _ = policy(rollout.seen[:, rows], state, rollout.resets[:, rows])
    log_probabilities = logits.log_softmax(-1)
    taken = log_probabilities.gather(-1, rollout.actions[:, rows, None]).squeeze(-1)
    return taken, -(log_probabilities.exp() * log_probabilities).sum(-1), values


def update(policy: Policy, optimizer: torch.optim.Optimizer, rollout: Rollout, generator: torch.Generator) -> None:
    """PPO: four passes over the rollout, each in four groups of whole environments."""
    counted = rollout.advantages[rollout.counted]
    advantages = (rollout.advantages - counted.mean()) / (counted.std() + 1e-8)
    for _ in range(4):
        for rows in torch.randperm(ENVS, generator=generator).split(ENVS // 4):
            taken, entropies, values = evaluate(policy, rollout, rows)
            ratio = (taken - rollout.log_probabilities[:, rows]).exp()
            gain = advantages[:, rows]
            losses = -torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain)
            losses = losses + F.mse_loss(values, rollout.returns[:, rows], reduction="none") - 0.005 * entropies
            optimizer.zero_grad()
            losses[rollout.counted[:, rows]].mean().backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()


@torch.no_grad()
def measure(policy: Policy, seed: int, episodes: int = EPISODES) -> float:
    """The mean return of the likelier actions over that many episodes."""
    world, state = HiddenVelocity(episodes, seed), None
    goes_on, returns = torch.ones(episodes, dtype=torch.bool), torch.zeros(episodes)
    while goes_on.any():
        logits, _, state = policy(world.seen[None], state, world.begins[None])
        returns += goes_on
        _, over = world.step(logits[0].argmax(-1))
        goes_on &= ~over
    return float(returns.mean())


def train(*, has_memory: bool, updates: int, seed: int, until: float = float("inf")) -> float:
    """Train a policy until a look at its mean return reaches that; its mean return over episodes it never saw."""
    torch.manual_seed(seed)
    policy = Policy(has_memory=has_memory)
    optimizer = torch.optim.Adam(policy.parameters(), 3e-3, eps=1e-5)
    actor, generator, start = Actor(policy, seed), torch.Generator().manual_seed(seed), time.monotonic()
    for k in range(1, updates + 1):
        update(policy, optimizer, actor.rollout(), generator)
        if k % 10 == 0 or k == updates:
            reached, spent = measure(policy, seed + 1), time.monotonic() - start
            print(f"  {k * STEPS * ENVS:7} steps, {spent:3.0f} s: mean return {reached:5.1f}", flush=True)
            if reached >= until:
                break
    return measure(policy, seed + 2)


def main(arguments: list[str] | None = None) -> int:
    """Train and compare."""
    parser = argparse.ArgumentParser(
        description="PPO on a CartPole that hides its velocities.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument("--updates", type=int, default=30, help=f"of {STEPS * ENVS} steps each")
    how_long.add_argument("--full", action="store_true", help=f"train the LSTM, until it reaches {SOLVED:.0f}")
    parser.add_argument("--seed", type=int, default=0, help="of weights, actions and episodes")
    options = parser.parse_args(arguments)
    if options.updates < 1:
        parser.error(f"argument --updates: must be 1 or more, got {options.updates}")
    torch.set_num_threads(1)  # the tensors are tiny: a second thread costs more than it brings
    print("with an LSTM")
    if options.full:
        reached = train(has_memory=True, updates=1000, seed=options.seed, until=SOLVED)
        print(f"{'solved' if reached >= SOLVED else 'not solved'}: {reached:.1f} over {EPISODES} episodes")
        return 0 if reached >= SOLVED else 1
    remembers = train(has_memory=True, updates=options.updates, seed=options.seed)
    print("without memory")
    forgets = train(has_memory=False, updates=options.updates, seed=options.seed)
    print(f"mean return over {EPISODES} episodes: {remembers:.1f} with an LSTM, {forgets:.1f} without memory")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nStopped.")
        sys.exit(130)
