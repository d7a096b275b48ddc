"""Against another commit: what is built is what is timed."""

from __future__ import annotations

import os
from pathlib import Path
import shutil
import subprocess

import base
from cases import TINY
import contest
from inputs import numbers
import pytest
import run as program

from benchmarks.suite import FOLDER, run
import recurra

needs_git = pytest.mark.skipif(
    subprocess.run(["git", "-C", FOLDER, "rev-parse", "HEAD"], capture_output=True, check=False).returncode != 0,
    reason="run the tests in a clone: an archive of the sources has no commits",
)


def test_a_revision_that_nobody_knows_is_named() -> None:
    done = run("--tiny", "--base", "no-such-revision")
    assert done.returncode == 1
    assert done.stdout == "--base must name a commit of this repository, got no-such-revision\n"


def test_a_command_that_fails_says_what_it_said() -> None:
    with pytest.raises(base.Unbuildable, match="no-such-file"):
        base._run(["cat", "no-such-file"])


def test_the_other_commit_is_the_only_peer() -> None:
    (case,) = base.against([TINY])
    assert case.peers == ("base",)
    assert (case.name, case.subject) == (TINY.name, TINY.subject)


@pytest.fixture
def installs_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of compiling a commit for a minute: its place gets the package that the tests run with."""
    run_command = base._run

    def copying(command: list[str | os.PathLike[str]]) -> None:
        if "install" not in command:
            run_command(command)
            return
        packages, tree = Path(command[command.index("--target") + 1]), Path(command[-1])
        assert (tree / "pyproject.toml").is_file()
        shutil.copytree(Path(recurra.__file__).parent, packages / "recurra")
        if not list((packages / "recurra").glob("_native*")):
            shutil.copy(recurra._native.__file__, packages / "recurra")

    monkeypatch.setattr(base, "_run", copying)


@needs_git
@pytest.mark.usefixtures("installs_a_copy")
def test_the_base_is_another_recurra_with_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with base.built("HEAD") as other:
        folder = other.python.parents[2]
        assert len(other.commit) == 40
        mine, theirs = (other.enter(peer, TINY, numbers(TINY)) for peer in ("recurra", "base"))
        try:
            assert Path(mine.recurra_file) == Path(recurra.__file__)
            assert Path(theirs.recurra_file).is_relative_to(folder)
            assert contest.disagreements(TINY, mine.results(), theirs.results()) == []
        finally:
            mine.close()
            theirs.close()
    assert not folder.exists()


@needs_git
@pytest.mark.usefixtures("installs_a_copy")
def test_a_base_that_does_not_load_gives_no_times() -> None:
    with base.built("HEAD") as other:
        shutil.rmtree(next(other.python.parents[1].rglob("recurra/_native*")).parent)
        with pytest.raises(contest.Unavailable, match=r"ended with status 1|imported"):
            other.enter("base", TINY, numbers(TINY)).close()


@needs_git
@pytest.mark.usefixtures("installs_a_copy")
def test_a_comparison_prints_ratio_and_quartiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    options = ["--tiny", "--ungated", "--base", "HEAD", "--seconds", "0.1", "--json", str(path)]
    monkeypatch.setattr("sys.argv", ["run.py", *options])
    assert program.main() == 0
    printed = capsys.readouterr().out
    assert printed.startswith("base: ")
    line = next(text for text in printed.splitlines() if text.startswith(TINY.name))
    assert line.endswith("]")
    assert path.is_file()
