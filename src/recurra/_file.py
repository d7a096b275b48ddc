"""The file of an executable: a zip of `graph.json` and `weights.safetensors`. No pickle, nothing that runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
import dataclasses
import hashlib
import json
import math
import os
from pathlib import Path
from typing import IO, Any
import zipfile

import numpy as np

from . import _arrays
from ._dtypes import DType, bfloat16
from ._errors import FileFormatError
from ._ir import CONSTANT, VARIABLE, Operation, Program, Tensor
from ._op import OPS, ShapedType
from ._plan import Block, Plan
from ._verify import verify
from .ops import DESCRIPTORS
from .ops._descriptor import Descriptor
from .ops.activations import Activation, ParametricActivation

FORMAT, VERSION = "recurra-executable", 1
_GRAPH, _WEIGHTS = "graph.json", "weights.safetensors"


def save(path: Any, plan: Plan, feed_types: Sequence[ShapedType], is_single: bool) -> None:
    """Write a plan. The file appears under its name only when it is whole."""
    from safetensors.numpy import save as to_bytes

    weights: dict[str, np.ndarray[Any, Any]] = {}
    graph = {
        "format": FORMAT,
        "version": VERSION,
        **_described_plan(plan, weights, ""),
        "feed_types": [_encoded(t, weights, "") for t in feed_types],
        "single": is_single,
    }
    blob = to_bytes(weights)
    graph["weights_sha256"] = hashlib.sha256(blob).hexdigest()
    text = json.dumps(graph, indent=1, allow_nan=False).encode()
    with whole(path) as raw, zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as archive:
        for name, content in ((_GRAPH, text), (_WEIGHTS, blob)):
            archive.writestr(zipfile.ZipInfo(name), content)  # without the time: equal models make equal files


@contextmanager
def whole(path: Any) -> Iterator[IO[bytes]]:
    """A file to write to, which appears under its name when the block has ended, and not at all if it failed."""
    target = Path(path)
    # Not tempfile's: its files are their owner's alone.
    temporary = target.with_name(f"{target.name}.{os.getpid()}-{os.urandom(4).hex()}.part")
    file = open(temporary, "xb")  # noqa: SIM115 - closed below, before the file is renamed
    try:
        with file:
            yield file
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _described_plan(plan: Plan, weights: dict[str, Any], where: str) -> dict[str, Any]:
    # Feeds that no target needs are kept: the signature is part of the file.
    operations = sorted({*plan.operations, *(t.op for t in plan.feeds)}, key=lambda o: o.position)
    place = {operation: i for i, operation in enumerate(operations)}
    return {
        "operations": [_described(o, f"{where}{i}", place, weights, plan.program) for i, o in enumerate(operations)],
        "feeds": [place[t.op] for t in plan.feeds],
        "targets": [[place[t.op], t.index] for t in plan.targets],
        "target_operations": [place[o] for o in plan.roots],
    }


def _described(
    operation: Operation, where: str, place: Mapping[Operation, int], weights: dict[str, Any], program: Program
) -> dict[str, Any]:
    attrs = operation.attrs
    described = {
        "op": operation.kind.name,
        "name": operation.name,
        "inputs": [[place[t.op], t.index] for t in operation.input_tensors],
        "after": [place[o] for o in operation.control_dependencies],
        "attrs": {k: _encoded(v, weights, f"{where}.{k}") for k, v in attrs.items()},
    }
    if operation.kind is VARIABLE:
        described["value"] = _encoded(program.variables[operation], weights, f"{where}.value")
    return described


def _encoded(value: Any, weights: dict[str, Any], where: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, Activation | DType):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, ParametricActivation):
        return [value.kind, *(_encoded(p, weights, where) for p in value.parameters)]
    if isinstance(value, ShapedType):
        return {"$type": [list(value.shape), str(value.dtype)]}
    if isinstance(value, Block):
        return {"$block": _described_plan(value.plan, weights, f"{where}.")}
    if isinstance(value, Descriptor):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}  # type: ignore[arg-type]
        return {"$descriptor": type(value).__name__, "fields": _encoded(fields, weights, where)}
    if isinstance(value, tuple | list):
        items = [_encoded(v, weights, f"{where}.{j}") for j, v in enumerate(value)]
        return {"$tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, Mapping):
        return {"$map": {k: _encoded(v, weights, f"{where}.{k}") for k, v in value.items()}}
    array = np.ascontiguousarray(_arrays.to_numpy(value)).reshape(value.shape)
    if array.dtype == bfloat16:  # safetensors knows it, but not for NumPy: its bits are kept
        weights[where] = array.view(np.uint16)
        return {"$bfloat16": where}
    if array.dtype == np.complex128:  # which safetensors does not know: its two parts are kept
        weights[where] = np.stack([array.real, array.imag], axis=-1)
        return {"$complex128": where}
    weights[where] = array
    return {"$array": where}


def load(path: Any) -> tuple[Plan, list[ShapedType], bool]:
    """Read what `save` wrote: the plan, the types of its feeds, whether the target is single.

    Raises:
        FileFormatError: with what is wrong with the file.
    """
    graph, weights = _read(Path(path))
    try:
        plan = _rebuilt_plan(graph, weights)
        verify(plan.program)
        types = [_decoded(t, weights) for t in graph["feed_types"]]
        plan.infer(types)
        return plan, types, bool(graph["single"])
    except Exception as error:  # the rules of the ops meet whatever somebody wrote into the file
        raise FileFormatError(f"load: {path} must hold a valid graph, got one with {error}") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    try:
        with zipfile.ZipFile(path) as archive:
            text, blob = archive.read(_GRAPH), archive.read(_WEIGHTS)
        graph = json.loads(text)
    except FileNotFoundError:
        raise
    except Exception as error:  # zipfile answers damage with what it meets: zlib.error, RuntimeError, KeyError, …
        raise FileFormatError(f"load: {path} must be a file that Executable.save wrote, got {error}") from error
    if not isinstance(graph, dict) or graph.get("format") != FORMAT:
        raise FileFormatError(f"load: {path} must be a {FORMAT} file, got another kind of zip")
    version = graph.get("version")
    if type(version) is not int or version < 1:
        raise FileFormatError(f"load: {path} must have a version from 1 on, got {version!r}")
    if version > VERSION:
        raise FileFormatError(f"load: {path} must have version {VERSION} or lower, got {version}; update recurra")
    if hashlib.sha256(blob).hexdigest() != graph.get("weights_sha256"):
        raise FileFormatError(f"load: {path} must hold the weights that were saved, got a wrong checksum")
    try:
        return graph, from_bytes(blob)
    except (SafetensorError, ValueError, KeyError) as error:
        raise FileFormatError(f"load: {path} must hold readable weights, got {error}") from error


def _at(i: Any, made: Sequence[Any], what: str = "operation") -> int:
    if type(i) is not int or not 0 <= i < len(made):
        raise LookupError(f"a reference to {what} {i!r} of {len(made)}")
    return i


def _tensor_at(reference: Any, made: Sequence[Operation]) -> Tensor:
    i, j = reference
    outputs = made[_at(i, made)].output_tensors
    return outputs[_at(j, outputs, "result")]


def _rebuilt_plan(described: Mapping[str, Any], weights: Mapping[str, Any]) -> Plan:
    program = Program()
    for operation in described["operations"]:
        _rebuild(program, operation, weights)
    made = program.operations
    feeds = [made[_at(i, made)].output_tensors[0] for i in described["feeds"]]
    targets = [_tensor_at(reference, made) for reference in described["targets"]]
    return Plan(program, feeds, targets, [made[_at(i, made)] for i in described["target_operations"]])


def _rebuild(program: Program, described: dict[str, Any], weights: Mapping[str, Any]) -> None:
    made = program.operations
    op = OPS.get(described["op"])
    if op is None:
        raise LookupError(f"the unknown op {described['op']!r}")
    inputs = [_tensor_at(reference, made) for reference in described["inputs"]]
    attrs = {k: _decoded(v, weights) for k, v in described["attrs"].items()}
    with program.control_dependencies([made[_at(i, made)] for i in described["after"]]):
        operation = program.add(op, inputs, attrs, described["name"])
    if op is VARIABLE:
        value = _decoded(described["value"], weights)
        if ShapedType(value.shape, value.dtype) != operation.output_tensors[0].type:
            raise ValueError(f"a value of {operation.name} that is not of its type")
        program.variables[operation] = value
    elif op is CONSTANT and not isinstance(attrs["value"], np.ndarray):
        raise ValueError(f"a constant {operation.name} without a value")


def _decoded(value: Any, weights: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_decoded(v, weights) for v in value]
    if not isinstance(value, dict):
        return value
    if "$map" in value:
        return {k: _decoded(v, weights) for k, v in value["$map"].items()}
    if "$tuple" in value:
        return tuple(_decoded(v, weights) for v in value["$tuple"])
    if "$float" in value:
        return float(value["$float"])
    if "$type" in value:
        return ShapedType(*value["$type"])
    if "$array" in value:
        return weights[value["$array"]]
    if "$bfloat16" in value:
        return weights[value["$bfloat16"]].view(bfloat16.numpy)
    if "$complex128" in value:
        return weights[value["$complex128"]].view(np.complex128)[..., 0]
    if "$block" in value:
        plan = _rebuilt_plan(value["$block"], weights)
        return Block(plan.program, plan.feeds, plan.targets)
    if "$descriptor" in value:
        return DESCRIPTORS[value["$descriptor"]](**_decoded(value["fields"], weights))
    raise ValueError(f"an unknown value {value!r}")
