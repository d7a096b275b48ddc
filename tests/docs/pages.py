"""Pages of the documentation as data: their fenced blocks, their tables, and what their Python says when it runs."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
from dataclasses import dataclass
import functools
import os
from pathlib import Path
import re
import sys
import tempfile
from typing import Any
import warnings

ROOT = Path(__file__).parents[2]
PAGES = tuple(sorted(path for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] if path.exists()))

_FENCE = re.compile(r"^( *)```(\w*)")
# `print(...)  # what it prints`: the comment is compared with the output.
_COMMENTED = re.compile(r"^\s*print\(.*\)  # (.+)$")


@dataclass(frozen=True)
class Block:
    """A fenced block. `first` is the number of its first line of content, counted from 1."""

    language: str
    first: int
    lines: tuple[str, ...]

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def name_of(page: Path) -> str:
    """The page as a reader of the repository would write it."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order, without their indentation."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        indent, first = len(opening[1]), number + 1
        while lines[number].strip() != "```":
            number += 1
        yield Block(opening[2], first, tuple(line[indent:] for line in lines[first - 1 : number]))
        number += 1


@functools.cache
def run(page: Path) -> dict[str, Any]:
    """Run all `python` blocks of a page in one namespace, warnings as errors, and compare what they print.

    What is printed stands beside the call as a comment (`# result`, or `# result: a remark`), or in a `text` block
    right behind the `python` block. The blocks run in a folder of their own, which they may write into.
    """
    return run_text(page.read_text(encoding="utf-8"), str(page))


def run_text(text: str, name: str) -> dict[str, Any]:
    """The same for the text of a page."""
    found = list(blocks(text))
    source = [""] * len(text.splitlines())
    for block in found:
        if block.language == "python":
            source[block.first - 1 : block.last] = block.lines
    printed: dict[int, list[str]] = {}

    def record(*values: Any, sep: str = " ") -> None:
        line = sys._getframe(1).f_lineno
        printed.setdefault(line, []).append(sep.join(map(str, values)))

    namespace: dict[str, Any] = {"__name__": "page", "print": record}
    with warnings.catch_warnings(), _own_folder():
        warnings.simplefilter("error")
        # Blank lines stand for the prose, so a traceback names the line of the page.
        exec(compile("\n".join(source), name, "exec"), namespace)
    _compare(name, source, found, printed)
    return namespace


@contextlib.contextmanager
def _own_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _compare(name: str, source: list[str], found: list[Block], printed: dict[int, list[str]]) -> None:
    for number, line in enumerate(source, 1):
        comment = _COMMENTED.match(line)
        if comment is not None:
            got = printed.pop(number, [])
            is_said = len(got) == 1 and f"{comment[1]}: ".startswith(f"{got[0]}: ")
            assert is_said, f"{name}:{number} says {comment[1]!r}, and prints {got}"
    for block, following in zip(found, [*found[1:], Block("", 0, ())], strict=True):
        if block.language == "python" and following.language == "text" and following.first - block.last <= 4:
            lines = [line for number in range(block.first, block.last + 1) for line in printed.pop(number, [])]
            got = [line.rstrip() for text in lines for line in text.splitlines()]
            assert got == list(following.lines), f"{name}:{following.first} should read\n" + "\n".join(got)


def tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Head and rows of every table of a page; cells without the blanks around them."""
    head: list[str] | None = None
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if not line.startswith("|"):
            if head is not None:
                yield head, rows
            head, rows = None, []
            continue
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if head is None:
            head = cells
        elif not all(set(cell) <= set("-: ") for cell in cells):
            rows.append(cells)
