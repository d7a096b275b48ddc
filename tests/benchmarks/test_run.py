"""The command line, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path
import re
import signal
import subprocess
import time

from cases import CASES, TINY
import gate
import psutil
import pytest
import rivals

from benchmarks.suite import FOLDER, command, run


def test_the_tiny_case_runs_with_every_peer(tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    done = run("--tiny", "--ungated", "--seconds", 0.1, "--json", path, "--bars")
    assert done.returncode == 0, done.stderr
    assert "ungated: no test ran before these numbers, so they do not count" in done.stdout
    written = json.loads(path.read_text())
    assert written["gate"] == "skipped"
    assert len(written["commit"]) >= 7
    assert {"processor", "cores", "isa"} <= written["machine"].keys()
    assert {"python", "numpy", "torch", "recurra"} <= written["versions"].keys()
    assert written["ceiling"]["all"]["fma"] > 1e8
    (case,) = written["cases"]
    assert case["name"] == TINY.name
    assert case["unavailable"].keys() <= {"onednn"}  # the only peer that the tests do not install
    assert case["rivals"].keys() == {"recurra", *TINY.peers} - case["unavailable"].keys()
    assert set(case["disagreements"]) == set(case["rivals"]) - {"recurra"}
    assert not any(case["disagreements"].values())
    for rival in case["rivals"].values():
        assert 0 < rival["least"] <= rival["quarter"] <= rival["median"] <= rival["three_quarters"]
        assert rival["samples"] >= len(rival["by_turn"]) >= 5
    assert case["floor"] > 0
    assert TINY.name in done.stdout
    assert f"written to {path}" in done.stdout
    assert not list(tmp_path.glob("*.part"))


def test_list_names_cases_and_peers() -> None:
    lines = run("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(CASES)
    lines = run("--list", "--op", "gru", "--mode", "inf", "--case", "grid/*/1000x8*").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["grid/gru/inf/1000x8x64x64", *CASES["grid/gru/inf/1000x8x64x64"].peers]
    ]


def test_quick_is_a_part_of_the_grid() -> None:
    lines = run("--list", "--quick").stdout.splitlines()
    assert len(lines) == 48
    assert {line.split()[1] for line in lines} == {"torch"}


def test_peers_can_be_chosen() -> None:
    lines = run("--list", "--peer", "jax,torch", "--group", "grid", "--mode", "fb").stdout.splitlines()
    assert {tuple(line.split()[1:]) for line in lines} == {("torch", "jax")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peer", "torch,keras"], f"--peer must be of {', '.join(rivals.PEERS)}; got keras"),
        (["--case", "nothing"], "no case has all of these; --list shows what there is"),
        (["--op", "conv"], "argument --op: invalid choice: 'conv'"),
        (["--seconds", "0"], "--seconds must be more than 0, got 0.0"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_red_gate_gives_no_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import run as program

    monkeypatch.setattr(gate, "ALWAYS", "no_test_has_such_a_name")
    monkeypatch.setattr(gate, "ABOUT", "no_test_has_such_a_name")
    path = tmp_path / "results.json"
    monkeypatch.setattr("sys.argv", ["run.py", "--tiny", "--json", str(path)])
    assert program.main() == 1
    printed = capsys.readouterr().out
    assert printed.endswith("The gate is red: no numbers.\n")
    assert "deselected" in printed
    assert not path.exists()


def test_a_green_gate_says_what_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "ABOUT", "number_of_threads")
    found = gate.check(["rnn", "rnn"])
    passed = re.match(r"(\d+) passed", found["passed"])
    assert passed is not None
    assert int(passed[1]) >= 4  # three sizes of the op that was asked for, and the repetitions
    assert found["seconds"] > 0


@pytest.mark.parametrize("words", [gate.ABOUT.split(" or ")[0], gate.ABOUT.split(" or ")[1], gate.ALWAYS])
def test_the_gate_names_tests_that_exist(words: str) -> None:
    texts = [p.read_text() for p in (FOLDER.parent / "tests" / "native").glob("test_*.py")]
    assert any(words in text for text in texts)


def test_stopping_leaves_what_was_measured_and_no_process(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    arguments = ["--group", "grid", "--op", "rnn", "--case", "1x1x128x128", "--peer", "torch,jax", "--json", path]
    with subprocess.Popen(
        command(*arguments, "--ungated", "--seconds", 1), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        end = time.monotonic() + 120
        while not path.exists() and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.02)
        # The second case has begun, or soon will; its JAX is a process.
        while not (children := psutil.Process(process.pid).children()):
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    whole = json.loads(path.read_text())["cases"]
    assert f"stopped: {len(whole)} of 4 cases are whole, and these count" in out
    assert 1 <= len(whole) < 4
    assert all(case["rivals"].keys() == {"recurra", "torch", "jax"} for case in whole)
    # They notice that their pipe is closed, and end.
    assert psutil.wait_procs(children, timeout=30)[1] == []


def test_make_bench_installs_what_the_benchmarks_import() -> None:
    makefile = (FOLDER.parent / "Makefile").read_text()
    assert "bench: $(VENV)/.with-test\n\t$(BIN)/python benchmarks/run.py $(BENCH_ARGS)" in makefile
