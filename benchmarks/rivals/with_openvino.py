"""OpenVINO: the ONNX model of with_onnxruntime, compiled for float32; inference only."""

from __future__ import annotations

from cases import Case
from inputs import Numbers
import openvino
from openvino import properties

from rivals import Rival
from rivals.with_onnxruntime import inputs_of, model, named, refuse


def offer(case: Case, given: Numbers, variant: str, threads: int) -> Rival:
    refuse(case, "openvino")
    core = openvino.Core()
    options = {
        # Its default on a CPU with the instruction is bfloat16.
        properties.hint.inference_precision: openvino.Type.f32,
        properties.hint.performance_mode: properties.hint.PerformanceMode.LATENCY,
        properties.inference_num_threads: threads,
    }
    compiled = core.compile_model(core.read_model(model(case, given)), "CPU", options)
    request = compiled.create_infer_request()
    feed = inputs_of(case, given)
    return Rival(lambda: request.infer(feed, share_inputs=True, share_outputs=False)[0], named)
