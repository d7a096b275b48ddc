"""Every example of the documentation runs and prints what it says: pages, README and docstrings."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path
import pkgutil
import re
from types import ModuleType

import pytest

from docs import pages
import recurra

WITH_CODE = [p for p in pages.PAGES if any(b.language == "python" for b in pages.blocks(p.read_text("utf-8")))]


@pytest.mark.parametrize("page", WITH_CODE, ids=pages.name_of)
def test_examples_of_a_page_run_and_print_what_it_says(page: Path) -> None:
    pages.run(page)


def test_examples_are_found() -> None:
    names = {pages.name_of(page) for page in WITH_CODE}
    assert {
        "docs/index.md",
        "docs/graph.md",
        "docs/errors.md",
        "docs/coming-from-torch.md",
        "docs/porting-from-swift.md",
        "docs/streaming.md",
        "docs/ops/lstm.md",
    } <= names


def test_a_wrong_comment_is_found() -> None:
    with pytest.raises(AssertionError, match=r"page:4 says '3', and prints \['2'\]"):
        pages.run_text("words\n\n```python\nprint(1 + 1)  # 3\n```\n", "page")


def test_a_wrong_output_block_is_found() -> None:
    text = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    with pytest.raises(AssertionError, match="should read\n2"):
        pages.run_text(text, "page")
    pages.run_text(text.replace("\n3\n", "\n2\n"), "page")


def test_a_comment_may_go_on_behind_the_result() -> None:
    pages.run_text("```python\nprint(1 + 1)  # 2: as always\n```\n", "page")
    with pytest.raises(AssertionError, match="says '22: as always'"):
        pages.run_text("```python\nprint(1 + 1)  # 22: as always\n```\n", "page")


def test_examples_write_into_a_folder_of_their_own() -> None:
    here = Path.cwd()
    ran = pages.run_text("```python\nfrom pathlib import Path\n\nfolder = Path.cwd()\n```\n", "page")
    assert Path.cwd() == here != ran["folder"]
    assert not ran["folder"].exists()


def test_a_warning_in_an_example_is_an_error() -> None:
    with pytest.raises(UserWarning, match="careful"):
        pages.run_text('```python\nimport warnings\nwarnings.warn("careful")\n```\n', "page")


# ---- signatures ---------------------------------------------------------------------------------------------------

_SIGNATURE = re.compile(r"^recurra\.(\w+)\((.*)\)$", re.DOTALL)


def _signatures() -> list[tuple[str, str, str]]:
    return [
        (pages.name_of(page), found[1], found[2])
        for page in pages.PAGES
        for block in pages.blocks(page.read_text("utf-8"))
        if block.language == "text" and (found := _SIGNATURE.match(block.text)) is not None
    ]


@pytest.mark.parametrize(("page", "name", "written"), _signatures(), ids=lambda value: str(value).split(",")[0])
def test_signatures_on_pages_are_those_of_the_code(page: str, name: str, written: str) -> None:
    parameters = inspect.signature(getattr(recurra, name)).parameters.values()
    actual = [str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters]
    if any(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters):
        first = next(i for i, p in enumerate(parameters) if p.kind is inspect.Parameter.KEYWORD_ONLY)
        actual.insert(first, "*")
    assert [part.strip() for part in written.strip().rstrip(",").split(",")] == actual


def test_every_op_page_has_its_signatures() -> None:
    found = {(page, name) for page, name, _ in _signatures()}
    for op in ("lstm", "gru", "single_gate_rnn"):
        assert {(f"docs/ops/{op}.md", op), (f"docs/ops/{op}.md", f"{op}_gradients")} <= found


# ---- docstrings ---------------------------------------------------------------------------------------------------


def _modules() -> list[ModuleType]:
    names = [m.name for m in pkgutil.walk_packages(recurra.__path__, "recurra.")]
    return [recurra, *(importlib.import_module(name) for name in names)]


def _doctests() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for module in _modules() for test in finder.find(module) if test.examples]


@pytest.mark.parametrize("example", _doctests(), ids=lambda test: test.name)
def test_docstring_examples_are_true(example: doctest.DocTest) -> None:
    said: list[str] = []
    doctest.DocTestRunner().run(example, out=said.append)
    assert not said, "".join(said)


def test_docstring_examples_are_found() -> None:
    assert {"recurra._graph.Graph", "recurra._stream.Stream", "recurra.ops.lstm.build.lstm"} <= {
        test.name for test in _doctests()
    }
