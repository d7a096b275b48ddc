"""What the numbers were measured on: machine, commit, versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import pathlib
import platform
import subprocess
from typing import Any

from recurra import _native

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("recurra", "numpy", "torch", "onnxruntime", "openvino", "jax", "onednn-cpu-gomp")


def git(*words: str) -> str:
    """What git says, or nothing where it refuses."""
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def description() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {
            "processor": _processor(),
            "system": f"{platform.system()} {platform.machine()}",
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "isa": _native.isa(),
        },
        "commit": git("rev-parse", "HEAD") or "unknown",
        "changed_since": bool(git("status", "--porcelain", "--untracked-files=no")),
        "versions": versions(),
    }
