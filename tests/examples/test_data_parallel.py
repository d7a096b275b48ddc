"""Data-parallel training of the examples: torchrun with two processes prints the losses of one."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import torch

from examples import programs

program = programs.load("torch/data_parallel")
STEPS = 20
pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs a torch that was built with torch.distributed"
)


def torchrun(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What `torchrun --nproc-per-node 2` runs, on this machine's own address only."""
    loopback = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if loopback:
        environment["GLOO_SOCKET_IFNAME"] = loopback
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    command = [*launcher, "--nproc-per-node", "2", *programs.command("torch/data_parallel", *arguments)[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180, env=environment)


def losses(text: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^step +\d+  loss (\d+\.\d{8})$", text, re.MULTILINE)]


def test_two_processes_have_the_losses_of_one() -> None:
    done = torchrun("--steps", STEPS)
    assert done.returncode == 0, done.stderr
    alone = programs.run("torch/data_parallel", "--steps", STEPS)
    assert alone.startswith("1 process, 32 rows in each\n")
    assert done.stdout.startswith("2 processes, 16 rows in each\n"), "the first process prints, and it alone"
    assert len(losses(alone)) == len(losses(done.stdout)) == STEPS
    assert losses(done.stdout) == pytest.approx(losses(alone), rel=0, abs=1e-5)


def test_training_lowers_the_loss_and_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    def run(seed: int) -> list[float]:
        assert program.main(["--seed", str(seed)]) == 0
        return losses(capsys.readouterr().out)

    first = run(0)
    assert sum(first[-20:]) < 0.5 * sum(first[:20])
    assert run(0) == first
    assert run(1) != first


def test_sums_are_those_of_the_marked_numbers_within_the_lengths() -> None:
    x, lengths, sums = program.draw(6, torch.Generator().manual_seed(0))
    for n in range(6):
        wanted = sum(float(x[t, n, 0]) for t in range(int(lengths[n])) if x[t, n, 1])
        assert float(sums[n]) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "processes", "says"),
    [
        (["--steps", "0"], "1", "argument --steps: must be 1 or more, got 0"),
        (["--rows", "0"], "1", "argument --rows: must be a multiple of the number of processes, 1, got 0"),
        (["--rows", "7"], "2", "argument --rows: must be a multiple of the number of processes, 2, got 7"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str],
    processes: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WORLD_SIZE", processes)
    with pytest.raises(SystemExit):
        program.main(arguments)
    assert says in capsys.readouterr().err
