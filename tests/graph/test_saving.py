"""Executables: compiled, looked at, saved, loaded elsewhere."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import zipfile

import ml_dtypes
import numpy as np
import pytest
import torch

import recurra
from recurra import ops

RNG = np.random.default_rng(11)


def weights(*shape: int, dtype: object = np.float32) -> np.ndarray:
    return (RNG.normal(size=shape) * 0.5).astype(dtype)


def model() -> tuple[recurra.Graph, list[recurra.Tensor], list[recurra.Tensor], recurra.Operation]:
    """Two directions, odd activations, dropout with a seed, first and second derivatives, an assignment."""
    graph = recurra.Graph(seed=1)
    x, lengths = graph.placeholder([None, None, 3], name="x"), graph.placeholder([None], "int64", name="lengths")
    R, W = graph.variable(weights(2, 12, 3), "R"), graph.variable(weights(24, 3), "W")
    options = recurra.LSTMDescriptor(
        bidirectional=True,
        produce_cell=True,
        forget_gate_last=True,
        activation=("scaled_tanh", 1.1, 0.9),
        output_gate_activation="hard_sigmoid",
    )
    h, c = graph.lstm(x, R, input_weight=W, lengths=lengths, descriptor=options)
    h = ops.dropout(h, 0.25, seed=5)
    loss = (h * h).sum() + (c * graph.constant(0.5)).sum()
    slope = graph.gradients(loss, [R])[R]
    curve = graph.gradients((slope * slope).sum(), [W])[W]
    with graph.control_dependencies([graph.assign(W, W * 2.0)]):
        after = graph.read_variable(W)
    step = graph.assign(R, R - slope * 0.1)
    return graph, [x, lengths], [loss, slope, curve, after, h], step


INPUTS = [weights(4, 2, 3), np.array([4, 2])]


def test_a_loaded_executable_gives_the_very_same_numbers(tmp_path: pathlib.Path) -> None:
    graph, feeds, targets, step = model()
    executable = graph.compile(feeds, targets, [step])
    executable.save(tmp_path / "m.recurra")
    loaded = recurra.Executable.load(tmp_path / "m.recurra")
    for _ in range(3):  # the assignments are part of it
        for mine, other in zip(executable.run(INPUTS), loaded.run(INPUTS), strict=True):
            np.testing.assert_array_equal(mine, other)
    assert [t.name for t in loaded.feed_tensors] == ["x", "lengths"]
    assert loaded.output_types() == executable.output_types()


def test_a_loaded_executable_can_be_saved_again(tmp_path: pathlib.Path) -> None:
    graph, feeds, targets, step = model()
    graph.compile(feeds, targets, [step]).save(tmp_path / "one")
    recurra.Executable.load(tmp_path / "one").save(tmp_path / "two")
    with zipfile.ZipFile(tmp_path / "one") as a, zipfile.ZipFile(tmp_path / "two") as b:
        assert a.read("graph.json") == b.read("graph.json")


def test_another_process_loads_it_without_any_framework(tmp_path: pathlib.Path) -> None:
    graph, feeds, targets, _ = model()
    executable = graph.compile(feeds, targets[0])
    executable.save(tmp_path / "m.recurra")
    np.savez(tmp_path / "in.npz", x=INPUTS[0], lengths=INPUTS[1])
    code = (
        "import sys, numpy as np, recurra;"
        f"d = np.load({str(tmp_path / 'in.npz')!r});"
        f"e = recurra.Executable.load({str(tmp_path / 'm.recurra')!r});"
        "print(float(e.run([d['x'], d['lengths']]))); assert not {'torch', 'jax'} & set(sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(printed) == float(executable.run(INPUTS))


def test_variables_are_saved_with_the_values_they_have(tmp_path: pathlib.Path) -> None:
    graph = recurra.Graph()
    v = graph.variable(np.float32([1, 2]), "v")
    graph.run({}, [], [graph.assign(v, v * 10.0)])
    graph.compile([], v).save(tmp_path / "v")
    assert recurra.Executable.load(tmp_path / "v").run().tolist() == [10, 20]


def test_an_executable_shares_its_graphs_variables() -> None:
    graph = recurra.Graph()
    v = graph.variable(np.float32(1))
    executable = graph.compile([], v, [graph.assign(v, v + 1.0)])
    executable.run()
    assert graph.run({}, v) == 2
    graph.load_state_dict({v.name: np.float32(7)})
    assert executable.run() == 7


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int32", "bool", "complex64", "complex128"])
def test_weights_of_every_dtype_are_kept(tmp_path: pathlib.Path, dtype: str) -> None:
    value = weights(3, 2).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    value = value * 1j if "complex" in dtype else value
    graph = recurra.Graph()
    graph.compile([], ops.identity(graph.variable(value))).save(tmp_path / "v")
    loaded = recurra.Executable.load(tmp_path / "v").run()
    assert loaded.dtype == value.dtype
    np.testing.assert_array_equal(loaded.astype(np.complex128), value.astype(np.complex128))


def test_torch_weights_are_saved_and_come_back_as_numpy(tmp_path: pathlib.Path) -> None:
    graph = recurra.Graph()
    v = graph.variable(torch.arange(3, dtype=torch.bfloat16), "v")
    graph.compile([], ops.transpose(v)).save(tmp_path / "v")
    assert recurra.Executable.load(tmp_path / "v").run().astype(np.float32).tolist() == [0, 1, 2]


def test_non_finite_attributes_are_kept(tmp_path: pathlib.Path) -> None:
    graph = recurra.Graph()
    x = graph.placeholder([2])
    graph.compile([x], ops.pad(x, [1], [1], value=float("-inf"))).save(tmp_path / "v")
    loaded = recurra.Executable.load(tmp_path / "v").run([np.zeros(2, np.float32)])
    assert loaded.tolist() == [-np.inf, 0, 0, -np.inf]


def test_the_file_is_a_zip_of_json_and_safetensors(tmp_path: pathlib.Path) -> None:
    graph, feeds, targets, _ = model()
    graph.compile(feeds, targets).save(tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        assert archive.namelist() == ["graph.json", "weights.safetensors"]
        described = json.loads(archive.read("graph.json"))
    assert described["format"] == "recurra-executable"
    assert described["version"] == 1


def test_a_save_that_fails_leaves_the_old_file(tmp_path: pathlib.Path, monkeypatch) -> None:
    graph, feeds, targets, _ = model()
    executable = graph.compile(feeds, targets)
    executable.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def broken(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", broken)
    with pytest.raises(OSError, match="disk full"):
        executable.save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_inputs_go_by_position_or_by_tensor() -> None:
    graph, feeds, targets, _ = model()
    executable = graph.compile(feeds, targets[0])
    by_tensor = executable.run(dict(zip(reversed(feeds), reversed(INPUTS), strict=True)))
    np.testing.assert_array_equal(executable.run(INPUTS), by_tensor)
    assert executable.run_async(INPUTS).result(10) == by_tensor
    filled: list = []
    executable.run(INPUTS, results=filled)
    np.testing.assert_array_equal(filled[0], by_tensor)


def test_compile_narrows_sizes_and_checks_them() -> None:
    graph, feeds, targets, _ = model()
    narrow = graph.compile({feeds[0]: ((4, 2, 3), np.float32), feeds[1]: INPUTS[1]}, targets[4])
    assert narrow.output_types() == [recurra.ShapedType((4, 2, 6), "float32")]
    with pytest.raises(recurra.ShapeError, match=r"the feed of x must have shape \[4, 2, 3\], got \[5, 2, 3\]"):
        narrow.run([weights(5, 2, 3), INPUTS[1]])
    with pytest.raises(recurra.ShapeError, match=r"compile: .*x"):
        graph.compile({feeds[0]: ((4, 2, 9), np.float32), feeds[1]: INPUTS[1]}, targets[4])


def test_output_types_are_inferred_for_other_inputs() -> None:
    graph, feeds, targets, _ = model()
    executable = graph.compile(feeds, targets[4])
    assert executable.output_types()[0].shape == (-1, -1, 6)
    types = [((9, 5, 3), "float32"), recurra.ShapedType([5], "int64")]
    assert executable.output_types(types)[0].shape == (9, 5, 6)
    with pytest.raises(recurra.ShapeError, match="lengths must have shape"):
        executable.output_types([((9, 5, 3), "float32"), ((6,), "int64")])


def test_specialize_prepares_what_run_would_otherwise() -> None:
    graph, feeds, targets, _ = model()
    executable = graph.compile(feeds, targets)
    executable.specialize([((4, 2, 3), "float32"), ((2,), "int64")])
    (ready,) = executable._plan._specializations.values()
    executable.run(INPUTS)
    assert list(executable._plan._specializations.values()) == [ready]
    executable.specialize([((4, 2, 3), "float32"), ((2,), "int64")], like=torch.zeros(1))
    assert len(executable._plan._specializations) == 2


def test_explain_has_a_line_per_step() -> None:
    graph, feeds, targets, _ = model()
    text = graph.compile(feeds, targets).explain()
    assert text.splitlines()[0].split() == ["step", "op", "name", "result", "backend", "reason"]
    for kind in ("lstm", "lstm_gradients", "composed_vjp", "dropout"):
        assert kind in text
    assert "reference" in text


def test_compile_moves_torch_inputs_to_its_device() -> None:
    graph = recurra.Graph()
    x = graph.placeholder([2])
    executable = graph.compile([x], x * 2.0, device="cpu")
    assert executable.run([torch.ones(2)]).tolist() == [2, 2]
    assert executable.run([np.ones(2, np.float32)]).tolist() == [2, 2]
    elsewhere = graph.compile([x], x * 2.0, device="meta")
    assert elsewhere.run([torch.ones(2)]).device.type == "meta"
    with pytest.raises(recurra.DeviceError, match="inputs must be torch tensors for device 'meta', got numpy"):
        elsewhere.run([np.ones(2, np.float32)])
