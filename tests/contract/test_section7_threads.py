"""Every thread of the contract's section 7 is guarded by a test here that names it."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest

# One line per row of the section. The first thread of a row stands for it.
THREADS = {
    "#80306": "time and batch swapped",
    "#83144": "backward took [1, T, H] for [1, N, H]",
    "#90421": "bidirectional wrong for two rows",
    "#91694": "a wrong shape killed the process",
    "#92615": "a language model trained badly",
    "PR #95137": "states of layers off by one",
    "PR #94889": "no bias, no gradients",
    "PR #95563": "bias and dropout were not in the cache's key",
    "#96416": "a loss of the last states alone",
    "#95118": "packed sequences",
    "#94691": "GRU gave NaN",
    "#123148": "GRU slower on a GPU than on a CPU",
    "PR #192727": "torch's GRU weights; no saved state in inference",
    "#145374": "memory grew with calls",
    "#164299": "memory grew with shapes",
    "#125803": "weight gradients of deep stacks",
    "PR #90909": "several layers in one graph",
    "#180744": "evaluation depended on the batch",
    "PR #185351": "the same dropout mask in every call",
    "#190056": "backward ignored dropout",
    "#190057": "dropout of everything gave NaN",
    "RnnOps.mm, check": "projections",
    "RnnOps.mm, comment": "bias gradient of shape [1, 1, 8H]",
    "mlx #3249": "the recurrent bias at step 0",
    "apple/tensorflow_macos #170": "other activations and recurrent dropout",
    "MPSGraphDSL": "GRU cannot be trained",
    "webnn-baseline #96": "reverse and both directions",
    "#177116": "gradients after another shape",
    "#177834": "more rows than a launch grid",
    "tensorflow #60192": "masked results corrupt now and then",
}


@pytest.mark.parametrize("thread", THREADS)
def test_a_thread_has_a_test(thread: str) -> None:
    docstrings = [
        ast.get_docstring(node) or ""
        for path in pathlib.Path(__file__).parent.glob("test_section7_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert any(re.search(re.escape(thread) + r"(?!\d)", words) for words in docstrings)
