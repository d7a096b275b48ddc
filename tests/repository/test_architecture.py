"""The rules of the house that a machine can keep: who imports whom, what is public, how long files get."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

import pytest

import recurra

PACKAGE = pathlib.Path(recurra.__file__).parent
ROOT = PACKAGE.parents[1]

# Imports point to the same line or up. A room (a folder of ops) imports no other room.
LAYERS = [
    {"_errors", "_native", "_version"},
    {"_dtypes"},
    {"_arrays"},
    {"_op"},
    {"_operators"},
    {"_ir"},
    {"_autodiff", "_plan", "_verify"},
    {"ops"},
    {"_backends"},
    {"_file"},
    {"_stream", "_stream_layers", "_stream_state"},
    {"_executable"},
    {"_explain", "_graph"},
    {"torch"},
]
LAYER_OF = {name: i for i, layer in enumerate(LAYERS) for name in layer}
ROOMS = ("gru", "lstm", "rnn")
# Imported inside functions: a circle that the language makes, since tensors have operators and operators are ops; and
# what torch's tensors need, when there is one.
LATE = {("_operators", "_ir"), ("_operators", "ops"), ("ops", "torch"), ("_backends", "torch")}


def modules() -> list[pathlib.Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def imported(path: pathlib.Path) -> list[tuple[str, bool]]:
    """The modules of recurra that a file imports, dotted, and whether it does so at its top."""
    tree = ast.parse(path.read_text())
    at_top = {id(node) for node in tree.body}
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*parts[: len(parts) - node.level], *(node.module or "").split(".")]
            base = [b for b in base if b]
            names = [".".join([*base, a.name]) for a in node.names] if not node.module else [".".join(base)]
            found += [(name, id(node) in at_top) for name in names]
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            assert not any(n.split(".")[0] == "recurra" for n in names), f"{path}: import relatively"
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_up_and_never_back(path: pathlib.Path) -> None:
    own = path.relative_to(PACKAGE).with_suffix("").parts
    for name, at_top in imported(path):
        other = name.split(".")
        if (own[0], other[0]) in LATE and not at_top:
            continue
        assert other[0] in LAYER_OF, f"{path} imports {name}, which has no layer in this test"
        assert LAYER_OF[other[0]] <= LAYER_OF[own[0]], f"{path} imports {name} from a later layer"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_no_other_room(room: str) -> None:
    for path in (PACKAGE / "ops" / room).rglob("*.py"):
        for name, _ in imported(path):
            other = name.split(".")
            assert other[:1] != ["ops"] or len(other) < 2 or other[1] not in set(ROOMS) - {room}, f"{path}: {name}"


def test_import_loads_no_framework_and_no_network() -> None:
    code = "import sys, recurra; print(*sorted(m.partition('.')[0] for m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "recurra" in loaded
    assert not {"torch", "jax", "matplotlib", "onnx", "safetensors", "socket"} & set(loaded)


def public_names() -> list[str]:
    # recurra.torch is there once somebody has imported it, or has called an op on tensors.
    return sorted(n for n in vars(recurra) if not n.startswith("_") and n != "torch")


def test_public_list_is_what_it_was() -> None:
    """A change of this list is a change for every user: it belongs into the changelog."""
    listed = (pathlib.Path(__file__).parent / "public_names.txt").read_text().split()
    assert public_names() == sorted(listed)


def test_public_names_are_imported_by_name() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    by_name = {
        a.asname for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names if a.asname == a.name
    }
    modules_seen = {n for n in public_names() if type(getattr(recurra, n)).__name__ == "module"}
    assert set(public_names()) - modules_seen <= by_name
    assert modules_seen == {"ops"}


def test_everything_public_is_documented() -> None:
    undocumented = [n for n in dir(recurra.ops) if not n.startswith("_") and callable(getattr(recurra.ops, n))]
    undocumented = [n for n in undocumented if not (getattr(recurra.ops, n).__doc__ or "").strip()]
    assert not undocumented


def test_files_stay_short() -> None:
    suffixes = {".py", ".h", ".cpp", ".cuh"}
    folders = ("src", "tests", "csrc", "examples", "benchmarks")
    files = [p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in suffixes]
    assert len(files) > 40
    long = {str(p.relative_to(ROOT)): n for p in files if (n := len(p.read_text().splitlines())) > 500}
    assert not long, "which second thing does each of these do?"
