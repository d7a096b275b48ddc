"""A mistake, what must be said about it, and which `raise` statements of the sources said it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
import pathlib
import re
import traceback
from typing import Any

import pytest

import recurra

PACKAGE = pathlib.Path(recurra.__file__).parent
# What a person who does not know recurra's errors would catch.
BUILTIN: dict[type[recurra.RecurraError], type[Exception]] = {
    recurra.ShapeError: ValueError,
    recurra.DTypeError: TypeError,
    recurra.DeviceError: ValueError,
    recurra.ArgumentError: ValueError,
    recurra.ArgumentTypeError: TypeError,
    recurra.GraphError: ValueError,
    recurra.GradientError: ValueError,
    recurra.FileFormatError: ValueError,
    recurra.UnsupportedError: NotImplementedError,
}
# Stands in a message for what is not ours to say: a path, another library's words, a printed array.
ANY = "<any>"
Site = tuple[str, int]  # a file of the package, and the first line of a raise statement


@dataclass(frozen=True)
class Mistake:
    """`make` raises exactly `error` with exactly `text`."""

    name: str
    make: Callable[[], Any]
    error: type[recurra.RecurraError]
    text: str

    def id(self) -> str:
        """The name, for pytest."""
        return self.name.replace(" ", "-")


def check(mistake: Mistake) -> None:
    """The error is of the right type, is the builtin that people expect, and reads as it should, in four parts."""
    error = error_of(mistake)
    assert type(error) is mistake.error
    assert isinstance(error, BUILTIN[mistake.error])
    pattern = re.escape(mistake.text).replace(re.escape(ANY), ".*")
    assert re.fullmatch(pattern, str(error), re.DOTALL), f"said {str(error)!r}, not {mistake.text!r}"
    # op, argument and rule, what came
    assert re.match(r"[\w.]+: .+\bgot\b.+", mistake.text, re.DOTALL), mistake.text


def error_of(mistake: Mistake) -> recurra.RecurraError:
    """What recurra raises."""
    with pytest.raises(recurra.RecurraError) as caught:
        mistake.make()
    return caught.value


def unsaid(files: Sequence[str], mistakes: Sequence[Mistake]) -> list[str]:
    """The raise statements of these files of the package that none of the mistakes reaches, as `file:line`."""
    statements = {(file, line): last for file in files for line, last in _raises(file)}
    said = {site for mistake in mistakes for site in _sites(error_of(mistake), statements)}
    return sorted(f"{file}:{line}" for file, line in statements.keys() - said)


def _raises(file: str) -> Iterator[tuple[int, int]]:
    """First and last line of every raise statement that makes an error of its own."""
    for node in ast.walk(ast.parse((PACKAGE / file).read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None and not _is_assertion(node.exc):
            yield node.lineno, node.end_lineno or node.lineno


def _is_assertion(raised: ast.expr) -> bool:
    """An AssertionError says that recurra itself is wrong; nobody can trigger one."""
    return isinstance(raised, ast.Call) and getattr(raised.func, "id", "") == "AssertionError"


def _sites(error: BaseException | None, statements: dict[Site, int]) -> Iterator[Site]:
    """The statements that raised an error and the errors that it came from."""
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__):
            path = pathlib.Path(frame.filename)
            if path.is_relative_to(PACKAGE) and frame.lineno is not None:
                file = path.relative_to(PACKAGE).as_posix()
                yield from (s for s, last in statements.items() if s[0] == file and s[1] <= frame.lineno <= last)
        error = error.__cause__ or error.__context__
