"""Every message of reading a file, and files that are damaged at every byte or written by somebody else."""

from __future__ import annotations

from collections.abc import Callable
import hashlib
import json
import pathlib
import random
import tempfile
from typing import Any
import zipfile

import numpy as np
import pytest

from errors.mistakes import ANY, Mistake, check, unsaid
from recurra import Executable, FileFormatError, Graph, LSTMDescriptor, lstm

FILES = ["_file.py"]
GRAPH, WEIGHTS = "graph.json", "weights.safetensors"
X = np.linspace(-1, 1, 2 * 1 * 2, dtype=np.float32).reshape(2, 1, 2)


def saved(folder: pathlib.Path) -> pathlib.Path:
    """A small recurrent model in a file: a constant, two variables, a descriptor, and an assignment."""
    graph = Graph()
    x = graph.placeholder([None, 1, 2], name="x")
    R = graph.variable(np.full((4, 1), 0.25, np.float32), "R")
    W = graph.variable(np.arange(8, dtype=np.float32).reshape(4, 2) / 8, "W")
    h = lstm(x, R, input_weight=W, descriptor=LSTMDescriptor(activation=("scaled_tanh", 0.5, 0.5))).h
    out = h * graph.constant(2.0)
    path = folder / "model.recurra"
    graph.compile([x], [out], [graph.assign(R, R * 0.5)]).save(path)
    return path


def parts_of(path: pathlib.Path) -> tuple[dict[str, Any], bytes]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(GRAPH)), archive.read(WEIGHTS)


