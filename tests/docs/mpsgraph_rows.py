"""The rows of the page that maps MPSGraph to recurra, and what the calls in them mean."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
import functools
import inspect
import re
from typing import Any

from docs import pages
import recurra

PAGE = pages.ROOT / "docs" / "mpsgraph-map.md"
# What the names in front of the dot stand for on the page.
ROOTS = {
    "recurra": recurra,
    "ops": recurra.ops,
    "g": recurra.Graph,
    "exe": recurra.Executable,
    "tensor": recurra.Tensor,
    "operation": recurra.Operation,
}
STATUS = re.compile(r"^(yes|yes: .+|no: .+)$")


@dataclass(frozen=True)
class Row:
    """A row: MPSGraph's name, recurra's call as text, and the status. `key` is the id, or the name."""

    key: str
    swift: str
    call: str
    status: str

    @property
    def is_offered(self) -> bool:
        return self.status.startswith("yes")

    @property
    def labels(self) -> list[str]:
        """Swift's parameter labels as recurra would spell them, without the unnamed one."""
        labels = re.findall(r"(\w+):", self.swift.partition("(")[2])
        return [re.sub("([A-Z])", r"_\1", label).lower() for label in labels if label != "_"]

    @functools.cached_property
    def path(self) -> list[str]:
        """The dotted name that the call names: ["ops", "add"]."""
        node = self._node.func if isinstance(self._node, ast.Call) else self._node
        return ast.unparse(node).split(".")

    @property
    def target(self) -> Any:
        """What the dotted name is: a function, a class, a property, a value."""
        found: Any = ROOTS[self.path[0]]
        for name in self.path[1:]:
            found = getattr(found, name)
        return found

    @property
    def is_call(self) -> bool:
        return isinstance(self._node, ast.Call)

    @property
    def arguments(self) -> list[str]:
        """The parameters that the call on the page fills, by the names of recurra's signature."""
        assert isinstance(self._node, ast.Call)
        return self._names(len(self._node.args), [str(keyword.arg) for keyword in self._node.keywords])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the call, with the row's arguments and no others. A method's object comes first."""
        given = self._names(len(args) - self._is_method, list(kwargs))
        assert set(given) == set(self.arguments), f"{self.key}: the check gives {given}, the row {self.arguments}"
        return self.target(*args, **kwargs)

    def read(self, value: Any) -> Any:
        """The attribute that the row names, of a value of the class that it stands for."""
        assert not isinstance(self._node, ast.Call)
        assert isinstance(value, ROOTS[self.path[0]])
        return getattr(value, self.path[1])

    @property
    def _is_method(self) -> bool:
        return self.path[0] in ("g", "exe")

    def _names(self, count: int, keywords: list[str]) -> list[str]:
        """The names of that many positional arguments and of these keywords. Fails if the signature has no such."""
        bound = inspect.signature(self.target).bind(*[None] * (count + self._is_method), **dict.fromkeys(keywords))
        return list(bound.arguments)[self._is_method :]

    @functools.cached_property
    def _node(self) -> ast.expr:
        return ast.parse(self.call, mode="eval").body


Check = Callable[[Row], None]


def rows() -> list[Row]:
    """Every row of every table of the page."""
    found = []
    for head, table in pages.tables(PAGE.read_text("utf-8")):
        for cells in table:
            assert len(cells) == len(head), f"{cells} has not {len(head)} cells"
            swift = re.findall(r"`([^`]+)`", cells[-3])[0]
            call = cells[-2].strip("`")
            found.append(Row(cells[0] if head[0] == "id" else swift, swift, call, cells[-1]))
    return found
