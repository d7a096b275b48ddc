"""Tables of the pages that say what the package holds: they hold the same."""

from __future__ import annotations

import dataclasses
import re
from types import FunctionType
from typing import Any

import pytest

from docs import pages
import recurra

DOCS = pages.ROOT / "docs"


def _table(page: str, first: str) -> list[list[str]]:
    """The rows of the page's table whose first head is this, without backticks."""
    found = [rows for head, rows in pages.tables((DOCS / page).read_text("utf-8")) if head[0].strip("`") == first]
    assert len(found) == 1, f"{page} has {len(found)} tables of {first}"
    return [[cell.replace("`", "") for cell in row] for row in found[0]]


def test_operations_on_the_graph_page_are_those_of_the_package() -> None:
    listed = [name for _, names in _table("graph.md", "topic") for name in names.split(", ")]
    functions = {name for name, value in vars(recurra.ops).items() if isinstance(value, FunctionType)}
    assert sorted(listed) == sorted(functions - vars(recurra).keys())


def test_exceptions_on_the_errors_page_are_those_of_the_package() -> None:
    listed = {name: builtin for name, builtin, _ in _table("errors.md", "exception")}
    own = {n: v for n, v in vars(recurra).items() if isinstance(v, type) and issubclass(v, Exception)}
    assert listed.keys() == own.keys()
    for name, kind in own.items():
        assert [base.__name__ for base in kind.__bases__ if base is not recurra.RecurraError] == [listed[name]]


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("lstm", recurra.LSTMDescriptor),
        ("gru", recurra.GRUDescriptor),
        ("single_gate_rnn", recurra.SingleGateRNNDescriptor),
    ],
)
def test_options_of_a_page_are_the_descriptors(page: str, kind: Any) -> None:
    rows = _table(f"ops/{page}.md", kind.__name__)
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    assert {name: default.strip('"') for name, _, default, _ in rows} == {k: str(v) for k, v in fields.items()}
    for name, apple, _, _ in rows:
        assert apple == "none" or re.sub("([A-Z])", r"_\1", apple).lower() == name


@pytest.mark.parametrize("op", ["lstm", "gru", "single_gate_rnn"])
def test_gradients_of_a_page_stand_in_the_order_of_the_operation(op: str) -> None:
    heads = [head for head, rows in pages.tables((DOCS / "ops" / f"{op}.md").read_text("utf-8")) if not rows]
    kind = {
        "lstm": recurra.LSTMGradients,
        "gru": recurra.GRUGradients,
        "single_gate_rnn": recurra.SingleGateRNNGradients,
    }
    assert heads == [list(kind[op].__annotations__)]


def test_activations_of_the_page_are_those_of_the_package() -> None:
    rows = _table("ops/activations.md", "name")
    assert [row[0] for row in rows] == [str(member) for member in recurra.Activation]
    raw = [int(row[1].split(", ")[1]) for row in rows if row[1]]
    assert raw == [0, 1, 2, 3, 4]
    for name, _, _, _, parameters in rows:
        numbers = [float(n) for n in re.findall(r"[\d.]+", parameters)]
        assert recurra.LSTMDescriptor(activation=(name, *numbers)).activation is recurra.Activation(name)
