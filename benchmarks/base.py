"""Another commit of this repository, built beside this tree: both in processes of their own, taking turns."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
from dataclasses import dataclass, replace
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import venv

from cases import Case
from contest import Elsewhere
from inputs import Numbers
from machine import ROOT, git
from rivals import Unavailable

NAME = "base"


class Unbuildable(Exception):
    """There is no such commit, or it does not build; the message has what was said."""


@dataclass(frozen=True)
class Base:
    """A commit whose recurra is what `python` imports."""

    commit: str
    python: pathlib.Path

    def enter(self, peer: str, case: Case, given: Numbers) -> Elsewhere:
        """A contestant: this tree, or the other commit. Both are timed alike, in a process of their own."""
        contestant = Elsewhere(case.subject, case, self.python if peer == NAME else sys.executable)
        is_base = pathlib.Path(contestant.recurra_file).is_relative_to(self.python.parents[1])
        if is_base != (peer == NAME):
            contestant.close()
            raise Unavailable(f"the process imported {contestant.recurra_file}")
        return contestant


def against(cases: list[Case]) -> list[Case]:
    """The cases with the other commit as the only peer."""
    return [replace(case, peers=(NAME,)) for case in cases]


def _run(command: list[str | os.PathLike[str]]) -> None:
    # CMake and ninja may be programs of the environment that nobody activated.
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if done.returncode:
        raise Unbuildable(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


@contextlib.contextmanager
def built(revision: str) -> Iterator[Base]:
    """Build a commit into an environment that goes away, and that borrows the packages of the one that runs."""
    commit = git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not commit:
        raise Unbuildable(f"--base must name a commit of this repository, got {revision}")
    with tempfile.TemporaryDirectory(prefix="recurra-base-") as name:
        folder = pathlib.Path(name)
        packed, tree, home = folder / "tree.tar", folder / "tree", folder / "venv"
        _run(["git", "-C", ROOT, "archive", "--output", packed, commit])
        tree.mkdir()
        _run(["tar", "-xf", packed, "-C", tree])
        venv.create(home, symlinks=True)
        packages = pathlib.Path(sysconfig.get_path("purelib", "posix_prefix", {"base": str(home)}))
        # A folder that a .pth file names has no .pth files of its own: this tree's editable install stays out.
        lent = [p for p in sys.path if pathlib.Path(p).name in ("site-packages", "dist-packages")]
        (packages / "lent.pth").write_text("".join(f"{p}\n" for p in lent))
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "install", "--no-deps", "--no-build-isolation", "--target", packages, tree])
        yield Base(commit, home / "bin" / "python")