def write(path: pathlib.Path, graph: Any, weights: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(GRAPH, graph if isinstance(graph, str | bytes) else json.dumps(graph))
        archive.writestr(WEIGHTS, weights)


def changed(change: Callable[[dict[str, Any]], None]) -> Callable[[], Any]:
    """Load the model's file after somebody changed what its graph says."""

    def make() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = saved(pathlib.Path(folder))
            graph, weights = parts_of(path)
            change(graph)
            write(path, graph, weights)
            return Executable.load(path)

    return make


def containing(data: bytes) -> Callable[[], Any]:
    """Load a file with these bytes."""

    def make() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.recurra")
            path.write_bytes(data)
            return Executable.load(path)

    return make


def with_weights(replace: Callable[[bytes], bytes], is_hashed: bool) -> Callable[[], Any]:
    """Load the model's file with other weights, with or without their checksum."""

    def make() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = saved(pathlib.Path(folder))
            graph, weights = parts_of(path)
            weights = replace(weights)
            if is_hashed:
                graph["weights_sha256"] = hashlib.sha256(weights).hexdigest()
            write(path, graph, weights)
            return Executable.load(path)

    return make


def operation(graph: dict[str, Any], op: str) -> dict[str, Any]:
    """The description of the first operation of this kind."""
    return next(o for o in graph["operations"] if o["op"] == op)


def set_in(kind: str, /, **fields: Any) -> Callable[[], Any]:
    return changed(lambda graph: operation(graph, kind).update(fields))


WRONG_GRAPH = f"load: {ANY}model.recurra must hold a valid graph, got one with "
NOT_OURS = f"load: {ANY}model.recurra must be a file that Executable.save wrote, got "

MISTAKES = [
    Mistake("no zip", containing(b"PK?"), FileFormatError, NOT_OURS + "File is not a zip file"),
    Mistake("empty file", containing(b""), FileFormatError, NOT_OURS + "File is not a zip file"),
    Mistake(
        "pickle",
        containing(b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00]\x94K\x01a."),
        FileFormatError,
        NOT_OURS + ANY,
    ),
    Mistake(
        "folder",
        lambda: Executable.load(pathlib.Path(__file__).parent),
        FileFormatError,
        f"load: {ANY}errors must be a file that Executable.save wrote, got {ANY}directory{ANY}",
    ),
    Mistake(
        "graph nested too deeply",
        lambda: nested(),
        FileFormatError,
        NOT_OURS + ANY,
    ),
    Mistake(
        "another format",
        changed(lambda graph: graph.update(format="onnx")),
        FileFormatError,
        f"load: {ANY}model.recurra must be a recurra-executable file, got another kind of zip",
    ),
    Mistake(
        "newer version",
        changed(lambda graph: graph.update(version=2)),
        FileFormatError,
        f"load: {ANY}model.recurra must have version 1 or lower, got 2; update recurra",
    ),
    Mistake(
        "version before the first",
        changed(lambda graph: graph.update(version=0)),
        FileFormatError,
        f"load: {ANY}model.recurra must have a version from 1 on, got 0",
    ),
    Mistake(
        "result counted from behind",
        changed(lambda graph: graph.update(targets=[[graph["targets"][0][0], -1]])),
        FileFormatError,
        WRONG_GRAPH + "a reference to result -1 of 1",
    ),
    Mistake(
        "version that is a word",
        changed(lambda graph: graph.update(version="one")),
        FileFormatError,
        f"load: {ANY}model.recurra must have a version from 1 on, got 'one'",
    ),
    Mistake(
        "weights of another model",
        with_weights(lambda weights: weights[:-4] + b"\x00\x00\x80\x3f", is_hashed=False),
        FileFormatError,
        f"load: {ANY}model.recurra must hold the weights that were saved, got a wrong checksum",
    ),
    Mistake(
        "weights that nobody can read",
        with_weights(lambda weights: weights[:9], is_hashed=True),
        FileFormatError,
        f"load: {ANY}model.recurra must hold readable weights, got {ANY}",
    ),
    Mistake(
        "unknown op",
        set_in("lstm", op="transformer"),
        FileFormatError,
        WRONG_GRAPH + "the unknown op 'transformer'",
    ),
    Mistake(
        "input that was not made yet",
        set_in("lstm", inputs=[[0, 0], [99, 0], [2, 0]]),
        FileFormatError,
        WRONG_GRAPH + "a reference to operation 99 of 3",
    ),
    Mistake(
        "target before the first",
        changed(lambda graph: graph.update(targets=[[-1, 0]])),
        FileFormatError,
        WRONG_GRAPH + f"a reference to operation -1 of {ANY}",
    ),
    Mistake(
        "variable of another size",
        changed(lambda graph: operation(graph, "variable")["attrs"].update(type={"$type": [[5, 1], "float32"]})),
        FileFormatError,
        WRONG_GRAPH + "a value of R that is not of its type",
    ),
    Mistake(
        "constant without a value",
        changed(lambda graph: operation(graph, "constant")["attrs"].update(value={"$type": [[2], "float32"]})),
        FileFormatError,
        WRONG_GRAPH + "a constant constant_4 without a value",
    ),
    Mistake(
        "unknown kind of value",
        changed(lambda graph: operation(graph, "lstm")["attrs"].update(descriptor={"$pickle": "gASV"})),
        FileFormatError,
        WRONG_GRAPH + "an unknown value {'$pickle': 'gASV'}",
    ),
    Mistake(
        "unknown field of a descriptor",
        changed(lambda graph: operation(graph, "lstm")["attrs"]["descriptor"]["fields"]["$map"].update(layers=2)),
        FileFormatError,
        WRONG_GRAPH + f"LSTMDescriptor.__init__() got an unexpected keyword argument 'layers'{ANY}",
    ),
    Mistake(
        "inputs that do not fit the op",
        set_in("lstm", inputs=[[0, 0], [0, 0], [2, 0]]),
        FileFormatError,
        WRONG_GRAPH + "lstm: recurrent_weight must have a static shape, got [-1, 1, 2]",
    ),
    Mistake(
        "feed that is missing",
        changed(lambda graph: graph.update(feeds=[], feed_types=[])),
        FileFormatError,
        WRONG_GRAPH + "run: feeds must hold every placeholder that the targets need, got none for "
        "<Tensor x float32[-1, 1, 2]>",
    ),
    Mistake(
        "feed of another type",
        changed(lambda graph: graph.update(feed_types=[{"$type": [[2, 1, 3], "float32"]}])),
        FileFormatError,
        WRONG_GRAPH + "lstm: source must have as many channels as input_weight has columns, 2, got 3",
    ),
]


def nested() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.recurra")
        write(path, "[" * 100_000, b"")
        return Executable.load(path)


@pytest.mark.parametrize("mistake", MISTAKES, ids=Mistake.id)
def test_message_says_what_is_wrong(mistake: Mistake) -> None:
    check(mistake)


def test_no_message_is_without_a_mistake() -> None:
    assert unsaid(FILES, MISTAKES) == []


def test_a_missing_file_is_missing(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Executable.load(tmp_path / "nowhere")


def loaded_or_refused(path: pathlib.Path) -> list[np.ndarray] | None:
    """The numbers of a loaded file, or None where it was refused; nothing else may happen."""
    try:
        executable = Executable.load(path)
    except FileFormatError:
        return None
    return list(executable.run([X]))


@pytest.mark.parametrize("damage", [0xFF, 0x01, 0x08])
def test_a_flipped_byte_is_refused_or_harmless(tmp_path: pathlib.Path, damage: int) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    (expected,) = loaded_or_refused(path)
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ damage]) + whole[place + 1 :])
        found = loaded_or_refused(path)
        refused += found is None
        if found is not None:
            np.testing.assert_array_equal(found[0], expected, err_msg=f"byte {place} ^ {damage}")
    # Dates and attributes of the zip are not read; everything that is ours is protected.
    assert refused > 0.9 * len(whole)


def test_a_file_cut_short_is_refused(tmp_path: pathlib.Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        assert loaded_or_refused(path) is None, length


def test_a_graph_that_somebody_changed_is_refused_or_valid(tmp_path: pathlib.Path) -> None:
    """Any value of the description may be replaced by any other: loading refuses it, or makes something whole."""
    path = saved(tmp_path)
    graph, weights = parts_of(path)
    choose = random.Random(7)
    values = [None, True, -1, 0, 7, 10**30, 0.5, "x", "", [], [0], {}, {"$tuple": [1]}, {"$array": "3.value"}]
    for _ in range(400):
        copy = json.loads(json.dumps(graph))
        container, key = choose.choice(places_in(copy))
        container[key] = choose.choice(values)
        write(path, copy, weights)
        try:
            executable = Executable.load(path)
        except FileFormatError:
            continue
        assert len(executable.output_types()) == len(executable.target_tensors)


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, child in items for place in ((value, key), *places_in(child))]
