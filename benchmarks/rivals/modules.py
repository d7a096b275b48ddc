"""recurra.torch's modules, called and differentiated as with_torch.py does it with torch.nn's."""

from __future__ import annotations

import importlib
from typing import Any

from cases import Case
from inputs import DROPPED, Numbers
import torch

from rivals import Rival, Unavailable
from rivals.with_torch import module_of, rival_of, tensor

CLASSES = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN"}


def module_class(name: str) -> Any:
    try:
        return getattr(importlib.import_module("recurra.torch"), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise Unavailable(f"recurra.torch has no {name}") from error


def offer(case: Case, given: Numbers, variant: str, threads: int) -> Rival:
    made = module_class(CLASSES[case.op])
    options: dict[str, Any] = {"bidirectional": case.bidirectional, "dtype": getattr(torch, case.dtype)}
    if "peephole" in case.options:
        options["peephole"] = True
    if "dropout" in case.options:
        options["recurrent_dropout"] = DROPPED
    module = made(case.I, case.H, **options)
    known = module_of(case, given).state_dict()
    more = dict(module.state_dict())
    if missing := known.keys() - more.keys():
        raise Unavailable(f"{CLASSES[case.op]} has no {', '.join(sorted(missing))}, as torch.nn's has")
    for name in more.keys() - known.keys():
        if "peephole" not in name:
            raise Unavailable(f"{CLASSES[case.op]} has a parameter that this benchmark does not know: {name}")
        known[name] = tensor(given.peephole).reshape(more[name].shape)
    module.load_state_dict(known)
    rival = rival_of(module, case, given)
    if "dropout" not in case.options or not case.trains:
        return rival

    def without_dropout(_: Any) -> dict[str, Any]:
        module.eval()
        try:
            return rival.named(rival.call())
        finally:
            module.train()

    return Rival(rival.call, without_dropout)
