"""The map from MPSGraph to recurra is true: for every row, a check makes the call that the row names."""

from __future__ import annotations

from collections import Counter

import pytest

from docs import checks_graph, checks_ops, checks_recurrent
from docs.mpsgraph_rows import STATUS, Row, rows

ROWS = rows()
CHECKS = {**checks_recurrent.CHECKS, **checks_graph.CHECKS, **checks_ops.CHECKS}
OVERLOADS = {
    **{f"R{i}": "singleGateRNN" for i in (1, 2, 3)},
    **{f"RG{i}": "singleGateRNNGradients" for i in (1, 2, 3, 4)},
    **{f"L{i}": "LSTM" for i in (1, 2, 3)},
    **{f"LG{i}": "LSTMGradients" for i in (1, 2, 3, 4)},
    **{f"G{i}": "GRU" for i in (1, 2, 3)},
    **{f"GG{i}": "GRUGradients" for i in (1, 2, 3)},
}


def test_every_row_has_a_check_and_every_check_a_row() -> None:
    keys = {row.key for row in ROWS}
    assert not keys - CHECKS.keys(), "rows without a check"
    assert not CHECKS.keys() - keys, "checks without a row"
    assert len(CHECKS) == len(checks_recurrent.CHECKS) + len(checks_graph.CHECKS) + len(checks_ops.CHECKS)


def test_no_row_stands_twice() -> None:
    assert [key for key, count in Counter(row.key for row in ROWS).items() if count > 1] == []


def test_all_overloads_of_the_recurrent_operations_are_there() -> None:
    found = {row.key: row.swift.partition("(")[0] for row in ROWS if row.key in OVERLOADS}
    assert found == OVERLOADS
    assert len({row.swift for row in ROWS if row.key in OVERLOADS}) == 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_a_row_says_yes_or_why_not(row: Row) -> None:
    assert STATUS.match(row.status), f"{row.status!r}"
    assert bool(row.call) == row.is_offered, "a call stands where the status is yes, and nowhere else"


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_offered], ids=lambda row: row.key)
def test_what_a_row_names_is_there_and_takes_these_arguments(row: Row) -> None:
    assert row.target is not None
    if row.is_call:
        assert row.arguments is not None


def test_a_wrong_call_in_a_row_is_found() -> None:
    with pytest.raises(AttributeError, match="reduce_total"):
        _ = Row("", "", "ops.reduce_total(x)", "yes").target
    with pytest.raises(TypeError, match="keep"):
        _ = Row("", "", "ops.reduce_sum(x, keep=True)", "yes").arguments
    with pytest.raises(AssertionError, match=r"the check gives \['x'\], the row \['x', 'axes'\]"):
        Row("", "", "ops.reduce_sum(x, axes)", "yes")([1.0])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_a_row_is_true(row: Row) -> None:
    """The check makes the call through the row, so it is the call of the page that is checked."""
    CHECKS[row.key](row)
