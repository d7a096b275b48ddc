"""The programs of examples/, as modules and as commands."""

from __future__ import annotations

import importlib.util
from pathlib import Path
import subprocess
import sys
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    """The program as a module, without running its main function."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def command(name: str, *arguments: object) -> list[str]:
    """The command line that a person would type."""
    return [sys.executable, str(FOLDER / f"{name}.py"), *map(str, arguments)]


def run(name: str, *arguments: object) -> str:
    """What the program prints; it must succeed and print no error."""
    done = subprocess.run(command(name, *arguments), capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
